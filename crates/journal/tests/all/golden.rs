//! A journal that an earlier build of this version has written, kept in the tree: every later one
//! reads it, and goes on with it.
//!
//! `make` has written the files in `tests/golden/journal-1`; a new version of the layout gets a
//! directory of its own, made the same way.

use lanecast_journal::{
    Directory, Entry, JournalConfig, JournalReport, Log, Reader, Record, Start, Verdict,
};
use std::path::{Path, PathBuf};

const RECORDS: u64 = 120;

fn body(number: u64) -> Vec<u8> {
    (0..number * 7 % 300).map(|byte| (byte ^ number) as u8).collect()
}

fn entry(number: u64, body: &[u8]) -> Entry<'_> {
    Entry {
        topic: (number % 3) as u32,
        client: 7,
        client_sequence: number * 2,
        unix_ns: 1_700_000_000_000_000_000 + number * 1_000_000_000,
        flags: (number % 5) as u16,
        head: b"",
        body,
    }
}

fn open(path: &Path) -> Log<Directory> {
    let config = JournalConfig { segment_bytes: 16 << 10, spare_segments: 0, ..Default::default() };
    Log::open(Directory::new(path), config).expect("a journal")
}

/// Writes what the kept files hold.
fn make(path: &Path) {
    let mut log = open(path);
    for number in 1..=RECORDS {
        log.append(&[entry(number, &body(number))]).expect("appended");
        if number % 10 == 0 {
            log.commit().expect("committed");
        }
    }
}

/// A copy: opening for writing changes files.
fn copy(root: &Path) -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journal-1");
    let path = root.join("kept");
    std::fs::create_dir(&path).expect("a directory");
    for file in std::fs::read_dir(kept).expect("the kept files") {
        let file = file.expect("a file").path();
        let name = file.file_name().expect("a name");
        std::fs::copy(&file, path.join(name)).expect("copied");
    }
    path
}

fn check(path: &Path, records: u64) {
    let storage = Directory::new(path);
    let report = JournalReport::verify(&storage, |_, _| {}).expect("verified");
    assert!(matches!(report.verdict, Verdict::Intact), "{:?}", report.verdict);
    let reader = Reader::open(storage).expect("opened");
    let mut cursor = reader.cursor(Start::Oldest).expect("a cursor");
    for number in 1..=records {
        let record: Record<'_> = cursor.read().expect("read").expect("a record");
        let body = body(number);
        let expected = entry(number, &body);
        assert_eq!(record.sequence, number);
        let fields = (record.topic, record.client, record.client_sequence, record.unix_ns);
        let Entry { topic, client, client_sequence, unix_ns, flags, body, .. } = expected;
        assert_eq!(fields, (topic, client, client_sequence, unix_ns));
        assert_eq!((record.flags, record.body), (flags, body));
    }
    assert_eq!(cursor.read().expect("read"), None);
    // By the index beside a complete segment, too.
    let time = entry(50, b"").unix_ns;
    let mut cursor = reader.cursor(Start::Time(time)).expect("a cursor");
    assert_eq!(cursor.read().expect("read").map(|record| record.sequence), Some(50));
}

#[test]
fn a_journal_of_this_version_is_read_and_continued() {
    let root = tempfile::tempdir().expect("a directory");
    let (kept, made) = (copy(root.path()), root.path().join("made"));
    make(&made);
    for path in [kept, made] {
        check(&path, RECORDS);
        let mut log = open(&path);
        let number = RECORDS + 1;
        log.append(&[entry(number, &body(number))]).expect("appended");
        log.commit().expect("committed");
        drop(log);
        check(&path, number);
    }
}
