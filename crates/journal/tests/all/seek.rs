//! Searches by sequence and by time: the bytes they read, and index files that are missing,
//! damaged or another segment's.
#![forbid(unsafe_code)]

use lanecast_journal::{
    Cursor, Entry, JournalConfig, Log, OpenMode, ReadError, Reader, Repair, Retention, Start,
    Storage, StoredFile,
};
use lanecast_sim::disk::SimulatedDisk;

const SEGMENT: u64 = 4 << 20;
const ROOM: u64 = 64 << 20;
/// Records of 256 bytes with their headers: more than three segments.
const RECORDS: u64 = 55_000;
const PER_SEGMENT: u64 = (SEGMENT - 8192 - 56) / 256;
/// Limit of a search, without the segment's headers.
const MOST: u64 = 64 << 10;

fn settings() -> JournalConfig {
    JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() }
}

fn append(log: &mut Log<SimulatedDisk>, count: u64) {
    for _ in 0..count.div_ceil(1000) {
        let next = log.persisted() + 1;
        let entry =
            |number| Entry { unix_ns: 10 * (next + number), body: &[7; 200], ..Entry::default() };
        let entries: Vec<Entry<'_>> = (0..1000).map(entry).collect();
        log.append(&entries).unwrap();
        log.commit().unwrap();
    }
}

fn journal() -> (SimulatedDisk, Log<SimulatedDisk>) {
    let disk = SimulatedDisk::new(1, ROOM);
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    append(&mut log, RECORDS);
    (disk, log)
}

fn name(number: u64) -> String {
    format!("{number:016x}.index")
}

fn has_index(disk: &SimulatedDisk, number: u64) -> bool {
    disk.list().unwrap().contains(&name(number))
}

/// Searches for records in every segment; returns the most bytes that one search has read.
fn search(
    disk: &SimulatedDisk,
    open: impl Fn(Start) -> Result<Cursor<SimulatedDisk>, ReadError>,
) -> u64 {
    let mut most = 0;
    for sequence in (1..RECORDS).step_by(1_713).chain([PER_SEGMENT, PER_SEGMENT + 1, RECORDS]) {
        let starts =
            [Start::Sequence(sequence), Start::Time(10 * sequence), Start::Time(10 * sequence - 9)];
        for start in starts {
            let before = disk.read_bytes();
            let mut cursor = open(start).unwrap();
            most = most.max(disk.read_bytes() - before);
            assert_eq!(cursor.read().unwrap().map(|it| it.sequence), Some(sequence), "{start:?}");
        }
    }
    most
}

#[test]
fn a_search_reads_no_more_than_an_index_and_a_stride() {
    let (disk, log) = journal();
    assert!(search(&disk, |start| log.cursor(start)) <= MOST, "beside the writer");
    assert_eq!(
        (1..=4).map(|it| has_index(&disk, it)).collect::<Vec<_>>(),
        [true, true, true, false]
    );
    drop(log);
    let log = Log::open(disk.clone(), settings()).unwrap();
    assert!(search(&disk, |start| log.cursor(start)) <= MOST, "after opening");
    drop(log);
    disk.crash();
    let log = Log::open(disk.clone(), settings()).unwrap();
    search(&disk, |start| log.cursor(start));
    assert!(search(&disk, |start| log.cursor(start)) <= MOST, "after a crash");
}

#[test]
fn a_missing_or_damaged_index_is_made_anew() {
    let (disk, mut log) = journal();
    let whole = disk.contents(&name(2));
    let damages: [&dyn Fn(); 4] = [
        &|| disk.remove(&name(2)).unwrap(),
        &|| disk.damage(&name(2), 70, 1),
        &|| disk.open(&name(2), OpenMode::Write).unwrap().set_length(100).unwrap(),
        &|| {
            // Another segment's under this name.
            let other = disk.contents(&name(1));
            disk.create(&name(2)).unwrap().write_all_at(&other, 0).unwrap();
        },
    ];
    for damage in damages {
        damage();
        let reader = Reader::open(disk.clone()).unwrap();
        assert!(search(&disk, |start| reader.cursor(start)) > SEGMENT, "one search reads it all");
        // The owner finds out by itself, and writes the file when a segment is complete.
        assert!(search(&disk, |start| log.cursor(start)) > SEGMENT);
        assert!(search(&disk, |start| log.cursor(start)) <= MOST);
        append(&mut log, PER_SEGMENT);
        assert!(disk.contents(&name(2)) == whole, "written as it was");
    }
}

#[test]
fn an_index_of_other_records_misleads_no_search() {
    let (disk, log) = journal();
    drop(log);
    // The same journal and segment with other records: as if one file was restored from a copy.
    let other = SimulatedDisk::new(2, ROOM);
    let headers = disk.contents("0000000000000001.segment")[..8192].to_vec();
    let file = other.create("0000000000000001.segment").unwrap();
    file.set_length(SEGMENT).unwrap();
    file.write_all_at(&headers, 0).unwrap();
    let mut log = Log::open(other.clone(), settings()).unwrap();
    for number in 1..=RECORDS / 8 {
        let body = vec![3; 200 + 8 * (number as usize % 3)];
        log.append(&[Entry { unix_ns: number, body: &body, ..Entry::default() }]).unwrap();
    }
    log.commit().unwrap();
    append(&mut log, PER_SEGMENT);
    drop(log);
    let foreign = disk.contents(&name(1));
    assert_ne!(other.contents(&name(1)), foreign);
    other.create(&name(1)).unwrap().write_all_at(&foreign, 0).unwrap();
    let log = Log::open(other, settings()).unwrap();
    for sequence in [1, 2, 200, 5_000, 6_000] {
        let mut cursor = log.cursor(Start::Sequence(sequence)).unwrap();
        assert_eq!(cursor.read().unwrap().map(|record| record.sequence), Some(sequence));
    }
}

#[test]
fn indexes_go_with_their_segments() {
    let (disk, log) = journal();
    drop(log);
    disk.create(&name(4)).unwrap().write_all_at(b"of a segment that is not complete", 0).unwrap();
    disk.create(&name(90)).unwrap();
    let retention = Retention { bytes: Some(2 * SEGMENT), age: None };
    let mut log = Log::open(disk.clone(), JournalConfig { retention, ..settings() }).unwrap();
    assert!(!has_index(&disk, 4) && !has_index(&disk, 90), "removed at opening");
    assert_eq!(log.apply_retention(), Ok(2));
    assert!(!has_index(&disk, 1) && !has_index(&disk, 2) && has_index(&disk, 3));
    drop(log);
    // A cut segment has no index until it is complete again.
    disk.damage("0000000000000003.segment", 100_000, 1);
    Repair::plan(&disk).unwrap().apply(&disk).unwrap();
    assert!(!has_index(&disk, 3));
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    append(&mut log, PER_SEGMENT);
    assert!(has_index(&disk, 3));
}
