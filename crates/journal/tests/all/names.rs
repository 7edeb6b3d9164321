//! Errors when names are synchronised, after which the disk works again.
#![forbid(unsafe_code)]

use lanecast_journal::{
    Durability, Entry, Health, Journal, JournalConfig, Log, OpenMode, Retention, Start, Storage,
    StorageError, StorageErrorKind, StorageResult,
};
use lanecast_sim::disk::{SimulatedDisk, SimulatedFile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SEGMENT: u64 = 16 << 10;

/// A disk that fails a synchronisation of its directory.
#[derive(Clone, Debug)]
struct FailingDisk {
    disk: SimulatedDisk,
    /// Synchronisations up to the one that fails; 0 if none does.
    left: Arc<AtomicU64>,
    kind: StorageErrorKind,
}

impl FailingDisk {
    fn new(seed: u64) -> Self {
        let (disk, left) = (SimulatedDisk::new(seed, 1 << 20), Arc::default());
        Self { disk, left, kind: StorageErrorKind::Other }
    }

    /// Makes the `count`th synchronisation from now on fail.
    fn fail_after(&self, count: u64) {
        self.left.store(count, Ordering::Relaxed);
    }
}

impl Storage for FailingDisk {
    type File = SimulatedFile;
    type Lock = ();

    fn path(&self, name: &str) -> String {
        self.disk.path(name)
    }

    fn lock(&self) -> StorageResult<()> {
        self.disk.lock()
    }

    fn list(&self) -> StorageResult<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> StorageResult<SimulatedFile> {
        self.disk.create(name)
    }

    fn open(&self, name: &str, mode: OpenMode) -> StorageResult<SimulatedFile> {
        self.disk.open(name, mode)
    }

    fn remove(&self, name: &str) -> StorageResult<()> {
        self.disk.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> StorageResult<()> {
        self.disk.rename(from, to)
    }

    fn sync_directory(&self) -> StorageResult<()> {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        if left != 1 {
            return self.disk.sync_directory();
        }
        Err(StorageError {
            operation: "synchronise",
            path: self.path(""),
            kind: self.kind,
            message: "failed once".into(),
        })
    }
}

fn config(spare_segments: usize) -> JournalConfig {
    let retention = Retention { bytes: Some(2 * SEGMENT), age: None };
    JournalConfig { segment_bytes: SEGMENT, spare_segments, retention, ..JournalConfig::default() }
}

/// Appends records, of which seven fit into a segment.
fn append(log: &mut Log<FailingDisk>, count: u64) -> StorageResult<()> {
    for _ in 0..count {
        log.append(&[Entry { body: &[7; 1_000], ..Entry::default() }]).expect("room");
        log.commit()?;
    }
    Ok(())
}

#[test]
fn retention_goes_on_after_names_could_not_be_synchronised() {
    for spare_segments in 1..=2 {
        let disk = FailingDisk::new(1);
        let mut log = Log::open(disk.clone(), config(spare_segments)).expect("a journal");
        // Files are kept for reuse, and deleted when there are enough.
        for round in 0..6 {
            append(&mut log, 45).expect("it works");
            disk.fail_after(1 + round % 3);
            let failed = log.apply_retention().expect_err("it fails once");
            assert_eq!(failed.message, "failed once");
            assert!(log.apply_retention().expect("it works again") > 0);
            assert_eq!(log.apply_retention(), Ok(0));
            let names = disk.list().expect("names");
            assert!(names.len() <= 4 + spare_segments, "round {round}: {names:?}");
        }
        let oldest = log.recovered().first;
        drop(log);
        let log = Log::open(disk, config(spare_segments)).expect("whole");
        assert!(log.recovered().first > oldest);
    }
}

#[test]
fn segments_whose_names_were_not_synchronised_are_when_the_journal_is_opened() {
    for seed in 0..50 {
        let disk = FailingDisk::new(seed);
        let mut log = Log::open(disk.clone(), config(1)).expect("a journal");
        disk.fail_after(1);
        append(&mut log, 10).expect_err("the second segment is not made");
        drop(log);
        // The process ends, and the next one goes on in that segment.
        disk.disk.kill();
        let mut log = Log::open(disk.clone(), config(1)).expect("whole");
        append(&mut log, 3).expect("it works");
        let persisted = log.persisted();
        drop(log);
        disk.disk.crash();
        let log = Log::open(disk, config(1)).expect("whole");
        assert!(log.recovered().last >= persisted, "seed {seed}: of {persisted}");
    }
}

/// A process without a free descriptor cannot synchronise the name of a segment that it has made,
/// nor make the one that it needs next.
#[test]
fn a_journal_goes_on_when_a_descriptor_is_free_again() {
    let disk = FailingDisk { kind: StorageErrorKind::NoDescriptor, ..FailingDisk::new(1) };
    let settings = JournalConfig { retention: Retention::default(), ..config(1) };
    let journal = Journal::open(disk.clone(), settings).expect("a journal");
    journal.wait_preallocated().expect("the second segment");
    let append = |count: u64| {
        for _ in 0..count {
            let entry = Entry { body: &[7; 1_000], ..Entry::default() };
            journal.persist(&[entry], Duration::from_secs(60)).expect("it goes on");
        }
    };
    append(7);
    // The third segment, made as soon as the second is in use, and again when that is full.
    disk.fail_after(1);
    append(1);
    journal.wait_preallocated().expect_err("its name is not durable");
    assert!(journal.is_disk_full(), "a store takes nothing more, and says so");
    disk.fail_after(1);
    append(9);
    assert_eq!((journal.failure(), journal.health()), (None, Health::Good));
    let mut cursor = journal.cursor(Start::Oldest, Durability::Persisted).expect("a cursor");
    assert_eq!(cursor.for_each(usize::MAX, |_| {}).expect("whole"), 17);
    journal.close().expect("written");
}
