//! Checkpoints on a simulated disk that forgets what was not synchronized.

use super::*;
use crate::checkpointer::{Checkpointer, HEADS_BYTES};
use crate::log::JournalLog;
use lanecast_journal::{Durability, Entry, Journal, JournalConfig, Log, Retention};
use lanecast_persistence::StoreLog;
use lanecast_sim::disk::SimulatedDisk;
use lanecast_sim::rng::SimRng;
use lanecast_wire::store::{Ballot, Consumption, Departure, Members, Registered, Run};

const INCARNATION: u64 = 77;
const SEGMENT: u64 = 16 << 10;
const ROOM: u64 = 4 << 20;

fn identity() -> StoreIdentity {
    StoreIdentity {
        has_older_checkpoints: false,
        settings: StoreSettings::default(),
        incarnation: INCARNATION,
        segment_bytes: SEGMENT,
    }
}

fn config() -> JournalConfig {
    JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() }
}

/// Writes a store's records of two streams: runs, messages, truncations, consumption, retention.
struct Writer {
    log: Log<SimulatedDisk>,
    rng: SimRng,
    /// First and next sequence, and epoch, of each stream.
    streams: Vec<(u64, u64, u64)>,
}

impl Writer {
    fn open(disk: &SimulatedDisk) -> Self {
        let log = Log::open(disk.clone(), config()).expect("a journal");
        Self { log, rng: SimRng::new(5), streams: Vec::new() }
    }

    fn append(&mut self, record: &LogRecord<'_>) {
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        let unix_ns = 1_000 * self.log.persisted();
        let entry = Entry { topic: record.stream(), unix_ns, body: &bytes, ..Entry::default() };
        self.log.append(&[entry]).expect("room");
    }

    fn begin(&mut self, stream: u32) {
        let (first, next, epoch) = &mut self.streams[stream as usize];
        *epoch += 1;
        let ballot = Ballot { epoch: *epoch, session: 10 * *epoch + u64::from(stream) };
        let common = next.saturating_sub(self.rng.within(0..=3)).max(*first);
        *next = common;
        let (first, runs) = (*first, vec![Run { ballot, start: common }]);
        let members = Members::without_groups(*epoch, vec![("a".into(), INCARNATION)]);
        self.append(&LogRecord::Promised { stream, ballot });
        self.append(&LogRecord::Truncated { stream, next: common });
        self.append(&LogRecord::Began { stream, number: 0, first, members, runs });
    }

    fn add(&mut self, count: u64) {
        for _ in 0..count {
            let stream = self.rng.within(0..=1) as u32;
            if self.streams.len() <= stream as usize {
                let stream = self.streams.len() as u32;
                let topic = ["orders", "quotes"][stream as usize];
                self.streams.push((0, 0, 0));
                self.append(&LogRecord::Stream { stream, topic, source: 9 });
                self.begin(stream);
                continue;
            }
            let (first, next, epoch) = self.streams[stream as usize];
            match self.rng.within(0..=19) {
                0 => self.begin(stream),
                1 => {
                    let run = Run { ballot: Ballot { epoch, session: epoch }, start: first };
                    let consumption = Consumption { run, next };
                    let receiver = self.rng.within(1..=3);
                    let registered = Registered {
                        is_non_blocking: self.rng.percent(50),
                        is_expired: self.rng.percent(30),
                        away_ns: self.rng.any(),
                        ..Registered::new(receiver, consumption)
                    };
                    self.append(&LogRecord::Consumed { stream, registered });
                }
                5 => {
                    let is_by_receivers = self.rng.percent(50);
                    self.append(&LogRecord::Paced { stream, is_by_receivers });
                }
                2 => self.append(&LogRecord::Detached { stream, receiver: 2 }),
                6 => {
                    let departure = Departure { receiver: 3, life: self.rng.within(0..=9) };
                    self.append(&LogRecord::Departed { stream, departure });
                }
                3 if first < next => {
                    self.streams[stream as usize].0 = first + 1;
                    self.append(&LogRecord::Trimmed { stream, first: first + 1 });
                }
                4 if first < next => {
                    let (sequence, body) = (first, &[1; 100]);
                    self.append(&LogRecord::Moved { stream, sequence, unix_ns: 7, body });
                }
                _ => {
                    self.streams[stream as usize].1 += 1;
                    self.append(&LogRecord::Message { stream, sequence: next, body: &[7; 100] });
                }
            }
            self.log.commit().expect("the disk works");
        }
    }
}

fn recover(disk: &SimulatedDisk, log: &Log<SimulatedDisk>) -> Recovered<SimulatedDisk> {
    try_recover(disk, log).expect("recovered")
}

fn try_recover(
    disk: &SimulatedDisk,
    log: &Log<SimulatedDisk>,
) -> Result<Recovered<SimulatedDisk>, DirectoryError> {
    Checkpoints::recover(disk, &identity(), |start| log.cursor(start))
}

/// State by all records, for comparison.
fn replayed(log: &Log<SimulatedDisk>) -> Replica {
    let mut replica = Replica::new(&identity());
    let mut cursor = log.cursor(Start::Oldest).expect("a cursor");
    replica.advance(&mut cursor).expect("whole");
    replica
}

#[track_caller]
fn assert_same(found: &Replica, expected: &Replica) {
    assert_eq!((found.position, found.checksum), (expected.position, expected.checksum));
    assert!(found.machine.checkpoint().eq(expected.machine.checkpoint()));
    let positions = |replica: &Replica| {
        let all = replica.catalog.streams.iter().map(|it| it.positions().clone());
        (replica.catalog.journal_bytes, all.collect::<Vec<_>>())
    };
    assert_eq!(positions(found), positions(expected));
}

/// The state that the checkpointer follows by the heads of records is the one that all records say,
/// also if hardly any head finds room.
#[test]
fn a_checkpoint_behind_a_log_is_the_state_of_its_records() {
    checkpoint_behind_a_log(HEADS_BYTES, |left_out| left_out == 0);
    checkpoint_behind_a_log(1_000, |left_out| left_out > 900);
}

fn checkpoint_behind_a_log(heads_bytes: usize, is_expected: impl Fn(u64) -> bool) {
    let (model, disk) = (SimulatedDisk::new(1, ROOM), SimulatedDisk::new(2, ROOM));
    let mut writer = Writer::open(&model);
    writer.add(1_000);
    let journal = Journal::open(disk.clone(), config()).expect("a journal");
    let open = |start| journal.cursor(start, Durability::Persisted);
    let recovered = Checkpoints::recover(&disk, &identity(), open).expect("recovered");
    let catalog = recovered.replica.catalog.clone();
    let (storage, pin) = (disk.clone(), journal.pin(1));
    let checkpointer = Checkpointer::start(storage, recovered, pin, 1 << 40, heads_bytes);
    let checkpointer = checkpointer.expect("a thread");
    let mut log = JournalLog::new(journal, catalog, Some(checkpointer));
    let mut cursor = writer.log.cursor(Start::Oldest).expect("a cursor");
    while let Some(record) = cursor.read().expect("whole") {
        // A clock that was set back: times never decrease in a journal.
        log.set_time(1_000 * (record.sequence ^ 1));
        let read = LogRecord::read(record.body).expect("a store's record");
        log.append(&read).expect("room");
    }
    let last = log.appended();
    assert!(is_expected(log.read_back()), "{} of {last}", log.read_back());
    log.close().expect("closed");
    let log = Log::open(disk.clone(), config()).expect("a journal");
    let found = recover(&disk, &log);
    assert_eq!((found.recovery.checkpoint, found.recovery.records), (Some(last), 0));
    assert_same(&found.replica, &replayed(&log));
    assert_eq!(found.replica.position, replayed(&writer.log).position);
}

/// A log on the disk, with its checkpointer, at this time.
fn log_at(disk: &SimulatedDisk, unix_ns: u64) -> (JournalLog<SimulatedDisk>, StoreRecovery) {
    let journal = Journal::open(disk.clone(), config()).expect("a journal");
    let open = |start| journal.cursor(start, Durability::Persisted);
    let recovered = Checkpoints::recover(disk, &identity(), open).expect("recovered");
    let (catalog, recovery) = (recovered.replica.catalog.clone(), recovered.recovery.clone());
    let pin = journal.pin(1);
    let checkpointer = Checkpointer::start(disk.clone(), recovered, pin, 1 << 40, HEADS_BYTES);
    let checkpointer = Some(checkpointer.expect("a thread"));
    let mut log = JournalLog::new(journal, catalog, checkpointer);
    log.set_time(unix_ns);
    (log, recovery)
}

/// Messages of more than a stride: the last one has a mark.
fn append_messages(log: &mut JournalLog<SimulatedDisk>, first: u64, copied_at: Option<u64>) {
    let (stream, body) = (0, &[7; 1_000][..]);
    for sequence in first..first + 100 {
        let record = match copied_at {
            Some(unix_ns) => LogRecord::Copied { stream, sequence, unix_ns, body },
            None => LogRecord::Message { stream, sequence, body },
        };
        log.append(&record).expect("room");
    }
}

#[test]
fn a_checkpoint_is_used_whatever_the_clocks_of_the_stores_say() {
    for copied_at in [None, Some(500_000)] {
        let disk = SimulatedDisk::new(1, ROOM);
        let (mut log, _) = log_at(&disk, 1_000_000);
        let members = Members::without_groups(1, vec![("a".into(), INCARNATION)]);
        let ballot = Ballot { epoch: 1, session: 1 };
        let runs = vec![Run { ballot, start: 0 }];
        let records = [
            LogRecord::Stream { stream: 0, topic: "orders", source: 9 },
            LogRecord::Promised { stream: 0, ballot },
            LogRecord::Began { stream: 0, number: 0, first: 0, members, runs },
        ];
        for record in &records {
            log.append(record).expect("room");
        }
        append_messages(&mut log, 0, None);
        log.close().expect("closed");
        // The clock was set back.
        let (mut log, recovery) = log_at(&disk, 500_000);
        assert!(recovery.refused.is_empty(), "{recovery:?}");
        assert_eq!((recovery.records, log.unix_ns()), (0, 1_000_000));
        append_messages(&mut log, 100, copied_at);
        let last = log.appended();
        log.close().expect("closed");
        let log = Log::open(disk.clone(), config()).expect("a journal");
        let found = recover(&disk, &log);
        assert!(found.recovery.refused.is_empty(), "{:?}", found.recovery);
        assert_eq!(found.recovery.checkpoint, Some(last));
        assert_same(&found.replica, &replayed(&log));
    }
}

/// Checkpoints of the journal at its present end.
fn write(disk: &SimulatedDisk, log: &Log<SimulatedDisk>, checkpoints: &mut Checkpoints) -> u64 {
    let replica = replayed(log);
    checkpoints.write(disk, &replica).expect("the disk works");
    replica.position
}

#[test]
fn a_start_reads_only_the_records_behind_the_last_checkpoint() {
    let disk = SimulatedDisk::new(1, ROOM);
    let mut writer = Writer::open(&disk);
    let mut checkpoints = Checkpoints::default();
    for round in 1..=4 {
        writer.add(400);
        let position = write(&disk, &writer.log, &mut checkpoints);
        writer.add(25);
        let found = recover(&disk, &writer.log);
        assert_eq!(found.recovery.checkpoint, Some(position));
        assert_eq!(found.recovery.records, writer.log.persisted() - position, "round {round}");
        assert_same(&found.replica, &replayed(&writer.log));
        let names = disk.list().expect("names");
        let kept = names.iter().filter(|name| name.ends_with(ENDING)).count();
        assert_eq!(kept, KEPT.min(round), "{names:?}");
    }
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before_and_then_to_all_records() {
    let disk = SimulatedDisk::new(1, ROOM);
    let mut writer = Writer::open(&disk);
    let mut checkpoints = Checkpoints::default();
    writer.add(300);
    let older = write(&disk, &writer.log, &mut checkpoints);
    writer.add(300);
    let newer = write(&disk, &writer.log, &mut checkpoints);
    writer.add(10);
    let expected = replayed(&writer.log);
    let length = disk.contents(&name(newer)).len() as u64;
    for offset in (0..length).step_by(7) {
        disk.damage(&name(newer), offset, 1);
        let found = recover(&disk, &writer.log);
        assert_eq!(found.recovery.checkpoint, Some(older), "byte {offset}");
        assert!(found.recovery.refused[0].contains(&name(newer)), "{:?}", found.recovery);
        assert_same(&found.replica, &expected);
        disk.damage(&name(newer), offset, 1);
    }
    disk.damage(&name(newer), 20, 1);
    disk.damage(&name(older), 20, 1);
    let found = recover(&disk, &writer.log);
    assert_eq!((found.recovery.checkpoint, found.recovery.refused.len()), (None, 2));
    assert_eq!(found.recovery.records, writer.log.persisted());
    assert_same(&found.replica, &expected);
    // The next one removes them.
    let (mut checkpoints, log) = (found.checkpoints, &writer.log);
    assert_eq!(checkpoints.needed(), 1, "all records, until there are two good ones");
    write(&disk, log, &mut checkpoints);
    let names = disk.list().expect("names");
    assert_eq!(names.iter().filter(|name| name.ends_with(ENDING)).count(), 1, "{names:?}");
}

#[test]
fn only_the_header_is_read_of_a_file_whose_length_is_another() {
    let disk = SimulatedDisk::new(1, ROOM);
    let mut writer = Writer::open(&disk);
    writer.add(300);
    let position = write(&disk, &writer.log, &mut Checkpoints::default());
    let open = |start| writer.log.cursor(start);
    let length = disk.contents(&name(position)).len() as u64;
    let file = disk.open(&name(position), OpenMode::Write).expect("there");
    for other in [length - 1, length + 1, 10, 1 << 20] {
        file.set_length(other).expect("room");
        let before = disk.read_bytes();
        load(&disk, position, &identity(), &open).expect_err("refused");
        assert!(disk.read_bytes() - before <= HEADER_BYTES as u64, "{other}");
    }
}

#[test]
fn without_its_beginning_and_checkpoints_a_journal_is_refused_in_words() {
    let disk = SimulatedDisk::new(1, ROOM);
    let mut writer = Writer::open(&disk);
    let mut checkpoints = Checkpoints::default();
    for _ in 0..2 {
        writer.add(400);
        write(&disk, &writer.log, &mut checkpoints);
    }
    drop(writer);
    let retention = Retention { bytes: Some(SEGMENT), age: None };
    let mut log = Log::open(disk.clone(), JournalConfig { retention, ..config() }).expect("opened");
    let pin = log.pin(checkpoints.needed());
    assert!(log.apply_retention().expect("removed") > 0);
    // The older one can still be used: its record is there.
    disk.remove(&name(checkpoints.0[1])).expect("there");
    let found = recover(&disk, &log);
    assert_eq!(found.recovery.checkpoint, Some(checkpoints.0[0]));
    disk.damage(&name(checkpoints.0[0]), 20, 1);
    let error = try_recover(&disk, &log).expect_err("refused").to_string();
    assert!(error.contains("it is damaged") && error.contains("move it away"), "{error}");
    drop(pin);
}

#[test]
fn a_checkpoint_of_other_data_or_another_history_is_not_used() {
    let disk = SimulatedDisk::new(1, ROOM);
    let mut writer = Writer::open(&disk);
    writer.add(300);
    let position = write(&disk, &writer.log, &mut Checkpoints::default());
    let other = StoreIdentity { incarnation: 78, ..identity() };
    let found = Checkpoints::recover(&disk, &other, |start| writer.log.cursor(start));
    let recovery = found.expect("recovered").recovery;
    assert!(recovery.refused[0].contains("other data") && !recovery.has_lost_records);
    // Drawn for the records that a repair has left: they stand behind the checkpoint.
    let redrawn = StoreIdentity { has_older_checkpoints: true, ..other };
    let found = Checkpoints::recover(&disk, &redrawn, |start| writer.log.cursor(start));
    assert_eq!(found.expect("recovered").recovery.checkpoint, Some(position));
    // A journal that has other records under the same numbers, as after a repair.
    let other = SimulatedDisk::new(2, ROOM);
    let mut second = Writer::open(&other);
    second.rng = SimRng::new(6);
    second.add(400);
    let copy = disk.contents(&name(position));
    other.create(&name(position)).expect("made").write_all_at(&copy, 0).expect("written");
    let found = recover(&other, &second.log);
    assert!(found.recovery.refused[0].contains("history"), "{:?}", found.recovery);
    assert!(found.recovery.has_lost_records, "those that it covers were durable");
    assert_same(&found.replica, &replayed(&second.log));
    let found = Checkpoints::recover(&other, &redrawn, |start| second.log.cursor(start));
    assert!(!found.expect("recovered").recovery.has_lost_records, "under another identity");
    // And one that ends before.
    let short = SimulatedDisk::new(3, ROOM);
    let mut third = Writer::open(&short);
    third.add(10);
    short.create(&name(position)).expect("made").write_all_at(&copy, 0).expect("written");
    let found = recover(&short, &third.log);
    assert_eq!((found.recovery.checkpoint, found.recovery.refused.len()), (None, 1));
    assert!(found.recovery.has_lost_records);
}

/// Two checkpoints, and a third one during which the machine stops at each call in turn.
#[test]
fn no_call_of_a_checkpoint_is_a_bad_one_to_stop_at() {
    let life = |stop: Option<u64>, seed: u64| {
        let disk = SimulatedDisk::new(seed, ROOM);
        let mut writer = Writer::open(&disk);
        let mut checkpoints = Checkpoints::default();
        let mut positions = Vec::new();
        for _ in 0..2 {
            writer.add(120);
            positions.push(write(&disk, &writer.log, &mut checkpoints));
        }
        writer.add(120);
        let replica = replayed(&writer.log);
        let before = disk.calls();
        if let Some(stop) = stop {
            disk.stop_after(stop);
        }
        let written = checkpoints.write(&disk, &replica);
        let calls = disk.calls() - before;
        let stopped = disk.is_stopped();
        assert_eq!(written.is_err(), stopped);
        drop(writer);
        disk.crash();
        let log = Log::open(disk.clone(), config()).expect("nothing stops it now");
        let found = recover(&disk, &log);
        assert_same(&found.replica, &replica);
        let used = found.recovery.checkpoint.expect("one is always whole");
        assert!(found.recovery.refused.is_empty(), "{:?}", found.recovery);
        if !stopped {
            assert_eq!(used, replica.position);
        }
        // It is one of the last two that were known, and the next one can be written.
        assert!(used >= positions[0]);
        let mut checkpoints = found.checkpoints;
        checkpoints.write(&disk, &found.replica).expect("the disk works");
        calls
    };
    let calls = life(None, 1);
    assert!((5..20).contains(&calls), "{calls}");
    for stop in 1..=calls {
        for seed in 0..20 {
            assert!(life(Some(stop), seed) >= stop.min(calls));
        }
    }
}
