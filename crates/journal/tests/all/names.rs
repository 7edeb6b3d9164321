//! Errors when names are synchronised, after which the disk works again.
#![forbid(unsafe_code)]

use lanecast_journal::{
    Entry, JournalConfig, Log, OpenMode, Retention, Storage, StorageError, StorageErrorKind,
    StorageResult,
};
use lanecast_sim::disk::{SimulatedDisk, SimulatedFile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SEGMENT: u64 = 16 << 10;

/// A disk that fails a synchronisation of its directory.
#[derive(Clone, Debug)]
struct FailingDisk {
    disk: SimulatedDisk,
    /// Synchronisations up to the one that fails; 0 if none does.
    left: Arc<AtomicU64>,
}

impl FailingDisk {
    fn new(seed: u64) -> Self {
        Self { disk: SimulatedDisk::new(seed, 1 << 20), left: Arc::default() }
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
            kind: StorageErrorKind::Other,
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
