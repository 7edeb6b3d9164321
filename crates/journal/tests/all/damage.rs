//! Damaged files: refused with the position, readable up to it, repairable.
#![forbid(unsafe_code)]

use lanecast_journal::{
    Corruption, Entry, JournalConfig, JournalReport, Log, OpenError, ReadError, Reader, Repair,
    Start, Storage, StoredFile, Verdict,
};
use lanecast_sim::disk::SimulatedDisk;
use lanecast_sim::rng::SimRng;
use lanecast_wire::journal::{KIND_ENTRY, RECORDS_OFFSET, RecordHeader};
use proptest::prelude::*;

const SEGMENT: u64 = 16 << 10;
const GROUPS: u64 = 30;
const TOGETHER: u64 = 10;

fn settings() -> JournalConfig {
    JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() }
}

fn name(number: u64) -> String {
    format!("{number:016x}.segment")
}

fn body(sequence: u64) -> Vec<u8> {
    (0..100 + sequence % 50).map(|at| (at * 7 + sequence) as u8).collect()
}

/// A journal of several segments, committed in batches.
fn journal() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1, 1 << 20);
    let mut log = Log::open(disk.clone(), settings()).unwrap();
    for group in 0..GROUPS {
        for number in 0..TOGETHER {
            let body = body(group * TOGETHER + number + 1);
            log.append(&[Entry { topic: 3, body: &body, ..Entry::default() }]).unwrap();
        }
        log.commit().unwrap();
    }
    drop(log);
    disk
}

/// The records of a segment: offset and header.
fn records(disk: &SimulatedDisk, number: u64) -> Vec<(u64, RecordHeader)> {
    let bytes = disk.contents(&name(number));
    let (mut offset, mut found) = (RECORDS_OFFSET, Vec::new());
    while let Some(header) = RecordHeader::read(&bytes[offset as usize..], offset, SEGMENT) {
        if header.kind.get() == KIND_ENTRY {
            found.push((offset, *header));
        }
        offset += header.bytes();
    }
    found
}

fn open(disk: &SimulatedDisk) -> Result<Log<SimulatedDisk>, OpenError> {
    Log::open(disk.clone(), settings())
}

/// Number of readable records, and the error that ends the reading.
fn read(disk: &SimulatedDisk) -> (u64, Option<ReadError>) {
    let mut cursor = Reader::open(disk.clone()).unwrap().cursor(Start::Oldest).unwrap();
    let mut last = 0;
    loop {
        match cursor.read() {
            Ok(Some(record)) => {
                assert_eq!((record.sequence, record.body), (last + 1, &body(last + 1)[..]));
                last = record.sequence;
            }
            Ok(None) => return (last, None),
            Err(error) => return (last, Some(error)),
        }
    }
}

fn corruption(error: &OpenError) -> &Corruption {
    match error {
        OpenError::Corrupt(corruption) => corruption,
        other => panic!("{other}"),
    }
}

#[test]
fn every_changed_byte_of_a_durable_record_is_found_and_named() {
    let segments = JournalReport::verify(&journal(), |_, _| {}).unwrap().segments;
    assert!(segments.len() >= 4, "{segments:?}");
    let mut dice = SimRng::new(5);
    for _ in 0..300 {
        let disk = journal();
        let number = dice.within(1..=segments.len() as u64 - 1);
        let records = records(&disk, number);
        let (offset, header) = records[dice.within(0..=records.len() as u64 - 1) as usize];
        let sequence = header.sequence.get();
        let byte = dice.within(0..=55 + u64::from(header.length.get()));
        disk.damage(&name(number), offset + byte, 1 << dice.within(0..=7));

        let verdict = JournalReport::verify(&disk, |_, _| {}).unwrap().verdict;
        let Verdict::Corrupt(error) = &verdict else { panic!("{verdict:?}") };
        let found = corruption(error);
        assert_eq!((found.segment, found.offset), (number, offset));
        assert_eq!(found.sequence, Some(sequence));
        let text = error.to_string();
        assert!(text.contains(&name(number)) && text.contains("journal repair disk/"), "{text}");

        let (last, error) = read(&disk);
        assert_eq!(last, sequence - 1);
        assert!(matches!(error, Some(ReadError::Open(OpenError::Corrupt(_)))), "{error:?}");

        let plan = Repair::plan(&disk).unwrap();
        assert_eq!(plan.cut, Some((number, offset)));
        // The damaged one cannot be counted if its header is what was damaged.
        let behind = GROUPS * TOGETHER - sequence;
        assert!((behind..=behind + 1).contains(&plan.lost_records), "{plan:?}");
        plan.apply(&disk).unwrap();
        assert_eq!(JournalReport::verify(&disk, |_, _| {}).unwrap().verdict, Verdict::Intact);
        let mut log = open(&disk).unwrap();
        assert_eq!(log.recovered().last, sequence - 1);
        log.append(&[Entry { body: &body(sequence), ..Entry::default() }]).unwrap();
        assert_eq!(log.commit(), Ok(sequence));
        drop(log);
        assert_eq!(read(&disk), (sequence, None));
    }
}

#[test]
fn no_record_is_cut_without_a_mark() {
    let last = GROUPS * TOGETHER;
    for calls in 0.. {
        let disk = journal();
        let (offset, _) = records(&disk, 2)[3];
        disk.damage(&name(2), offset + 60, 1);
        let plan = Repair::plan(&disk).unwrap();
        assert!(plan.cut.is_some() && !plan.removed.is_empty());
        disk.stop_after(calls);
        let is_done = plan.apply(&disk).is_ok();
        disk.crash();
        let segments = disk.list().unwrap().iter().filter(|it| it.ends_with(".segment")).count();
        let is_whole = segments > plan.removed.len() && plan == Repair::plan(&disk).unwrap();
        assert!(is_whole || Repair::last_cut(&disk).unwrap().is_some(), "{calls} calls");
        if is_done {
            break;
        }
    }

    // A header that is written again takes nothing away, and each cut has a mark of its own.
    let disk = journal();
    disk.damage(&name(2), 16, 1);
    Repair::plan(&disk).unwrap().apply(&disk).unwrap();
    assert_eq!((Repair::last_cut(&disk), read(&disk)), (Ok(None), (last, None)));
    let mut marks = Vec::new();
    for number in [3, 2] {
        let (offset, _) = records(&disk, number)[1];
        disk.damage(&name(number), offset + 60, 1);
        Repair::plan(&disk).unwrap().apply(&disk).unwrap();
        drop(open(&disk).unwrap());
        marks.push(Repair::last_cut(&disk).unwrap().unwrap());
    }
    assert_ne!(marks[0], marks[1]);
}

#[test]
fn an_owner_refuses_damage_near_the_end() {
    let disk = journal();
    let last = JournalReport::verify(&disk, |_, _| {}).unwrap().segments.len() as u64;
    let (offset, header) = records(&disk, last)[0];
    assert!(header.sequence.get() + TOGETHER * 3 < GROUPS * TOGETHER);
    disk.damage(&name(last), offset + 20, 1);
    let error = open(&disk).unwrap_err();
    assert_eq!(corruption(&error).offset, offset);
}

#[test]
fn damage_in_the_last_group_alone_looks_torn() {
    let disk = journal();
    let last = JournalReport::verify(&disk, |_, _| {}).unwrap().segments.len() as u64;
    let (offset, header) = *records(&disk, last).last().unwrap();
    disk.damage(&name(last), offset + 60, 1);
    let verdict = JournalReport::verify(&disk, |_, _| {}).unwrap().verdict;
    assert!(matches!(verdict, Verdict::Torn { offset: at, .. } if at == offset), "{verdict:?}");
    let log = open(&disk).unwrap();
    assert_eq!(log.recovered().last, header.sequence.get() - 1);
    assert!(log.recovered().torn_bytes > 0);
    assert_eq!(JournalReport::verify(&disk, |_, _| {}).unwrap().verdict, Verdict::Intact);
}

#[test]
fn truncated_records_do_not_return_behind_an_equal_record() {
    let disk = SimulatedDisk::new(1, 1 << 20);
    let (first, second) = (Entry { body: b"first", ..Entry::default() }, Entry::default());
    let mut log = open(&disk).unwrap();
    log.append(&[first, second]).unwrap();
    log.commit().unwrap();
    disk.damage(&name(1), RECORDS_OFFSET, 1);
    let mut log = open(&disk).unwrap();
    assert_eq!(log.recovered().last, 0);
    // Byte for byte what was there before: the old second record would continue it.
    log.append(&[first]).unwrap();
    log.commit().unwrap();
    assert_eq!(open(&disk).unwrap().recovered().last, 1);
}

#[test]
fn a_damaged_copy_of_a_header_is_borne_and_two_are_not() {
    let disk = journal();
    disk.damage(&name(2), 16, 1);
    assert_eq!(read(&disk), (GROUPS * TOGETHER, None));
    let report = JournalReport::verify(&disk, |_, _| {}).unwrap();
    assert!(report.segments[1].has_damaged_header && report.verdict == Verdict::Intact);
    let plan = Repair::plan(&disk).unwrap();
    assert_eq!((plan.damaged_headers.as_slice(), plan.lost_records), (&[2][..], 0));
    plan.apply(&disk).unwrap();
    assert!(!Repair::plan(&disk).unwrap().is_needed());

    disk.damage(&name(2), 16, 1);
    disk.damage(&name(2), 4096 + 60, 1);
    assert!(matches!(open(&disk), Err(OpenError::InvalidSegment { segment: 2, .. })));
    let plan = Repair::plan(&disk).unwrap();
    assert_eq!(plan.removed.first(), Some(&2));
    let first = records(&disk, 1).len() as u64;
    plan.apply(&disk).unwrap();
    assert_eq!(open(&disk).unwrap().recovered().last, first);
}

#[test]
fn segments_that_are_missing_or_foreign_are_refused_by_name() {
    let disk = journal();
    disk.remove(&name(2)).unwrap();
    let error = open(&disk).unwrap_err();
    assert!(matches!(error, OpenError::MissingSegment { segment: 2, .. }), "{error}");
    let plan = Repair::plan(&disk).unwrap();
    assert_eq!(plan.removed[0], 3);

    let (disk, other) = (journal(), journal());
    let file = disk.create(&name(2)).unwrap();
    file.write_all_at(&other.contents(&name(2)), 0).unwrap();
    let error = open(&disk).unwrap_err();
    assert!(matches!(error, OpenError::ForeignSegment { segment: 2, .. }), "{error}");

    let disk = journal();
    disk.rename(&name(1), &name(9)).unwrap();
    assert!(matches!(open(&disk), Err(OpenError::MissingSegment { .. })));

    let empty = SimulatedDisk::new(1, 1 << 20);
    assert!(matches!(Reader::open(empty), Err(OpenError::NoJournal { .. })));
}

#[test]
fn a_file_that_was_cut_loses_what_was_cut_and_no_more() {
    let last = JournalReport::verify(&journal(), |_, _| {}).unwrap().segments.len() as u64;
    for number in [2, last] {
        let disk = journal();
        let (offset, header) = records(&disk, number)[3];
        let file = disk.open(&name(number), lanecast_journal::OpenMode::Write).unwrap();
        file.set_length(offset + 10).unwrap();
        let error = open(&disk).unwrap_err();
        assert!(matches!(error, OpenError::InvalidSegment { segment, .. } if segment == number));
        let text = error.to_string();
        assert!(text.contains(&format!("has {} bytes", offset + 10)), "{text}");
        let plan = Repair::plan(&disk).unwrap();
        assert_eq!(plan.wrong_lengths, [number]);
        let behind: Vec<u64> = (number + 1..=last).collect();
        assert_eq!(plan.removed, behind, "{plan:?}");
        plan.apply(&disk).unwrap();
        // What is left of the record that was cut is a torn end to opening.
        assert_eq!(open(&disk).unwrap().recovered().last, header.sequence.get() - 1);
        assert_eq!(JournalReport::verify(&disk, |_, _| {}).unwrap().verdict, Verdict::Intact);
    }
    let disk = journal();
    let file = disk.open(&name(last), lanecast_journal::OpenMode::Write).unwrap();
    file.set_length(SEGMENT + 1).unwrap();
    let plan = Repair::plan(&disk).unwrap();
    assert!(plan.is_needed() && plan.lost_records == 0, "{plan:?}");
    plan.apply(&disk).unwrap();
    assert_eq!(read(&disk), (GROUPS * TOGETHER, None));
}

#[test]
fn a_file_that_was_cut_is_looked_at_to_its_last_byte() {
    let disk = journal();
    let last = JournalReport::verify(&disk, |_, _| {}).unwrap().segments.len() as u64;
    (3..=last).for_each(|number| disk.remove(&name(number)).unwrap());
    let places = records(&disk, 2);
    let (damaged, header) = places[5];
    let (end, durable) = places[20];
    assert!(durable.durable() >= header.sequence.get(), "it was durable");
    let file = disk.open(&name(2), lanecast_journal::OpenMode::Write).unwrap();
    file.set_length(end + durable.bytes()).unwrap();
    file.write_all_at(&[0; 56], damaged).unwrap();
    let plan = Repair::plan(&disk).unwrap();
    assert_eq!((plan.cut, &plan.wrong_lengths[..]), (Some((2, damaged)), &[2][..]), "{plan:?}");
    assert_eq!(plan.lost_records, 15);
    plan.apply(&disk).unwrap();
    assert_eq!(open(&disk).unwrap().recovered().last, header.sequence.get() - 1);
}

#[test]
fn names_that_are_none_of_its_business_are_left_alone() {
    let disk = journal();
    for name in ["notes.txt", "1.segment", "000000000000000g.segment", "x.new"] {
        disk.create(name).unwrap();
    }
    disk.create("0000000000000007.new").unwrap();
    drop(open(&disk).unwrap());
    let names = disk.list().unwrap();
    assert!(names.iter().any(|name| name == "x.new") && names.len() > 4);
    assert!(!names.iter().any(|name| name == "0000000000000007.new"), "a crash has left it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200),
    ))]

    /// Any bytes: opening, reading, verifying and repairing end in bounded time and return only
    /// appended records.
    #[test]
    fn hostile_files_get_an_answer(
        patches in prop::collection::vec(
            (1_u64..6, 0..SEGMENT, prop::collection::vec(any::<u8>(), 1..80)), 0..6),
        cuts in prop::collection::vec((1_u64..6, 0..SEGMENT + 100), 0..2),
    ) {
        let disk = journal();
        let write = lanecast_journal::OpenMode::Write;
        for (number, offset, bytes) in patches {
            if let Ok(file) = disk.open(&name(number), write) {
                file.write_all_at(&bytes, offset).unwrap();
            }
        }
        for (number, length) in cuts {
            if let Ok(file) = disk.open(&name(number), write) {
                file.set_length(length).unwrap();
            }
        }
        let report = JournalReport::verify(&disk, |_, _| {});
        if let Ok(reader) = Reader::open(disk.clone())
            && let Ok(mut cursor) = reader.cursor(Start::Oldest)
        {
            while let Ok(Some(record)) = cursor.read() {
                prop_assert_eq!(record.body, &body(record.sequence)[..]);
            }
        }
        let opened = open(&disk).is_ok();
        if report.is_ok_and(|report| !matches!(report.verdict, Verdict::Corrupt(_))) {
            prop_assert!(opened);
        }
        let plan = Repair::plan(&disk).unwrap();
        plan.apply(&disk).unwrap();
        open(&disk).unwrap();
    }
}
