//! Index files of a real journal, replaced by the fuzzer's: by any bytes, or by marks whose
//! checksums are right. No search may find another record than it would without.
#![no_main]

use lanecast_fuzz::Script;
use lanecast_journal::{Entry, JournalConfig, Log, Reader, Start, Storage, StoredFile};
use lanecast_sim::disk::SimulatedDisk;
use lanecast_wire::journal::{IndexHeader, IndexMark, SegmentHeader};
use libfuzzer_sys::fuzz_target;
use zerocopy::IntoBytes;

const SEGMENT: u64 = 128 << 10;
/// Bytes of a record with its header.
const RECORD: u64 = 1024;
const PER_SEGMENT: u64 = (SEGMENT - 8192 - 56) / RECORD;
const RECORDS: u64 = 2 * PER_SEGMENT + 10;

fn honest() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1, 1 << 20);
    let settings = JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() };
    let mut log = Log::open(disk.clone(), settings).expect("a journal");
    let body = [7; RECORD as usize - 56];
    for unix_ns in 1..=RECORDS {
        // Two records of each time.
        let entry = Entry { unix_ns: unix_ns / 2, body: &body, ..Entry::default() };
        log.append(&[entry]).expect("room");
    }
    log.commit().expect("room");
    disk
}

/// An index of `segment` with marks near true ones and right checksums.
fn forge(script: &mut Script<'_>, disk: &SimulatedDisk, segment: u64) -> Vec<u8> {
    let bytes = disk.contents(&format!("{segment:016x}.segment"));
    let ids = SegmentHeader::read(&bytes).expect("it is whole");
    let journal = crc32c::crc32c(ids.journal.as_bytes());
    let seed = crc32c::crc32c_append(journal, ids.segment.as_bytes());
    let first = 1 + PER_SEGMENT * (segment - 1);
    let mut marks = Vec::new();
    for at in 0..u64::from(script.byte()) % 6 {
        let sequence = if at == 0 { 0 } else { script.near(31 * at) };
        let unix_ns = script.near(first.wrapping_add(sequence) / 2);
        let there = sequence.wrapping_mul(RECORD).wrapping_add(8192);
        let offset = if at == 0 { 8192 } else { script.near(there) };
        marks.push(IndexMark {
            sequence: (sequence as u32).into(),
            offset: (offset as u32).into(),
            unix_ns: unix_ns.into(),
        });
    }
    let next = script.near(first + PER_SEGMENT);
    let count = script.near(marks.len() as u64) as u32;
    let mut header = IndexHeader::new(ids.journal.get(), segment, first..next, count);
    header.marks_crc = crc32c::crc32c_append(seed, marks.as_bytes()).into();
    header.crc = crc32c::crc32c_append(seed, header.covered()).into();
    [header.as_bytes(), marks.as_bytes()].concat()
}

fuzz_target!(|bytes: &[u8]| {
    if let Some((header, marks)) = IndexHeader::read(bytes) {
        assert_eq!(header.count.get() as usize, marks.len());
    }
    let script = &mut Script::new(bytes);
    let disk = honest();
    while let Some(act) = script.act() {
        let segment = 1 + u64::from(act / 2) % 2;
        let index = if act % 2 == 0 {
            let count = usize::from(script.byte());
            script.bytes(count).to_vec()
        } else {
            forge(script, &disk, segment)
        };
        let file = disk.create(&format!("{segment:016x}.index")).expect("a file");
        file.write_all_at(&index, 0).expect("room");
    }
    let reader = Reader::open(disk).expect("the journal is whole");
    for sequence in (1..=RECORDS).step_by(13) {
        let mut cursor = reader.cursor(Start::Sequence(sequence)).expect("it is there");
        assert_eq!(cursor.read().expect("whole").map(|it| it.sequence), Some(sequence));
        let mut cursor = reader.cursor(Start::Time(sequence / 2)).expect("it is there");
        let first = (sequence / 2 * 2).max(1);
        assert_eq!(cursor.read().expect("whole").map(|it| it.sequence), Some(first));
    }
});
