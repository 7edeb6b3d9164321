//! Behaviour of appenders, waiters, cursors and tools on a simulated disk.
#![forbid(unsafe_code)]

use lanecast_journal::{
    AppendError, Durability, Entry, Journal, JournalConfig, Log, PersistError, ReadError, Reader,
    Retention, Start, StorageErrorKind, WaitError,
};
use lanecast_sim::disk::SimulatedDisk;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SEGMENT: u64 = 16 << 10;
const ROOM: u64 = 4 << 20;
const LONG: Duration = Duration::from_secs(60);

fn settings() -> JournalConfig {
    JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() }
}

fn entry(body: &[u8]) -> Entry<'_> {
    Entry { topic: 1, client: 2, client_sequence: 3, unix_ns: 4, flags: 5, head: b"", body }
}

/// A time in which a committer that takes held records would have written them. Only passing time
/// shows that nothing happens: on a busy machine a fault may stay hidden, but none is invented.
const A_WHILE: Duration = Duration::from_millis(20);

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A log with records of 200 bytes, `unix_ns` ten times the sequence.
fn filled(disk: &SimulatedDisk, settings: JournalConfig, count: u64) -> Log<SimulatedDisk> {
    let mut log = Log::open(disk.clone(), settings).unwrap();
    for sequence in 1..=count {
        log.append(&[Entry { unix_ns: 10 * sequence, ..entry(&[7; 200]) }]).unwrap();
        log.commit().unwrap();
    }
    log
}

#[test]
fn records_come_back_as_they_were_appended() {
    let journal = Journal::open(SimulatedDisk::new(1, ROOM), settings()).unwrap();
    let last = journal.append(&[entry(b"one"), entry(b""), entry(&[9; 5000])]).unwrap();
    assert_eq!(last, 1..=3);
    assert!(journal.append(&[]).unwrap().is_empty());
    journal.wait(3, Durability::Persisted, LONG).unwrap();
    let mut cursor = journal.cursor(Start::Oldest, Durability::Persisted).unwrap();
    let record = cursor.read().unwrap().unwrap();
    assert_eq!((record.sequence, record.topic, record.client), (1, 1, 2));
    assert_eq!((record.client_sequence, record.unix_ns, record.flags), (3, 4, 5));
    assert_eq!(record.body, b"one");
    let mut lengths = Vec::new();
    assert_eq!(cursor.for_each(9, |record| lengths.push(record.body.len())), Ok(2));
    assert_eq!(lengths, [0, 5000]);
    journal.close().unwrap();
}

#[test]
fn invalid_settings_and_records_are_refused_at_once() {
    let disk = SimulatedDisk::new(1, ROOM);
    let odd = JournalConfig { segment_bytes: SEGMENT + 1, ..settings() };
    assert!(Journal::open(disk.clone(), odd).unwrap_err().to_string().contains("segment_bytes"));
    let journal = Journal::open(disk, settings()).unwrap();
    let longest = (SEGMENT - 8304) as usize;
    let too_long = vec![0; longest + 8];
    let many = [entry(b"fits"), entry(&too_long)];
    assert_eq!(journal.append(&many), Err(AppendError::TooLong));
    assert_eq!(journal.persist(&[entry(&vec![1; longest])], LONG), Ok(1), "all or none");
    assert_eq!(journal.wait(2, Durability::Written, LONG), Err(WaitError::UnknownSequence));
}

#[test]
fn times_never_run_backwards() {
    let mut log = Log::open(SimulatedDisk::new(1, ROOM), settings()).unwrap();
    for unix_ns in [50, 20, 60] {
        log.append(&[Entry { unix_ns, ..entry(b"") }]).unwrap();
    }
    log.commit().unwrap();
    let mut times = Vec::new();
    let mut cursor = log.cursor(Start::Oldest).unwrap();
    cursor.for_each(9, |record| times.push(record.unix_ns)).unwrap();
    assert_eq!(times, [50, 50, 60]);
}

#[test]
fn too_much_in_memory_is_back_pressure() {
    let small = JournalConfig { max_pending_bytes: 1000, ..settings() };
    let mut log = Log::open(SimulatedDisk::new(1, ROOM), small).unwrap();
    let mut accepted = 0;
    let refusal = loop {
        match log.append(&[entry(&[0; 200])]) {
            Ok(_) => accepted += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!((refusal, accepted), (AppendError::Full, 4));
    assert!(refusal.is_back_pressure());
    assert_eq!(log.commit(), Ok(4));
    assert_eq!(log.append(&[entry(b"again")]), Ok(5..=5));
}

/// A journal with two records that are held.
fn holding(settings: JournalConfig) -> Journal<SimulatedDisk> {
    let journal = Journal::open(SimulatedDisk::new(1, ROOM), settings).unwrap();
    for sequence in 1..=2 {
        assert_eq!(journal.append_held(&[entry(&[0; 500])]), Ok(sequence..=sequence));
    }
    journal
}

#[test]
fn held_records_are_written_when_they_are_flushed() {
    let journal = holding(settings());
    let persisted = || journal.last_sequence(Durability::Persisted);
    std::thread::sleep(A_WHILE);
    assert_eq!((persisted(), journal.pending_bytes() > 1000), (0, true));
    journal.flush();
    wait_for("the flush", || persisted() == 2);
    assert_eq!(journal.append_held(&[entry(b"")]), Ok(3..=3));
    std::thread::sleep(A_WHILE);
    assert_eq!(persisted(), 2, "held again");
    journal.append(&[entry(b"")]).unwrap();
    wait_for("the append", || persisted() == 4);
    journal.close().unwrap();
}

#[test]
fn held_records_keep_no_thread_waiting() {
    let journal = holding(settings());
    journal.wait(1, Durability::Persisted, LONG).unwrap();
    assert_eq!(journal.last_sequence(Durability::Persisted), 2, "in one batch");
    assert_eq!(journal.append_held(&[entry(b"")]), Ok(3..=3));
    assert_eq!(journal.persist(&[entry(b"")], LONG), Ok(4));
    journal.append_held(&[entry(b"")]).unwrap();
    let mut cursor = journal.cursor(Start::Sequence(5), Durability::Written).unwrap();
    assert!(cursor.read().unwrap().is_none());
    journal.close().unwrap();

    let journal = holding(JournalConfig { max_pending_bytes: 1000, ..settings() });
    assert_eq!(journal.append_held(&[entry(b"")]), Err(AppendError::Full));
    wait_for("room", || journal.append_held(&[entry(b"")]) == Ok(3..=3));
    let disk = SimulatedDisk::new(1, ROOM);
    let journal = Journal::open(disk.clone(), settings()).unwrap();
    journal.append_held(&[entry(b"last")]).unwrap();
    drop(journal);
    let log = Log::open(disk, settings()).unwrap();
    assert_eq!(log.persisted(), 1, "written when the journal is closed");
}

#[test]
fn a_full_disk_is_back_pressure_and_heals() {
    let disk = SimulatedDisk::new(1, 3 * SEGMENT + 4096);
    let journal = Journal::open(disk.clone(), settings()).unwrap();
    let (mut accepted, mut refused) = (0, 0);
    while refused < 3 {
        match journal.persist(&[entry(&[8; 1000])], Duration::from_millis(20)) {
            Ok(last) => accepted = last,
            Err(PersistError::Wait(WaitError::NoSpace | WaitError::TimedOut)) => accepted += 1,
            Err(PersistError::Append(AppendError::NoSpace)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(accepted > 16 && journal.last_sequence(Durability::Persisted) < accepted);
    assert_eq!(journal.failure(), None, "it is no damage");
    disk.set_capacity(ROOM);
    journal.wait(accepted, Durability::Persisted, LONG).unwrap();
    assert_eq!(journal.persist(&[entry(b"on")], LONG), Ok(accepted + 1));
    journal.close().unwrap();
    disk.crash();
    let log = Log::open(disk, settings()).unwrap();
    assert_eq!(log.recovered().last, accepted + 1);
}

#[test]
fn a_failed_synchronisation_is_for_good() {
    let disk = SimulatedDisk::new(1, ROOM);
    let journal = Journal::open(disk.clone(), settings()).unwrap();
    journal.wait_preallocated().unwrap();
    assert_eq!(journal.persist(&[entry(b"before")], LONG), Ok(1));
    disk.fail_sync_after(1);
    let lost = journal.persist(&[entry(b"lost")], LONG);
    assert_eq!(lost, Err(PersistError::Wait(WaitError::Failed)));
    assert_eq!(journal.append(&[entry(b"after")]), Err(AppendError::Failed));
    assert_eq!(journal.last_sequence(Durability::Persisted), 1);
    assert_eq!(journal.pending_bytes(), 0, "to wait would be in vain");
    let failure = journal.failure().unwrap();
    assert!(
        failure.kind == StorageErrorKind::Other
            && failure.to_string().contains("input/output error")
    );
    assert!(journal.close().is_err());
    // Reopening on the same machine may find the record, and then makes it durable.
    disk.kill();
    let found = Log::open(disk.clone(), settings()).unwrap().recovered().last;
    disk.crash();
    assert!(Log::open(disk, settings()).unwrap().recovered().last >= found);
}

#[test]
fn cursors_start_where_they_are_told() {
    let disk = SimulatedDisk::new(1, ROOM);
    let log = filled(&disk, settings(), 500);
    let at = |start| log.cursor(start).unwrap().read().unwrap().map(|record| record.sequence);
    assert_eq!(at(Start::Oldest), Some(1));
    for sequence in [1, 2, 29, 30, 31, 32, 33, 250, 499, 500] {
        assert_eq!(at(Start::Sequence(sequence)), Some(sequence));
        assert_eq!(at(Start::Time(10 * sequence)), Some(sequence));
        assert_eq!(at(Start::Time(10 * sequence - 9)), Some(sequence));
    }
    assert_eq!([at(Start::Sequence(501)), at(Start::End), at(Start::Time(5001))], [None; 3]);
    assert_eq!(at(Start::Time(0)), Some(1));
    let ahead = log.cursor(Start::Sequence(502)).unwrap_err();
    assert_eq!(ahead, ReadError::Ahead { requested: 502, next: 501 });
    // The same without an index, through a reader.
    let reader = Reader::open(disk).unwrap();
    for sequence in [1, 77, 500] {
        let mut cursor = reader.cursor(Start::Time(10 * sequence)).unwrap();
        assert_eq!(cursor.read().unwrap().unwrap().sequence, sequence);
        let mut cursor = reader.cursor(Start::Sequence(sequence)).unwrap();
        assert_eq!(cursor.read().unwrap().unwrap().sequence, sequence);
    }
    assert_eq!(reader.cursor(Start::End).unwrap().read(), Ok(None));
}

#[test]
fn cursors_follow_the_end_across_segments() {
    let disk = SimulatedDisk::new(1, ROOM);
    let journal = Arc::new(Journal::open(disk.clone(), settings()).unwrap());
    let mut inside = journal.cursor(Start::End, Durability::Persisted).unwrap();
    let mut beside = Reader::open(disk).unwrap().cursor(Start::End).unwrap();
    for sequence in 1..=300 {
        assert_eq!(inside.read(), Ok(None));
        assert!(!inside.wait(Duration::ZERO));
        assert_eq!(beside.read(), Ok(None));
        journal.persist(&[entry(&[1; 200])], LONG).unwrap();
        assert!(inside.wait(LONG));
        assert_eq!(inside.read().unwrap().unwrap().sequence, sequence);
        assert_eq!(beside.read().unwrap().unwrap().sequence, sequence);
    }
}

#[test]
fn retention_removes_the_oldest_and_nothing_that_is_held() {
    let disk = SimulatedDisk::new(1, ROOM);
    let retention = Retention { bytes: Some(3 * SEGMENT), age: None };
    let mut log = filled(&disk, JournalConfig { retention, ..settings() }, 300);
    let pin = log.pin(100);
    let mut cursor = log.cursor(Start::Sequence(60)).unwrap();
    assert!(log.apply_retention().unwrap() > 0);
    assert_eq!(cursor.read().unwrap().unwrap().sequence, 60);
    drop(cursor);
    log.apply_retention().unwrap();
    let oldest = |log: &Log<SimulatedDisk>| {
        log.cursor(Start::Oldest).unwrap().read().unwrap().unwrap().sequence
    };
    assert!((61..=100).contains(&oldest(&log)), "{}", oldest(&log));
    let gone = log.cursor(Start::Sequence(1)).unwrap_err();
    assert!(matches!(gone, ReadError::Removed { requested: 1, .. }), "{gone}");
    pin.move_to(290);
    log.apply_retention().unwrap();
    assert!((200..=290).contains(&oldest(&log)), "{}", oldest(&log));
    drop((pin, log));
    let log = Log::open(disk, settings()).unwrap();
    assert_eq!(log.recovered().last, 300);
    assert!(log.recovered().first > 100);
}

#[test]
fn retention_by_age_keeps_the_newest_segment() {
    let disk = SimulatedDisk::new(1, ROOM);
    let retention = Retention { bytes: None, age: Some(Duration::from_secs(1)) };
    // All records are of 1970.
    let mut log = filled(&disk, JournalConfig { retention, ..settings() }, 300);
    assert!(log.apply_retention().unwrap() > 5);
    assert_eq!(log.apply_retention(), Ok(0));
    assert_eq!(log.append(&[entry(b"next")]), Ok(301..=301));
    log.commit().unwrap();
}

/// A wall clock that jumps ages nothing where a program dates records by a clock of its own.
#[test]
fn records_age_by_the_time_that_the_program_tells() {
    let disk = SimulatedDisk::new(1, ROOM);
    let retention = Retention { bytes: None, age: Some(Duration::from_secs(1)) };
    drop(filled(&disk, settings(), 300));
    let journal = Journal::open(disk, JournalConfig { retention, ..settings() }).unwrap();
    journal.set_time(1_000_000_000);
    assert_eq!((journal.retention_due(), journal.apply_retention()), (None, Ok(0)));
    journal.set_time(1_000_000_000_000);
    assert!(journal.retention_due().is_some() && journal.apply_retention().unwrap() > 5);
}

#[test]
fn a_payload_in_two_pieces_is_one_in_the_journal() {
    let payload: Vec<u8> = (0..100).collect();
    let open = || Log::open(SimulatedDisk::new(1, 4 << 20), settings()).unwrap();
    let (mut log, mut whole) = (open(), open());
    for at in 0..=payload.len() {
        let (head, body) = payload.split_at(at);
        log.append(&[Entry { head, ..entry(body) }]).unwrap();
        whole.append(&[entry(&payload)]).unwrap();
    }
    log.commit().unwrap();
    whole.commit().unwrap();
    let records = |log: &Log<SimulatedDisk>| {
        let (mut cursor, mut bodies) = (log.cursor(Start::Oldest).unwrap(), Vec::new());
        while let Some(record) = cursor.read().unwrap() {
            bodies.push(record.body.to_vec());
        }
        bodies
    };
    assert_eq!(records(&log), vec![payload.clone(); 101]);
    assert_eq!(records(&log), records(&whole));
    // The limit counts both pieces.
    let half = vec![0; SEGMENT as usize / 2];
    let long = Entry { head: &half, ..entry(&half) };
    assert_eq!(log.append(&[long]), Err(AppendError::TooLong));
}

#[test]
fn a_cursor_moves_to_another_record() {
    let journal = Journal::open(SimulatedDisk::new(1, 64 << 20), settings()).unwrap();
    let last = journal.persist(&[entry(&[7; 3_000]); 40], LONG).unwrap();
    let mut cursor = journal.cursor(Start::Oldest, Durability::Persisted).unwrap();
    assert_eq!(cursor.end(), last);
    for sequence in [1, last, 20, 2, 40] {
        cursor.move_to(Start::Sequence(sequence)).unwrap();
        assert_eq!(cursor.read().unwrap().map(|record| record.sequence), Some(sequence));
    }
    assert!(cursor.move_to(Start::Sequence(last + 2)).is_err());
    assert_eq!(cursor.read().unwrap().map(|record| record.sequence), None, "it stays");
    journal.persist(&[entry(b"next")], LONG).unwrap();
    assert_eq!(cursor.read().unwrap().map(|record| record.sequence), Some(last + 1));
    assert_eq!(cursor.end(), last + 1);
}

#[test]
fn many_threads_have_one_order_and_their_own() {
    let journal = Journal::open(SimulatedDisk::new(1, 64 << 20), settings()).unwrap();
    std::thread::scope(|scope| {
        for client in 0..8_u32 {
            let journal = &journal;
            scope.spawn(move || {
                for client_sequence in 1..=200_u64 {
                    let body = client_sequence.to_le_bytes();
                    let entry = Entry { client, client_sequence, body: &body, ..entry(&[]) };
                    let sequence = journal.persist(&[entry], LONG).unwrap();
                    assert!(journal.last_sequence(Durability::Persisted) >= sequence);
                }
            });
        }
    });
    let mut last = [0; 8];
    let mut cursor = journal.cursor(Start::Oldest, Durability::Persisted).unwrap();
    let count = cursor.for_each(usize::MAX, |record| {
        let last = &mut last[record.client as usize];
        assert_eq!(record.client_sequence, *last + 1);
        assert_eq!(record.body, record.client_sequence.to_le_bytes());
        *last += 1;
    });
    assert_eq!((count, last), (Ok(1600), [200; 8]));
}

#[test]
fn a_listener_hears_of_all_that_is_persisted() {
    let (sender, heard) = std::sync::mpsc::channel();
    let disk = SimulatedDisk::new(1, ROOM);
    let listener = move |sequence| {
        let _ = sender.send(sequence);
    };
    let journal = Journal::open_with(disk, settings(), listener).unwrap();
    for _ in 0..50 {
        journal.append(&[entry(b"x"), entry(b"y")]).unwrap();
    }
    wait_for("the last record", || heard.try_iter().last() == Some(100));
}

#[test]
fn spares_of_another_length_are_made_anew() {
    let disk = SimulatedDisk::new(1, ROOM);
    let mut log = filled(&disk, settings(), 100);
    log.preallocate().unwrap();
    drop(log);
    let larger = JournalConfig { segment_bytes: 4 * SEGMENT, ..settings() };
    let mut log = Log::open(disk.clone(), larger).unwrap();
    log.append(&vec![entry(&[6; 2000]); 20]).unwrap();
    log.append(&[entry(&[6; 40_000])]).unwrap();
    assert_eq!(log.commit(), Ok(121));
    drop(log);
    assert_eq!(Log::open(disk, settings()).unwrap().recovered().last, 121);
}
