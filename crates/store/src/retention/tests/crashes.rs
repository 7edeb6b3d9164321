//! A machine that stops in the middle of retention, at each call to its disk in turn. Writes that
//! were not synchronized are lost then, or torn.

use super::*;

const SMALL: u64 = 16 << 10;
/// Messages of the slow stream that its receiver has consumed.
const CONSUMED: u64 = 2;
/// Steps of the server before it has the journal write: nothing of them is on the disk yet.
const STEPS: usize = 20;
const TOPICS: [&str; 2] = ["orders", "alarms"];

fn small() -> JournalConfig {
    let retention = Retention { bytes: Some(3 * SMALL), age: None };
    JournalConfig { segment_bytes: SMALL, retention, ..JournalConfig::default() }
}

/// Opens the store, and writes a checkpoint: without one it would need the oldest segment.
fn open(disk: &SimulatedDisk) -> Keeper {
    let write = |disk: &SimulatedDisk, recovered: &mut Recovered<SimulatedDisk>| {
        recovered.checkpoints.write(disk, &recovered.replica).expect("the disk works");
    };
    Keeper::open_with(disk.clone(), StoreRetention::default(), small(), write)
}

/// A store whose oldest segment has to go: it holds messages of a stream that nothing is registered
/// for, and of one whose receiver lags.
fn full_store(seed: u64) -> Keeper {
    let disk = SimulatedDisk::new(seed, 64 << 20);
    let settings = StoreRetention::default();
    let mut keeper = Keeper::open_with(disk.clone(), settings, small(), |_, _| {});
    keeper.begin(&TOPICS);
    for _ in 0..=CONSUMED {
        keeper.send(1);
    }
    keeper.consume(1, CONSUMED);
    let deadline = Instant::now() + LONG;
    while keeper.log.retention_due().is_none() {
        assert!(Instant::now() < deadline, "retention has nothing to do");
        (0..10).for_each(|_| keeper.send(0));
        keeper.send(1);
        assert!(is_written(&keeper));
    }
    keeper.log.close().expect("closed");
    open(&disk)
}

/// Waits until the disk has all records; returns whether it has.
fn is_written(keeper: &Keeper) -> bool {
    let deadline = Instant::now() + LONG;
    while keeper.log.persisted() < keeper.log.appended() {
        if keeper.disk.is_stopped() {
            return false;
        }
        assert!(Instant::now() < deadline, "the disk stands still");
        std::thread::yield_now();
    }
    true
}

/// Lets retention do what is due, as the server does, until that is done or the machine stops.
fn retain(keeper: &mut Keeper) {
    let deadline = Instant::now() + LONG;
    while keeper.log.retention_due().is_some() && !keeper.disk.is_stopped() {
        assert!(Instant::now() < deadline, "retention does not end");
        for _ in 0..STEPS {
            // A log that takes nothing any more is that of a machine that stands still.
            let _ = keeper.task.step(&mut keeper.machine, &mut keeper.log, 0);
            std::thread::yield_now();
        }
        keeper.log.commit();
        let _ = is_written(keeper);
    }
}

/// One life that stops at a call of retention; returns how many there were.
fn live(stop: Option<u64>, seed: u64) -> u64 {
    let mut keeper = full_store(seed);
    let (disk, sent) = (keeper.disk.clone(), keeper.next.clone());
    let before = disk.calls();
    if let Some(stop) = stop {
        disk.stop_after(stop);
    }
    retain(&mut keeper);
    let (calls, is_stopped) = (disk.calls() - before, disk.is_stopped());
    let oldest = keeper.first(0);
    drop(keeper);
    disk.crash();
    let mut keeper = open(&disk);
    assert_eq!(keeper.next, sent, "all of them were on the disk");
    if !is_stopped {
        assert_eq!(keeper.first(0), oldest, "retention was told to be done");
        assert!(oldest > 0);
    }
    // Nothing is missing that the streams still tell, and nothing that is not consumed.
    for _ in 0..2 {
        assert!(keeper.first(1) <= CONSUMED, "{} are gone", keeper.first(1));
        assert_eq!(keeper.task.given_up(), 0);
        keeper.check(0);
        keeper.check(1);
        // Retention goes on from there.
        retain(&mut keeper);
        assert_eq!(keeper.log.retention_due(), None);
        assert!(keeper.first(0) > 0);
    }
    calls
}

#[test]
fn no_call_of_retention_is_a_bad_one_to_stop_at() {
    let calls = live(None, 1);
    assert!((5..100).contains(&calls), "{calls}");
    for stop in 1..=calls {
        (0..3).for_each(|seed| _ = live(Some(stop), seed));
    }
}
