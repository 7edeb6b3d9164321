//! A store comes back to its limits after a burst, although nothing more is written.

use super::*;
use crate::checkpointer::Checkpointer;

const SECOND: u64 = 1_000_000_000;

/// A store with checkpoints as the server writes them.
fn checkpointed() -> Keeper {
    let (disk, settings) = (SimulatedDisk::new(1, 64 << 20), StoreRetention::default());
    let journal = Journal::open(disk.clone(), config()).expect("a journal");
    let segment_bytes = SEGMENT;
    let identity = StoreIdentity {
        settings: StoreSettings::default(),
        incarnation: 7,
        has_older_checkpoints: false,
        segment_bytes,
    };
    let open = |start| journal.cursor(start, Durability::Persisted);
    let recovered = Checkpoints::recover(&disk, &identity, open).expect("recovered");
    let Recovered { replica, .. } = &recovered;
    let (machine, catalog) = (replica.machine.clone(), replica.catalog.clone());
    let (pin, heads) = (journal.pin(1), 1 << 20);
    let checkpointer = Checkpointer::start(disk.clone(), recovered, pin, LIMIT / 8, heads);
    let log = JournalLog::new(journal, catalog, Some(checkpointer.expect("a thread")));
    let task = RetentionTask::new(settings, SEGMENT);
    let mut keeper = Keeper { disk, machine, log, task, next: Vec::new() };
    keeper.begin(&["orders"]);
    keeper
}

/// As the server does at this time, until nothing is due.
fn until_within_limits(keeper: &mut Keeper, mut unix_ns: u64) {
    let deadline = Instant::now() + LONG;
    persist(keeper);
    while keeper.log.retention_due().is_some() || keeper.file_bytes() > FILES_MAX {
        let bytes = keeper.file_bytes();
        assert!(Instant::now() < deadline, "{bytes} bytes of files, the limit is {LIMIT}");
        step(keeper, unix_ns);
        unix_ns += SECOND;
        std::thread::yield_now();
    }
}

/// A step, when the disk has all that was written before.
fn step(keeper: &mut Keeper, unix_ns: u64) {
    persist(keeper);
    while keeper.task.step(&mut keeper.machine, &mut keeper.log, unix_ns).expect("room") {}
    keeper.log.commit();
    persist(keeper);
}

fn persist(keeper: &Keeper) {
    let deadline = Instant::now() + LONG;
    while keeper.log.persisted() < keeper.log.appended() {
        assert!(Instant::now() < deadline, "the disk stands still");
        std::thread::yield_now();
    }
}

#[test]
fn checkpoints_are_written_for_segments_that_have_to_go() {
    let mut keeper = checkpointed();
    // All of it in a moment, so that one checkpoint covers it.
    (0..3_000).for_each(|_| keeper.send(0));
    until_within_limits(&mut keeper, 0);
    keeper.check(0);
}

#[test]
fn segments_without_messages_go_as_well() {
    let mut keeper = checkpointed();
    for next in 0..8_000 {
        keeper.consume(0, next);
    }
    until_within_limits(&mut keeper, 0);
}

/// A burst, most of its oldest messages unconsumed by a receiver that paces the publisher, in so
/// many segments.
fn burst(segments: u64) -> Keeper {
    let settings = StoreRetention {
        bytes: Some(LIMIT),
        unconsumed_bytes: 8 * SEGMENT,
        ..StoreRetention::default()
    };
    let mut keeper = Keeper::new(settings, &["orders", "quotes"]);
    keeper.add(&LogRecord::Paced { stream: 0, is_by_receivers: true });
    keeper.consume(0, 0);
    let count = segments * SEGMENT / (BODY as u64 + 69);
    (0..count * 5 / 4).for_each(|it| keeper.send(u32::from(it % 5 == 0)));
    (0..1_200).for_each(|_| keeper.send(1));
    // What others have written pays for the first segment that is moved.
    let deadline = Instant::now() + LONG;
    loop {
        assert!(Instant::now() < deadline, "retention does not wait for others");
        step(&mut keeper, 0);
        let waits = keeper.task.move_at > keeper.task.others_bytes(&keeper.log);
        let is_next = keeper.log.retention_due() > Some(keeper.task.released);
        if waits && is_next && keeper.task.made.is_none() {
            break;
        }
        std::thread::yield_now();
    }
    assert!(keeper.file_bytes() > FILES_MAX);
    keeper
}

#[test]
fn unconsumed_messages_that_fit_are_moved_on_in_time() {
    let mut keeper = burst(3);
    until_within_limits(&mut keeper, SECOND);
    assert_eq!((keeper.first(0), keeper.task.given_up()), (0, 0));
    keeper.check(0);
    keeper.check(1);
}

#[test]
fn consumed_messages_are_given_up_at_once() {
    let mut keeper = burst(3);
    step(&mut keeper, 0);
    assert_eq!(keeper.first(0), 0);
    let left = keeper.next[0] - 3;
    keeper.consume(0, left);
    // The time of the next look has not come.
    step(&mut keeper, 0);
    assert!(keeper.first(0) > 0, "the oldest segment's");
    until_within_limits(&mut keeper, 0);
    assert!(keeper.first(0) <= left && keeper.task.given_up() == 0);
    keeper.check(0);
    keeper.check(1);
}

#[test]
fn messages_that_do_not_fit_are_not_moved_for_ever() {
    let mut keeper = burst(5);
    let moved = keeper.task.moved;
    for second in 1..1_000 {
        step(&mut keeper, second * SECOND);
    }
    assert_eq!(keeper.task.moved, moved, "it would never end");
    assert_eq!((keeper.first(0), keeper.task.given_up()), (0, 0));
    let half = keeper.next[0] / 2;
    keeper.consume(0, half);
    until_within_limits(&mut keeper, 1_000 * SECOND);
    assert!((1..=half).contains(&keeper.first(0)) && keeper.task.given_up() == 0);
    keeper.check(0);
    keeper.check(1);
}
