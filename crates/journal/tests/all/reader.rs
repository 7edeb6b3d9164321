//! Readers beside a living writer, which appends records and removes segments meanwhile.
#![forbid(unsafe_code)]

use lanecast_journal::{
    Entry, JournalConfig, JournalReport, Log, OpenError, OpenMode, Reader, Repair, Retention,
    Start, Storage, StorageResult, Verdict,
};
use lanecast_sim::disk::{SimulatedDisk, SimulatedFile};
use std::fmt;
use std::sync::{Arc, Mutex};

const SEGMENT: u64 = 16 << 10;

type BeforeOpen = Box<dyn FnMut(&str) + Send>;

/// A disk that calls a function before it opens a file for reading.
#[derive(Clone)]
struct InterruptedDisk {
    disk: SimulatedDisk,
    before_open: Arc<Mutex<BeforeOpen>>,
}

impl InterruptedDisk {
    fn new(disk: &SimulatedDisk, before_open: impl FnMut(&str) + Send + 'static) -> Self {
        Self { disk: disk.clone(), before_open: Arc::new(Mutex::new(Box::new(before_open))) }
    }
}

impl fmt::Debug for InterruptedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.disk.fmt(f)
    }
}

impl Storage for InterruptedDisk {
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
        (self.before_open.lock().unwrap())(name);
        self.disk.open(name, mode)
    }

    fn remove(&self, name: &str) -> StorageResult<()> {
        self.disk.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> StorageResult<()> {
        self.disk.rename(from, to)
    }

    fn sync_directory(&self) -> StorageResult<()> {
        self.disk.sync_directory()
    }
}

fn append(log: &mut Log<SimulatedDisk>, count: usize) {
    for _ in 0..count {
        log.append(&[Entry { body: &[7; 200], ..Entry::default() }]).unwrap();
        log.commit().unwrap();
        log.apply_retention().unwrap();
    }
}

#[test]
fn retention_while_a_reader_opens_costs_it_the_removed_records_only() {
    let disk = SimulatedDisk::new(1, 4 << 20);
    let retention = Retention { bytes: Some(2 * SEGMENT), age: None };
    let settings = JournalConfig { segment_bytes: SEGMENT, retention, ..JournalConfig::default() };
    let mut log = Log::open(disk.clone(), settings).unwrap();
    append(&mut log, 300);
    // Three times while the reader opens files, retention removes all that it has listed.
    let mut interruptions = 3;
    let reader = Reader::open(InterruptedDisk::new(&disk, move |_| {
        if interruptions > 0 {
            interruptions -= 1;
            append(&mut log, 300);
        }
    }))
    .unwrap();
    let mut cursor = reader.cursor(Start::Oldest).unwrap();
    let mut sequences = Vec::new();
    while let Some(record) = cursor.read().unwrap() {
        sequences.push(record.sequence);
    }
    assert_eq!(sequences.last(), Some(&1200), "the newest record");
    assert!(sequences[0] > 900, "the oldest were removed: {}", sequences[0]);
    assert!(sequences.windows(2).all(|pair| pair[0] + 1 == pair[1]), "no record is skipped");
}

#[test]
fn a_segment_that_no_retention_has_removed_is_missing() {
    let disk = SimulatedDisk::new(1, 4 << 20);
    let settings = JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() };
    let mut log = Log::open(disk.clone(), settings).unwrap();
    append(&mut log, 300);
    drop(log);
    let newest = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".segment")).max();
    let newest = newest.unwrap();
    let (removed, of) = (newest.clone(), disk.clone());
    let opened = Reader::open(InterruptedDisk::new(&disk, move |name| {
        if name == removed {
            of.remove(name).unwrap();
        }
    }));
    assert!(matches!(opened, Err(OpenError::Storage(_))), "{opened:?}");
}

/// Records that are written between two looks of a check, at the place where the first one found
/// none, and behind it.
#[test]
fn records_that_are_written_while_a_journal_is_checked_are_no_damage() {
    for count in [1, 2, 40, 300] {
        let check = |what: &dyn Fn(&InterruptedDisk)| {
            let disk = SimulatedDisk::new(1, 4 << 20);
            let settings = JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() };
            let mut log = Log::open(disk.clone(), settings).unwrap();
            append(&mut log, 10);
            log.preallocate().unwrap();
            // Those of the check, each with a second look.
            let mut looks = 0;
            what(&InterruptedDisk::new(&disk, move |name| {
                looks += usize::from(name.starts_with("0000000000000001"));
                if looks == 2 {
                    append(&mut log, count);
                }
            }));
        };
        check(&|disk| {
            let report = JournalReport::verify(disk, |_, _| {}).unwrap();
            let is_damaged = matches!(report.verdict, Verdict::Corrupt(_));
            assert!(!is_damaged, "{count}: {:?}", report.verdict);
        });
        check(&|disk| {
            let plan = Repair::plan(disk).unwrap();
            assert!(!plan.is_needed(), "{count}: {plan:?}");
        });
    }
}
