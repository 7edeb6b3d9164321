//! Retention over a journal on a simulated disk.

mod crashes;
mod limits;

use super::*;
use crate::checkpoint::{Checkpoints, Recovered, StoreIdentity};
use crate::checkpointer::Checkpointer;
use lanecast_journal::{Durability, Journal, JournalConfig, Retention, Storage};
use lanecast_persistence::{StoreOutlet, StoreSettings};
use lanecast_sim::disk::SimulatedDisk;
use lanecast_wire::store::{
    Ballot, Consumption, Members, Registered, Run, StoreAddress, StoreFrame,
};
use std::time::Instant;

const SEGMENT: u64 = 64 << 10;
const LIMIT: u64 = 6 * SEGMENT;
/// Files beside the limit: the segment in use, one that is made, one that is recycled, and indexes.
const FILES_MAX: u64 = LIMIT + 4 * SEGMENT;
const LONG: Duration = Duration::from_secs(60);
const BODY: usize = 500;
const RUN: Run = Run { ballot: Ballot { epoch: 1, session: 1 }, start: 0 };

fn config() -> JournalConfig {
    let retention = Retention { bytes: Some(LIMIT), age: None };
    JournalConfig { segment_bytes: SEGMENT, retention, ..JournalConfig::default() }
}

/// A store's machine and log, without its server.
struct Keeper {
    disk: SimulatedDisk,
    machine: Store,
    log: JournalLog<SimulatedDisk>,
    task: RetentionTask,
    next: Vec<u64>,
}

impl Keeper {
    fn open(disk: SimulatedDisk, settings: StoreRetention) -> Self {
        Self::open_with(disk, settings, config(), |_, _| {})
    }

    /// The same with other segments; `on_recovered` is given what the journal says.
    fn open_with(
        disk: SimulatedDisk,
        settings: StoreRetention,
        config: JournalConfig,
        on_recovered: impl FnOnce(&SimulatedDisk, &mut Recovered<SimulatedDisk>),
    ) -> Self {
        let segment_bytes = config.segment_bytes;
        let journal = Journal::open(disk.clone(), config).expect("a journal");
        let identity = StoreIdentity {
            settings: StoreSettings::default(),
            incarnation: 7,
            has_older_checkpoints: false,
            segment_bytes,
        };
        let open = |start| journal.cursor(start, Durability::Persisted);
        let mut recovered = Checkpoints::recover(&disk, &identity, open).expect("recovered");
        on_recovered(&disk, &mut recovered);
        let (machine, catalog) = (recovered.replica.machine, recovered.replica.catalog);
        let next = machine.summaries().map(|stream| stream.next).collect();
        let log = JournalLog::new(journal, catalog, None);
        Self { disk, machine, log, task: RetentionTask::new(settings, segment_bytes), next }
    }

    fn new(settings: StoreRetention, topics: &[&str]) -> Self {
        let mut keeper = Self::open(SimulatedDisk::new(1, 64 << 20), settings);
        keeper.begin(topics);
        keeper
    }

    /// Begins a stream of each topic.
    fn begin(&mut self, topics: &[&str]) {
        for (stream, topic) in (0..).zip(topics) {
            let members = Members::without_groups(1, vec![("a".into(), 7)]);
            self.add(&LogRecord::Stream { stream, topic, source: 9 });
            self.add(&LogRecord::Promised { stream, ballot: RUN.ballot });
            let runs = vec![RUN];
            self.add(&LogRecord::Began { stream, number: 0, first: 0, members, runs });
            self.next.push(0);
        }
    }

    fn add(&mut self, record: &LogRecord<'_>) {
        self.log.append(record).expect("room");
        self.log.commit();
        self.machine.replay(record).expect("it follows");
    }

    /// Appends a message; its body begins with its sequence.
    fn send(&mut self, stream: u32) {
        let sequence = self.next[stream as usize];
        self.next[stream as usize] += 1;
        let mut body = [stream as u8; BODY];
        body[..8].copy_from_slice(&sequence.to_le_bytes());
        self.add(&LogRecord::Message { stream, sequence, body: &body });
    }

    fn consume(&mut self, stream: u32, next: u64) {
        let consumption = Consumption { run: RUN, next };
        self.register(stream, Registered::new(3, consumption));
    }

    fn register(&mut self, stream: u32, registered: Registered) {
        self.add(&LogRecord::Consumed { stream, registered });
    }

    /// Lets retention do what is due by now.
    fn retain(&mut self) {
        let deadline = Instant::now() + LONG;
        let waits = loop {
            assert!(Instant::now() < deadline, "retention does not end");
            let last = self.log.appended();
            while self.log.persisted() < last {
                assert!(Instant::now() < deadline, "the disk stands still");
                std::thread::yield_now();
            }
            self.task.step(&mut self.machine, &mut self.log, 0).expect("room");
            self.log.commit();
            // More is moved when others have written as much.
            let waits = self.task.move_at > self.task.others_bytes(&self.log);
            if self.log.retention_due().is_none() || waits && self.task.made.is_none() {
                break waits;
            }
            std::thread::yield_now();
        };
        // A file that is being made or removed is counted at most once. While more has to wait, the
        // journal is longer by half of what is kept at most, which is half of the limit.
        let most = FILES_MAX + if waits { LIMIT / 4 } else { 0 };
        while self.file_bytes() > most {
            let bytes = self.file_bytes();
            assert!(Instant::now() < deadline, "{bytes} bytes on disk");
            std::thread::yield_now();
        }
    }

    fn file_bytes(&self) -> u64 {
        let names = self.disk.list().expect("names");
        names.iter().filter(|name| name.ends_with(".segment")).count() as u64 * SEGMENT
    }

    fn first(&self, stream: u32) -> u64 {
        self.machine.summaries().nth(stream as usize).expect("a stream").first
    }

    /// Reads a stream from its first message on, and checks that all are there.
    #[track_caller]
    fn check(&self, stream: u32) {
        let (mut expected, first) = (self.first(stream), self.first(stream));
        let mut limit = 0;
        // As a donor answers: some messages at a time.
        while expected < self.next[stream as usize] {
            limit += 10;
            assert!(limit < 100_000, "stream {stream} ends at {expected}, begins at {first}");
            let end = expected + 10;
            self.log.read(stream, expected, &mut |sequence, _, body| {
                assert_eq!(sequence, expected);
                assert_eq!((body.len(), &body[..8]), (BODY, &sequence.to_le_bytes()[..]));
                assert_eq!(body[8], stream as u8);
                let is_taken = expected < end;
                expected += u64::from(is_taken);
                is_taken
            });
            assert_eq!(self.log.take_read_error(), None);
        }
    }
}

#[test]
fn the_oldest_messages_go_and_the_others_are_read() {
    let mut keeper = Keeper::new(StoreRetention::default(), &["orders"]);
    for _ in 0..50 {
        (0..100).for_each(|_| keeper.send(0));
        keeper.retain();
    }
    let kept = keeper.next[0] - keeper.first(0);
    // Up to two segments less than the limit, since whole segments go.
    let most = LIMIT / (BODY as u64 + 69);
    assert!((most / 2..=most + 300).contains(&kept), "{kept} of {most}");
    keeper.check(0);
    assert_eq!(keeper.task.given_up(), 0, "no receiver is registered");
}

#[test]
fn a_slow_topic_is_moved_forward_and_holds_no_segments() {
    let mut keeper = Keeper::new(StoreRetention::default(), &["orders", "alarms"]);
    keeper.consume(1, 0);
    let time = |sequence: u64| 1_000 * (sequence + 1);
    for round in 0..40 {
        keeper.log.set_time(time(round));
        (0..100).for_each(|_| keeper.send(0));
        keeper.send(1);
        keeper.retain();
        if round == 20 {
            keeper.consume(1, 10);
        }
    }
    assert!(keeper.first(0) > 3_000, "{}", keeper.first(0));
    let first = keeper.first(1);
    assert!((1..=10).contains(&first), "consumed ones may go, others not: {first}");
    assert_eq!(keeper.task.given_up(), 0);
    keeper.check(0);
    keeper.check(1);
    // They are found by the time at which they were published, wherever they are now.
    for sequence in first..40 {
        assert_eq!(keeper.log.first_since(1, time(sequence)), Some(sequence));
    }
    // A start finds them where they are now.
    let Keeper { disk, log, next, .. } = keeper;
    log.close().expect("closed");
    let oldest = disk.list().expect("names").into_iter().find(|it| it.ends_with(".segment"));
    assert_ne!(oldest.as_deref(), Some("0000000000000001.segment"));
    drop(next);
}

#[test]
fn too_much_that_is_not_consumed_is_given_up_and_counted() {
    let settings = StoreRetention { unconsumed_bytes: 100_000, ..StoreRetention::default() };
    let mut keeper = Keeper::new(settings, &["orders", "alarms"]);
    keeper.consume(0, 0);
    keeper.consume(1, 0);
    for _ in 0..40 {
        (0..100).for_each(|_| keeper.send(0));
        keeper.send(1);
        keeper.retain();
    }
    assert!(keeper.first(0) > 3_000 && keeper.task.given_up() > 3_000);
    assert_eq!(keeper.first(1), 0, "that is little");
    keeper.check(0);
    keeper.check(1);
}

/// As many unconsumed messages as nearly fill a segment, of a stream that its receivers pace or
/// not; then other topics write several turns of the journal.
fn keep_a_segment(is_by_receivers: bool) -> Keeper {
    let settings = StoreRetention { unconsumed_bytes: SEGMENT, ..StoreRetention::default() };
    let mut keeper = Keeper::new(settings, &["orders", "quotes"]);
    keeper.add(&LogRecord::Paced { stream: 0, is_by_receivers });
    keeper.consume(0, 0);
    (0..100).for_each(|_| keeper.send(0));
    for _ in 0..60 {
        (0..100).for_each(|_| keeper.send(1));
        keeper.retain();
    }
    assert!(keeper.first(1) > 4_000, "{}", keeper.first(1));
    keeper.check(0);
    keeper.check(1);
    keeper
}

#[test]
fn unconsumed_messages_of_a_whole_segment_are_moved_on() {
    for is_by_receivers in [true, false] {
        let keeper = keep_a_segment(is_by_receivers);
        assert_eq!((keeper.first(0), keeper.task.given_up()), (0, 0), "paced: {is_by_receivers}");
    }
}

#[test]
fn a_receiver_paced_stream_loses_nothing_beyond_its_bound() {
    // The store takes no more of it at the bound; what it took before is kept all the same.
    let settings = StoreRetention { unconsumed_bytes: 10_000, ..StoreRetention::default() };
    let mut keeper = Keeper::new(settings, &["orders", "quotes"]);
    keeper.add(&LogRecord::Paced { stream: 0, is_by_receivers: true });
    keeper.consume(0, 0);
    (0..200).for_each(|_| keeper.send(0));
    for round in 0..40 {
        (0..100).for_each(|_| keeper.send(1));
        keeper.retain();
        if round == 20 {
            keeper.consume(0, 150);
        }
    }
    assert_eq!(keeper.task.given_up(), 0);
    assert!((1..=150).contains(&keeper.first(0)), "{}", keeper.first(0));
    keeper.check(0);
    keeper.check(1);
}

#[test]
fn a_receiver_that_holds_nothing_back_has_the_newest_within_the_bound() {
    let settings = StoreRetention { unconsumed_bytes: SEGMENT, ..StoreRetention::default() };
    let mut keeper = Keeper::new(settings, &["orders", "quotes"]);
    keeper.add(&LogRecord::Paced { stream: 0, is_by_receivers: true });
    keeper.consume(0, 0);
    let consumption = Consumption { run: RUN, next: 0 };
    let slow = Registered { is_non_blocking: true, ..Registered::new(4, consumption) };
    keeper.register(0, slow);
    for round in 1..=40 {
        (0..50).for_each(|stream| keeper.send(stream % 2));
        // The other one consumes all but the last hundred.
        keeper.consume(0, (25 * round as u64).saturating_sub(100));
        keeper.retain();
    }
    let (first, next) = (keeper.first(0), keeper.next[0]);
    assert!((1..=next - 100).contains(&first), "{first} of {next}");
    assert!(keeper.task.given_up() > 0, "the slow one has lost some");
    keeper.check(0);
}

#[test]
fn source_paced_streams_share_half_of_the_limit() {
    let settings = StoreRetention {
        bytes: Some(LIMIT),
        unconsumed_bytes: 150_000,
        ..StoreRetention::default()
    };
    let mut keeper = Keeper::new(settings, &["orders", "alarms", "quotes"]);
    keeper.consume(0, 0);
    keeper.consume(1, 0);
    (0..230).for_each(|_| keeper.send(0));
    (0..200).for_each(|_| keeper.send(1));
    for _ in 0..60 {
        (0..100).for_each(|_| keeper.send(2));
        keeper.retain();
    }
    let kept = [0, 1].map(|stream| keeper.next[stream as usize] - keeper.first(stream));
    let bytes = (kept[0] + kept[1]) * (BODY as u64 + 69);
    assert!(keeper.task.given_up() > 0 && kept[0] < 230, "{kept:?}");
    assert!((LIMIT / 4..LIMIT / 2 + SEGMENT).contains(&bytes), "{kept:?}: {bytes}");
    (0..3).for_each(|stream| keeper.check(stream));
}

#[test]
fn a_topic_has_limits_of_its_own() {
    let topic =
        TopicRetention { topic: "orders".into(), bytes: Some(70_000), ..TopicRetention::default() };
    let settings = StoreRetention { topics: vec![topic], ..StoreRetention::default() };
    let mut keeper = Keeper::new(settings, &["orders", "quotes"]);
    for _ in 0..5 {
        (0..100).for_each(|stream| keeper.send(stream % 2));
        keeper.retain();
    }
    let kept = (keeper.next[0] - keeper.first(0)) * (BODY as u64 + 69);
    assert!((60_000..150_000).contains(&kept), "{kept}");
    assert_eq!(keeper.first(1), 0, "the journal is within its limit");
    keeper.check(0);
}

#[test]
fn a_full_disk_is_refused_and_heals() {
    let mut keeper = Keeper::new(StoreRetention::default(), &["orders"]);
    keeper.disk.set_capacity(3 * SEGMENT);
    let (deadline, mut sequence) = (Instant::now() + LONG, 0);
    while !keeper.log.is_disk_full() {
        assert!(Instant::now() < deadline, "it is never full");
        let record = LogRecord::Message { stream: 0, sequence, body: &[7; BODY] };
        match keeper.log.append(&record) {
            Ok(_) => {
                keeper.log.commit();
                keeper.machine.replay(&record).expect("it follows");
                sequence += 1;
            }
            Err(LogFull) => std::thread::yield_now(),
        }
    }
    let message = LogRecord::Message { stream: 0, sequence, body: b"more" };
    assert_eq!(keeper.log.append(&message), Err(LogFull));
    assert_eq!(keeper.log.failure(), None, "it is no damage");
    keeper.disk.set_capacity(64 << 20);
    while keeper.log.append(&message).is_err() || keeper.log.is_disk_full() {
        assert!(Instant::now() < deadline, "it does not heal");
        // As the server does now and then.
        keeper.log.retry_space();
        std::thread::yield_now();
    }
    keeper.machine.replay(&message).expect("it follows");
}

/// The journal cannot tell that the disk is full before it has tried to make a segment.
#[test]
fn the_reserve_is_kept_while_the_next_segment_is_being_made() {
    let config = JournalConfig { max_pending_bytes: SEGMENT as usize / 4, ..config() };
    let (disk, settings) = (SimulatedDisk::new(1, 64 << 20), StoreRetention::default());
    let mut keeper = Keeper::open_with(disk, settings, config, |_, _| {});
    keeper.begin(&["orders"]);
    keeper.log.wait_for_segment();
    keeper.disk.hold_preallocations(true);
    let (deadline, mut bytes) = (Instant::now() + LONG, 0);
    let full = loop {
        let record = LogRecord::Message { stream: 0, sequence: keeper.next[0], body: &[7; BODY] };
        if keeper.log.append(&record).is_err() {
            break record;
        }
        keeper.log.commit();
        keeper.machine.replay(&record).expect("it follows");
        keeper.next[0] += 1;
        bytes += BODY as u64;
        assert!(bytes < 2 * SEGMENT, "the reserve was taken");
        while keeper.log.persisted() < keeper.log.appended() {
            assert!(Instant::now() < deadline, "the disk stands still");
            std::thread::yield_now();
        }
    };
    assert!(!keeper.log.is_disk_full(), "as far as is known");
    // The records of retention find room all the same.
    for sequence in 0..10 {
        let record = LogRecord::Moved { stream: 0, sequence, unix_ns: 1, body: &[7; BODY] };
        keeper.log.append(&record).expect("room");
    }
    keeper.log.append(&LogRecord::Trimmed { stream: 0, first: 10 }).expect("room");
    keeper.log.commit();
    while keeper.log.persisted() < keeper.log.appended() {
        assert!(Instant::now() < deadline, "they wait for another segment");
        std::thread::yield_now();
    }
    keeper.disk.hold_preallocations(false);
    while keeper.log.append(&full).is_err() {
        assert!(Instant::now() < deadline, "it does not go on");
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_heals_by_the_age_of_its_messages() {
    let retention = Retention { bytes: None, age: Some(Duration::from_millis(1)) };
    let config = JournalConfig { retention, ..config() };
    let settings = StoreRetention { age: retention.age, ..StoreRetention::default() };
    let disk = SimulatedDisk::new(1, 64 << 20);
    let (checkpoint_disk, pin_disk) = (disk.clone(), disk.clone());
    let journal = Journal::open(disk.clone(), config.clone()).expect("a journal");
    let identity = StoreIdentity {
        settings: StoreSettings::default(),
        incarnation: 7,
        has_older_checkpoints: false,
        segment_bytes: SEGMENT,
    };
    let open = |start| journal.cursor(start, Durability::Persisted);
    let recovered = Checkpoints::recover(&pin_disk, &identity, open).expect("recovered");
    let (machine, catalog) = (recovered.replica.machine.clone(), recovered.replica.catalog.clone());
    // No checkpoint is due for the bytes of so few records.
    let pin = journal.pin(1);
    let checkpointer =
        Checkpointer::start(checkpoint_disk, recovered, pin, 3 * SEGMENT / 2, 1 << 20)
            .expect("a thread");
    let log = JournalLog::new(journal, catalog, Some(checkpointer));
    let task = RetentionTask::new(settings, SEGMENT);
    let mut keeper = Keeper { disk, machine, log, task, next: Vec::new() };
    keeper.log.set_time(1);
    keeper.begin(&["orders"]);
    // Room for four segments, and for some files beside them.
    keeper.disk.set_capacity(4 * SEGMENT + SEGMENT / 2);
    let deadline = Instant::now() + LONG;
    let mut refused = 0;
    while refused < 1_000 {
        assert!(Instant::now() < deadline, "it is never full");
        let sequence = keeper.next[0];
        let record = LogRecord::Message { stream: 0, sequence, body: &[7; BODY] };
        if keeper.log.append(&record).is_ok() {
            keeper.next[0] += 1;
            keeper.log.commit();
            keeper.machine.replay(&record).expect("it follows");
            // One at a time, as a disk takes them that is faster than the publisher.
            while keeper.log.persisted() < keeper.log.appended() && !keeper.log.is_disk_full() {
                assert!(Instant::now() < deadline, "the disk stands still");
                std::thread::yield_now();
            }
        } else {
            refused += 1;
        }
        // A busy machine may fill a segment before the journal tries to make the next.
        keeper.log.wait_for_segment();
        keeper.log.look_at_disk();
    }
    assert_eq!(keeper.log.failure(), None);
    // Nothing but retention makes room.
    let (before, mut unix_ns) = (keeper.next[0], 1);
    while keeper.next[0] < before + 400 {
        assert!(Instant::now() < deadline, "it does not heal by itself");
        unix_ns += 1_000_000;
        keeper.log.set_time(unix_ns);
        let _ = keeper.task.step(&mut keeper.machine, &mut keeper.log, unix_ns);
        keeper.log.commit();
        keeper.log.look_at_disk();
        keeper.log.retry_space();
        let sequence = keeper.next[0];
        let record = LogRecord::Message { stream: 0, sequence, body: &[7; BODY] };
        if keeper.log.append(&record).is_ok() {
            keeper.next[0] += 1;
            keeper.machine.replay(&record).expect("it follows");
        }
        keeper.log.commit();
        std::thread::yield_now();
    }
    assert!(keeper.first(0) > 0, "the oldest messages were given up");
}

#[test]
fn a_disk_that_fails_takes_nothing_any_more() {
    let mut keeper = Keeper::new(StoreRetention::default(), &["orders"]);
    let deadline = Instant::now() + LONG;
    while keeper.file_bytes() < 2 * SEGMENT {
        assert!(Instant::now() < deadline, "no spare segment is made");
        std::thread::yield_now();
    }
    // The next one is that of the records now.
    keeper.disk.fail_sync_after(1);
    keeper.send(0);
    let failure = loop {
        assert!(Instant::now() < deadline, "the failure is not told");
        if let Some(failure) = keeper.log.failure() {
            break failure.to_string();
        }
        std::thread::yield_now();
    };
    assert!(failure.contains("input/output error"), "{failure}");
    let record = LogRecord::Message { stream: 0, sequence: 1, body: b"late" };
    assert_eq!(keeper.log.append(&record), Err(LogFull));
    assert!(keeper.log.persisted() < keeper.log.appended());
}

/// Answers that nothing reads.
struct Unread;

impl StoreOutlet for Unread {
    fn reply(&mut self, _: u64, _: &str, _: u64, _: &StoreFrame<'_>) {}

    fn request(&mut self, _: &str, _: &str, _: u64, _: &StoreFrame<'_>) {}
}

#[test]
fn a_stream_that_is_copied_is_waited_for_without_haste() {
    let mut keeper = Keeper::new(StoreRetention::default(), &["orders"]);
    let deadline = Instant::now() + LONG;
    while keeper.log.retention_due().is_none() {
        assert!(Instant::now() < deadline, "retention has nothing to do");
        keeper.send(0);
        while keeper.log.persisted() < keeper.log.appended() {
            assert!(Instant::now() < deadline, "the disk stands still");
            std::thread::yield_now();
        }
    }
    let ballot = Ballot { epoch: 2, session: 2 };
    let start = keeper.next[0] + 100;
    let members = Members::without_groups(1, vec![("a".into(), 7)]);
    let runs = vec![RUN, Run { ballot, start }];
    let begin = StoreFrame::Begin {
        ballot,
        log: RUN.ballot,
        start,
        number: 0,
        is_receiver_paced: false,
        donor: "b",
        members,
        runs,
    };
    let address = StoreAddress { client: 2, source: 9, topic: "orders" };
    for frame in [StoreFrame::Open { ballot }, begin] {
        keeper.machine.on_frame(address, &frame, 0, &mut keeper.log, &mut Unread);
    }
    assert!(keeper.machine.summaries().all(|stream| stream.is_copying));
    let step = keeper.task.step(&mut keeper.machine, &mut keeper.log, 0);
    assert_eq!(step.ok(), Some(false), "the server would go on at once, for nothing");
    assert!(keeper.log.retention_due().is_some());
}

#[test]
fn copies_for_a_run_that_never_began_are_given_up() {
    let mut keeper = Keeper::new(StoreRetention::default(), &["orders", "quotes"]);
    let (stream, body) = (0, &[7; BODY][..]);
    keeper.add(&LogRecord::Promised { stream, ballot: Ballot { epoch: 2, session: 2 } });
    keeper.add(&LogRecord::Truncated { stream, next: 0 });
    // More than retention moves on for a segment.
    for sequence in 0..200 {
        keeper.add(&LogRecord::Copied { stream, sequence, unix_ns: 1, body });
    }
    // The store starts again, and neither the publisher nor the donor is there any more.
    keeper.machine.tick(0, &mut keeper.log, &mut Unread);
    for _ in 0..2_000 {
        keeper.send(1);
    }
    keeper.retain();
}
