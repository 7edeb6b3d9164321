//! Batches that are long enough to go past the page cache, on a real disk.
#![forbid(unsafe_code)]

use lanecast_journal::{Directory, Durability, Entry, Journal, JournalConfig, Start};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 3;
/// Records of a round: about a megabyte.
const RECORDS: u64 = 1_000;

/// The body of a record: its length, and each byte, follow from its sequence.
fn body(sequence: u64) -> Vec<u8> {
    let length = (sequence * 7_919 % 2_003) as usize;
    (0..length).map(|at| (sequence as usize + at) as u8).collect()
}

fn entry(body: &[u8]) -> Entry<'_> {
    Entry { topic: 1, body, ..Entry::default() }
}

/// Reads the records up to `last`.
fn check(journal: &Journal<Directory>, last: u64) {
    let mut cursor = journal.cursor(Start::Oldest, Durability::Persisted).expect("a cursor");
    for sequence in 1..=last {
        let record = cursor.read().expect("readable").expect("a record");
        assert_eq!((record.sequence, record.topic), (sequence, 1));
        assert!(record.body == body(sequence), "record {sequence} of {last}");
    }
    assert!(cursor.read().expect("readable").is_none());
}

#[test]
fn long_batches_come_back_as_they_were_appended() {
    // A disk: where temporary files are may be memory.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    // Batches run over the ends of segments, which are no ends of blocks.
    let config = JournalConfig { segment_bytes: (3 << 20) + 8, ..JournalConfig::default() };
    let mut last = 0;
    // Either way the files are the same.
    for has_direct_writes in [true, false, true] {
        let directory = Directory::new(place.path()).with_direct_writes(has_direct_writes);
        let journal = Journal::open(directory, config.clone()).expect("opened");
        check(&journal, last);
        for _ in 0..ROUNDS {
            let bodies: Vec<Vec<u8>> = (1..=RECORDS).map(|it| body(last + it)).collect();
            let entries: Vec<Entry<'_>> = bodies.iter().map(|body| entry(body)).collect();
            last = journal.persist(&entries, LONG).expect("persisted");
            // A short one behind it, in the same block.
            last = journal.persist(&[entry(&body(last + 1))], LONG).expect("persisted");
            check(&journal, last);
        }
        journal.close().expect("closed");
    }
    assert_eq!(last, 3 * ROUNDS * (RECORDS + 1));
}
