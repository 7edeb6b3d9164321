//! Milliseconds from the start of a store to its readiness, after it died with a large journal:
//! median, lowest and highest of five starts.
//!
//! `cargo bench -p lanecast-store --bench recovery -- --gigabytes 10`; with `--directory DIR` the
//! journal is made there, and otherwise below `target/tmp`. `--all` also measures the start without
//! checkpoints, which reads every record.
#![forbid(unsafe_code)]

use lanecast_shm::{Domain, DomainSettings, Visibility};
use lanecast_store::{PersistentOptions, PersistentPublisher, StoreOptions, StoreServer};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BODY: usize = 700;
const STARTS: usize = 5;

fn main() {
    let (mut gigabytes, mut reads_all) = (1_u64, false);
    let mut directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--gigabytes" => {
                let number = arguments.next().and_then(|number| number.parse().ok());
                gigabytes = number.expect("--gigabytes wants a number");
            }
            "--directory" => directory = arguments.next().expect("--directory wants a path").into(),
            "--all" => reads_all = true,
            // Options that cargo bench passes to every benchmark.
            _ => {}
        }
    }
    let place = tempfile::tempdir_in(&directory).expect("a directory");
    let settings = DomainSettings {
        visibility: Visibility::Process,
        directory: place.path().to_owned(),
        ..DomainSettings::default()
    };
    let domain = Domain::open(settings).expect("a domain");
    let path = place.path().join("store");
    let messages = fill(&domain, &path, gigabytes << 30);
    let journal = bytes_of(&path.join("journal"));
    println!(
        "{messages} messages of {BODY} B, {:.1} GiB of files; in the page cache as far as it fits",
        journal as f64 / (1_u64 << 30) as f64
    );
    starts(&domain, &path, "with checkpoints");
    if reads_all {
        remove_checkpoints(&path.join("journal"));
        starts(&domain, &path, "without");
    }
}

fn open(domain: &Domain, path: &Path) -> StoreServer<Domain> {
    StoreServer::open(domain.clone(), "a", path, StoreOptions::default()).expect("a store")
}

/// Publishes until the journal has so many bytes; the store then dies without a last checkpoint.
fn fill(domain: &Domain, path: &Path, bytes: u64) -> u64 {
    let mut store = open(domain, path);
    let options = PersistentOptions::with_store("a");
    let mut publisher = PersistentPublisher::open(domain, "orders", 7, options).expect("opened");
    let (body, count) = ([7; BODY], bytes / (BODY as u64 + 69));
    while publisher.stable() < count {
        while publisher.next() < count && publisher.try_send(&body).is_ok() {}
        publisher.poll(|_| {});
        let work = store.poll().expect("the disk works");
        store.wait_at_most(work, Duration::from_millis(1));
    }
    count
}

/// Starts the store several times; each start ends without a last checkpoint.
fn starts(domain: &Domain, path: &Path, name: &str) {
    let mut times: Vec<(Duration, u64)> = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let store = open(domain, path);
        times.push((start.elapsed(), store.recovery().records));
    }
    times.sort();
    let (low, median, high) = (times[0], times[STARTS / 2], times[STARTS - 1]);
    println!(
        "{name}: ready after {:.0} ms, median of {STARTS} starts (lowest {:.0} ms, highest \
         {:.0} ms), {} records read",
        median.0.as_secs_f64() * 1e3,
        low.0.as_secs_f64() * 1e3,
        high.0.as_secs_f64() * 1e3,
        median.1
    );
}

fn bytes_of(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("a directory");
    files.map(|file| file.and_then(|file| file.metadata()).map_or(0, |it| it.len())).sum()
}

fn remove_checkpoints(directory: &Path) {
    for file in std::fs::read_dir(directory).expect("a directory") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|it| it == "checkpoint") {
            std::fs::remove_file(path).expect("removed");
        }
    }
}
