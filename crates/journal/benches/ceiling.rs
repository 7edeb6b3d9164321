//! Throughput of the journal beside a raw log: persisted records of 200 bytes per second, and
//! records of 100 and of 200 bytes that are read back. The raw log is a checksum, a write and a
//! synchronization in a preallocated file. Both run in turn, and the ratio is that of the pairs. A
//! disk may be slow to write a block for the first time, so the rows with new files also give the
//! raw log a file without blocks.
//!
//! `cargo bench -p lanecast-journal`, or `-- --pairs 9` for more certainty, or `-- --only replay`
//! for rows whose names have that in them. The figures are those of the disk below `target/tmp`, or
//! of `--directory`.
#![forbid(unsafe_code)]

mod raw;

use lanecast_journal::{Directory, Durability, Entry, Journal, JournalConfig, Retention, Start};
use raw::{Fill, RawGroup, RawLog};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Duration of a run, unless its file is full before.
const RUN: Duration = Duration::from_millis(800);
/// The length of the raw log's file, and of the journal's one segment.
const ROOM: u64 = 1 << 30;
/// Bytes written per run at most, so that neither log needs another file.
const MOST: u64 = 900 << 20;
const BODY: usize = 200;
const WRITERS: usize = 64;
const LONG: Duration = Duration::from_secs(600);
const REPLAYED: u64 = 2_000_000;
/// Lengths of the records that are replayed.
const REPLAY_BODIES: [usize; 2] = [100, BODY];
/// Segments kept in the rows with recycled files.
const KEPT: u64 = 3;

/// State of the journal's segment files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segments {
    /// One preallocated segment, like the raw log's file.
    Ready,
    /// Default length, preallocated during the run.
    New,
    /// Default length, recycled: written before, like the raw log's file.
    Recycled,
}

fn main() {
    let (mut pairs, mut only) = (5, String::new());
    let mut directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--pairs" => {
                let number: Option<usize> = arguments.next().and_then(|number| number.parse().ok());
                pairs = number.expect("--pairs wants a number").max(1);
            }
            "--only" => only = arguments.next().expect("--only wants a part of a row's name"),
            "--directory" => directory = arguments.next().expect("--directory wants a path").into(),
            // Options that cargo bench passes to every benchmark.
            _ => {}
        }
    }
    let place = tempfile::tempdir_in(&directory).expect("a directory");
    let stage = Stage { place: place.path(), pairs, only };
    println!("records of {BODY} bytes per second; median of {pairs} pairs, lowest and highest");
    println!("{:<28} {:>11} {:>11}  journal / raw", "", "raw", "journal");
    for batch in [1, 10, 100, 1_000, 10_000] {
        let run = |stage: &Stage| [stage.raw(batch), stage.journal(batch, Segments::Ready)];
        stage.row(&format!("batches of {batch}"), run);
    }
    stage.row(&format!("{WRITERS} writers, 1 each"), |stage| {
        [stage.raw_writers(), stage.journal_writers()]
    });
    for (name, segments) in [("new", Segments::New), ("recycled", Segments::Recycled)] {
        for batch in [100, 10_000] {
            let run = |stage: &Stage| [stage.raw(batch), stage.journal(batch, segments)];
            stage.row(&format!("batches of {batch}, {name} files"), run);
        }
    }
    for batch in [100, 10_000] {
        let run = |stage: &Stage| [stage.raw_bare(batch), stage.journal(batch, Segments::New)];
        stage.row(&format!("batches of {batch}, both new"), run);
    }
    REPLAY_BODIES.iter().for_each(|length| stage.replay(*length));
}

struct Stage<'a> {
    place: &'a Path,
    pairs: usize,
    /// Part of the names of the rows to run.
    only: String,
}

impl Stage<'_> {
    fn row(&self, name: &str, run: impl Fn(&Self) -> [f64; 2]) {
        if !name.contains(&self.only) {
            return;
        }
        let pairs: Vec<[f64; 2]> = (0..self.pairs).map(|_| run(self)).collect();
        let median = |of: &dyn Fn(&[f64; 2]) -> f64| {
            let mut values: Vec<f64> = pairs.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0], values[values.len() - 1])
        };
        let (raw, journal) = (median(&|pair| pair[0]).0, median(&|pair| pair[1]).0);
        let (ratio, low, high) = median(&|pair| 100.0 * pair[1] / pair[0]);
        println!("{name:<28} {raw:>11.0} {journal:>11.0}  {ratio:.0} % ({low:.0} to {high:.0})");
    }

    fn raw(&self, batch: usize) -> f64 {
        Self::raw_rate(RawLog::create(&self.place.join("raw"), ROOM), batch)
    }

    fn raw_bare(&self, batch: usize) -> f64 {
        Self::raw_rate(RawLog::create_bare(&self.place.join("bare"), ROOM), batch)
    }

    fn raw_rate(mut log: RawLog, batch: usize) -> f64 {
        let mut fill = Fill::new(3);
        let mut bodies = vec![[0; BODY]; batch];
        rate(batch, (BODY + 16) as u64, || {
            bodies.iter_mut().for_each(|body| fill.fill(body));
            log.persist(&bodies);
        })
    }

    fn journal(&self, batch: usize, segments: Segments) -> f64 {
        let journal = self.open(segments);
        if segments == Segments::Recycled {
            go_round(&journal);
        }
        let mut fill = Fill::new(3);
        let mut bodies = vec![[0; BODY]; batch];
        let measured = rate(batch, (BODY + 56) as u64, || {
            bodies.iter_mut().for_each(|body| fill.fill(body));
            let entries: Vec<Entry<'_>> =
                bodies.iter().map(|body| Entry { body, ..Entry::default() }).collect();
            journal.persist(&entries, LONG).expect("persisted");
        });
        drop(journal);
        self.clear();
        measured
    }

    fn open(&self, segments: Segments) -> Journal<Directory> {
        let mut settings = JournalConfig::default();
        match segments {
            Segments::Ready => settings.segment_bytes = ROOM,
            Segments::New => {}
            Segments::Recycled => {
                let bytes = Some(KEPT * settings.segment_bytes);
                settings.retention = Retention { bytes, age: None };
            }
        }
        let journal = Journal::open(Directory::new(self.journal_path()), settings).expect("opened");
        journal.wait_preallocated().expect("prepared");
        journal
    }

    fn journal_path(&self) -> PathBuf {
        self.place.join("journal")
    }

    fn clear(&self) {
        std::fs::remove_dir_all(self.journal_path()).expect("removed");
    }

    fn raw_writers(&self) -> f64 {
        let log = RawLog::create(&self.place.join("raw"), ROOM);
        let group = RawGroup::start(log);
        let measured = writers(|fill, body| {
            fill.fill(body);
            group.persist(body);
        });
        group.stop();
        measured
    }

    fn journal_writers(&self) -> f64 {
        let journal = self.open(Segments::Ready);
        let measured = writers(|fill, body| {
            fill.fill(body);
            journal.persist(&[Entry { body, ..Entry::default() }], LONG).expect("persisted");
        });
        drop(journal);
        self.clear();
        measured
    }

    fn replay(&self, length: usize) {
        let name = format!("replay of {length} B, checked");
        if !name.contains(&self.only) {
            return;
        }
        let journal = self.open(Segments::Ready);
        let body = vec![7; length];
        let entries = vec![Entry { body: &body, ..Entry::default() }; 10_000];
        for _ in 0..REPLAYED / entries.len() as u64 {
            journal.persist(&entries, LONG).expect("persisted");
        }
        let mut rates: Vec<f64> = (0..self.pairs)
            .map(|_| {
                let start = Instant::now();
                let mut cursor =
                    journal.cursor(Start::Oldest, Durability::Persisted).expect("cursor");
                let mut bytes = 0;
                let read = cursor.for_each(usize::MAX, |record| bytes += record.body.len());
                assert_eq!((read, bytes), (Ok(REPLAYED as usize), REPLAYED as usize * length));
                REPLAYED as f64 / start.elapsed().as_secs_f64()
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        let (low, high) = (rates[0], rates[rates.len() - 1]);
        let median = rates[rates.len() / 2];
        println!("{name:<28} {:>11} {median:>11.0}  ({low:.0} to {high:.0})", "");
        drop(journal);
        self.clear();
    }
}

/// Fills segments until files are recycled.
fn go_round(journal: &Journal<Directory>) {
    let body = [7; BODY];
    let entries = vec![Entry { body: &body, ..Entry::default() }; 10_000];
    let bytes = 2 * (KEPT + 1) * JournalConfig::default().segment_bytes;
    for _ in 0..bytes / (entries.len() * (BODY + 56)) as u64 {
        journal.persist(&entries, LONG).expect("persisted");
    }
}

/// Records per second, `batch` in each step.
fn rate(batch: usize, record_bytes: u64, mut step: impl FnMut()) -> f64 {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < RUN && (count + batch as u64) * record_bytes < MOST {
        step();
        count += batch as u64;
    }
    count as f64 / start.elapsed().as_secs_f64()
}

/// Records per second of writers that each wait for their own records.
fn writers(persist: impl Fn(&mut Fill, &mut [u8; BODY]) + Sync) -> f64 {
    let start = Instant::now();
    let count: u64 = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..WRITERS)
            .map(|number| {
                let persist = &persist;
                scope.spawn(move || {
                    let (mut fill, mut body) = (Fill::new(9 + number as u64), [0; BODY]);
                    let mut count = 0;
                    while start.elapsed() < RUN {
                        persist(&mut fill, &mut body);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("a writer")).sum()
    });
    count as f64 / start.elapsed().as_secs_f64()
}
