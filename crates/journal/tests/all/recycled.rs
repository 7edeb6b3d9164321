//! Recycled segment files: their old contents are never read as records, never reported as damage
//! and never hide either.
#![forbid(unsafe_code)]

use lanecast_journal::{
    Directory, Durability, Entry, Journal, JournalConfig, JournalReport, Log, OpenError, ReadError,
    Reader, Repair, Retention, Start, Storage, Verdict,
};
use lanecast_sim::disk::SimulatedDisk;
use lanecast_wire::journal::{
    FLAG_RECYCLED, HEADER_OFFSETS, RECORDS_OFFSET, RecordHeader, SegmentHeader,
};
use std::time::Duration;

const SEGMENT: u64 = 16 << 10;
const LONG: Duration = Duration::from_secs(60);

fn settings() -> JournalConfig {
    let retention = Retention { bytes: Some(2 * SEGMENT), age: None };
    JournalConfig { segment_bytes: SEGMENT, retention, ..JournalConfig::default() }
}

fn name(number: u64) -> String {
    format!("{number:016x}.segment")
}

fn body(sequence: u64) -> Vec<u8> {
    (0..100 + sequence % 50).map(|at| (at * 7 + sequence) as u8).collect()
}

fn append(log: &mut Log<SimulatedDisk>, count: u64) -> u64 {
    for _ in 0..count {
        let next = log.persisted() + 1;
        log.append(&[Entry { body: &body(next), ..Entry::default() }]).unwrap();
        log.commit().unwrap();
        log.apply_retention().unwrap();
    }
    log.persisted()
}

/// A disk whose journal continues in a recycled segment, the last record's sequence, its segment
/// and its offset.
fn journal() -> (SimulatedDisk, u64, u64, u64) {
    let disk = SimulatedDisk::new(1, 1 << 20);
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    append(&mut log, 400);
    let mut last = append(&mut log, 1);
    while ends(&disk).2.len() < 5 {
        last = append(&mut log, 1);
    }
    drop(log);
    let (segment, is_recycled, records) = ends(&disk);
    assert!(is_recycled, "retention has given up files, and they were used");
    (disk, last, segment, *records.last().unwrap())
}

/// The newest segment with records, whether it is recycled, and its records' offsets.
fn ends(disk: &SimulatedDisk) -> (u64, bool, Vec<u64>) {
    let report = JournalReport::inspect(disk).unwrap();
    let newest = report.segments.iter().rev().find(|segment| segment.first > 0).unwrap();
    let bytes = disk.contents(&name(newest.segment));
    let header = SegmentHeader::read(&bytes).unwrap();
    let (mut offset, mut records) = (RECORDS_OFFSET, Vec::new());
    for _ in 0..newest.records {
        records.push(offset);
        let header = RecordHeader::read(&bytes[offset as usize..], offset, SEGMENT).unwrap();
        offset += header.bytes();
    }
    assert_eq!(newest.used_bytes, Some(offset));
    (newest.segment, header.flags.get() == FLAG_RECYCLED, records)
}

fn verdict(disk: &SimulatedDisk) -> Verdict {
    let verdict = JournalReport::verify(disk, |_, _| {}).unwrap().verdict;
    assert_eq!(JournalReport::inspect(disk).unwrap().verdict, verdict);
    verdict
}

#[test]
fn remains_in_a_recycled_segment_are_neither_records_nor_damage() {
    let (disk, last, segment, offset) = journal();
    let bytes = disk.contents(&name(segment));
    assert!(bytes[offset as usize + 1000..].iter().any(|byte| *byte != 0), "it is there");
    assert_eq!(verdict(&disk), Verdict::Intact);
    assert!(!Repair::plan(&disk).unwrap().is_needed());
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    assert_eq!((log.recovered().last, log.recovered().torn_bytes), (last, 0));
    let mut cursor = log.cursor(Start::Oldest).unwrap();
    let mut next = log.recovered().first;
    cursor
        .for_each(usize::MAX, |record| {
            assert_eq!((record.sequence, record.body), (next, &body(next)[..]));
            next += 1;
        })
        .unwrap();
    assert_eq!(next, last + 1);
    drop(cursor);
    append(&mut log, 200);
    let names = disk.list().unwrap();
    assert!(names.len() <= 6, "a file more than without: {names:?}");
}

#[test]
fn torn_and_corrupt_are_told_apart_all_the_same() {
    let (disk, last, segment, offset) = journal();
    disk.damage(&name(segment), offset + 60, 1);
    let torn = verdict(&disk);
    assert!(matches!(torn, Verdict::Torn { offset: at, .. } if at == offset), "{torn:?}");
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    assert_eq!((log.recovered().last, log.recovered().torn_bytes > 0), (last - 1, true));
    assert_eq!(append(&mut log, 1), last);
    drop(log);
    assert_eq!(verdict(&disk), Verdict::Intact);

    let before = ends(&disk).2[1];
    for byte in [0, 20, 60] {
        disk.damage(&name(segment), before + byte, 1);
        let error = Log::open(disk.clone(), settings()).unwrap_err();
        let OpenError::Corrupt(found) = &error else { panic!("{error}") };
        assert_eq!((found.segment, found.offset), (segment, before));
        disk.damage(&name(segment), before + byte, 1);
    }
    disk.damage(&name(segment), HEADER_OFFSETS[0] + 12, FLAG_RECYCLED as u8);
    disk.damage(&name(segment), before, 1);
    Repair::plan(&disk).unwrap().apply(&disk).unwrap();
    assert_eq!(verdict(&disk), Verdict::Intact);
}

#[test]
fn a_spare_that_is_recycled_is_ready_for_the_next_owner() {
    let (disk, ..) = journal();
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    append(&mut log, 100);
    log.preallocate().unwrap();
    let last = log.persisted();
    drop(log);
    assert_eq!(verdict(&disk), Verdict::Intact);
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    assert_eq!(log.recovered().last, last);
    append(&mut log, 200);
    drop(log);
    assert_eq!(verdict(&disk), Verdict::Intact);
}

#[test]
fn a_concurrent_reader_is_told_that_its_records_are_gone() {
    let disk = SimulatedDisk::new(1, 1 << 20);
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    append(&mut log, 20);
    let reader = Reader::open(disk).unwrap();
    let mut early = reader.cursor(Start::Oldest).unwrap();
    let mut late = reader.cursor(Start::End).unwrap();
    assert_eq!((early.read().unwrap().unwrap().sequence, late.read()), (1, Ok(None)));
    append(&mut log, 500);
    for (mut cursor, least) in [(early, 2), (late, 21)] {
        // Records in its read buffer remain readable.
        let error = loop {
            match cursor.read() {
                Ok(Some(record)) => assert_eq!(record.body, body(record.sequence)),
                Ok(None) => panic!("it would wait for ever"),
                Err(error) => break error,
            }
        };
        let ReadError::Removed { requested, oldest } = error else { panic!("{error}") };
        assert!(requested >= least && oldest > 400, "{requested} of {oldest}");
    }
}

#[test]
fn a_journal_of_real_files_goes_round() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Journal::open(Directory::new(directory.path()), settings()).unwrap();
    let journal = open();
    let mut last = 0;
    for round in 0..60_u64 {
        let bodies: Vec<Vec<u8>> = (0..40).map(|number| body(round * 40 + number + 1)).collect();
        let entries: Vec<Entry<'_>> =
            bodies.iter().map(|body| Entry { body, ..Entry::default() }).collect();
        last = journal.persist(&entries, LONG).unwrap();
    }
    drop(journal);
    let place = Directory::new(directory.path());
    assert_eq!(JournalReport::verify(&place, |_, _| {}).unwrap().verdict, Verdict::Intact);
    let recycled = std::fs::read_dir(directory.path()).unwrap().filter(|file| {
        let bytes = std::fs::read(file.as_ref().unwrap().path()).unwrap();
        SegmentHeader::read(&bytes).is_ok_and(|header| header.flags.get() == FLAG_RECYCLED)
    });
    assert!(recycled.count() > 0);
    let journal = open();
    let mut cursor = journal.cursor(Start::Oldest, Durability::Persisted).unwrap();
    let mut next = journal.recovered().first;
    let read = cursor.for_each(usize::MAX, |record| {
        assert_eq!((record.sequence, record.body), (next, &body(next)[..]));
        next += 1;
    });
    assert!(read.is_ok() && next == last + 1, "{next} of {last}");
}
