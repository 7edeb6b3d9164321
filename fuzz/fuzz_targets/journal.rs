//! The files of a real journal, changed at places of the fuzzer's choice, opened, read, surveyed
//! and repaired.
//!
//! The input is a script of changes: bytes anywhere, files cut or removed, and records whose
//! checksums are right and whose numbers are near those that would be.
#![no_main]

use lanecast_fuzz::Script;
use lanecast_journal::{
    Entry, JournalConfig, JournalReport, Log, OpenMode, Reader, Repair, Start, Storage, StoredFile,
    Verdict,
};
use lanecast_sim::disk::SimulatedDisk;
use lanecast_wire::journal::{RECORDS_OFFSET, RecordHeader, SegmentHeader};
use libfuzzer_sys::fuzz_target;
use zerocopy::{FromZeros, IntoBytes};

const SEGMENT: u64 = 16 << 10;
const RECORDS: u64 = 150;
const SEGMENTS: u64 = 4;
/// No journal on this disk has more.
const RECORDS_MAX: u64 = 2 * SEGMENTS * SEGMENT / 56;

fn settings() -> JournalConfig {
    JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() }
}

fn name(number: u64) -> String {
    format!("{number:016x}.segment")
}

fn honest() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1, 1 << 20);
    let mut log = Log::open(disk.clone(), settings()).expect("a journal");
    for number in 0..RECORDS {
        log.append(&[Entry { body: &[number as u8; 200], ..Entry::default() }]).expect("room");
        if number % 10 == 9 {
            log.commit().expect("room");
        }
    }
    disk
}

/// A record with right checksums, if the segment can still be read.
fn forge(script: &mut Script<'_>, disk: &SimulatedDisk, number: u64, offset: u64) -> Vec<u8> {
    let bytes = disk.contents(&name(number));
    let ids = SegmentHeader::read(&bytes).map(|header| [header.journal, header.segment]);
    let there = bytes.get(offset as usize..).and_then(|b| RecordHeader::read(b, offset, SEGMENT));
    let mut header = there.copied().unwrap_or_else(RecordHeader::new_zeroed);
    let seed = ids.map_or(0, |[journal, segment]| {
        crc32c::crc32c_append(crc32c::crc32c(journal.as_bytes()), segment.as_bytes())
    });
    let length = script.small() % 300;
    let body = script.bytes(length as usize).to_vec();
    header.kind = (script.byte() as u16 % 4).into();
    header.sequence = script.near(header.sequence.get()).into();
    header.unix_ns = script.near(header.unix_ns.get()).into();
    header.unsynced = script.small().into();
    header.previous = (script.near(header.previous.get().into()) as u32).into();
    header.length = (script.near(body.len() as u64) as u32).into();
    header.body_crc = crc32c::crc32c_append(seed, &body).into();
    header.crc = crc32c::crc32c_append(seed, header.covered()).into();
    [header.as_bytes(), &body].concat()
}

fn change(script: &mut Script<'_>, disk: &SimulatedDisk, act: u8) {
    let number = 1 + u64::from(script.byte()) % SEGMENTS;
    let Ok(file) = disk.open(&name(number), OpenMode::Write) else { return };
    let offset = u64::from(script.short()) % SEGMENT;
    match act % 8 {
        0 => disk.remove(&name(number)).expect("it is there"),
        1 => file.set_length(offset).expect("it is there"),
        2 => disk.rename(&name(number), &name(1 + offset % 8)).expect("it is there"),
        3..=4 => {
            let count = usize::from(script.byte());
            file.write_all_at(script.bytes(count), offset).expect("room");
        }
        _ => {
            // Every other one where a record is now: 200-byte bodies follow one another.
            let place = RECORDS_OFFSET + 256 * (offset % 32);
            let offset = if act & 8 == 0 { place } else { offset };
            let record = forge(script, disk, number, offset);
            file.write_all_at(&record, offset).expect("room");
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let script = &mut Script::new(bytes);
    let disk = honest();
    while let Some(act) = script.act() {
        change(script, &disk, act);
    }
    let _ = JournalReport::inspect(&disk);
    if let Ok(reader) = Reader::open(disk.clone())
        && let Ok(mut cursor) = reader.cursor(Start::Oldest)
    {
        let mut last = 0;
        for read in 0.. {
            assert!(read <= RECORDS_MAX, "it never ends");
            let Ok(Some(record)) = cursor.read() else { break };
            assert!(record.sequence > last, "out of order");
            last = record.sequence;
        }
    }
    let report = JournalReport::verify(&disk, |_, _| {});
    let opens = Log::open(disk.clone(), settings()).is_ok();
    if report.is_ok_and(|report| !matches!(report.verdict, Verdict::Corrupt(_))) {
        assert!(opens, "right, and refused");
    }
    let Ok(plan) = Repair::plan(&disk) else { return };
    plan.apply(&disk).expect("the disk works");
    let mut log = Log::open(disk, settings()).expect("repaired");
    log.append(&[Entry { body: b"on", ..Entry::default() }]).expect("room");
    log.commit().expect("room");
});
