//! Costs of each step of a message's path, in one thread: no other core, no cache-line
//! transfer. `cargo bench -p lanecast-shm`, or `-- --quick` for a short run.
//!
//! The header is written and read, the body is not: costs by size are costs of frames, not of
//! copying. `try_send` copies.
#![forbid(unsafe_code)]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group};
use lanecast_shm::{Domain, DomainSettings, Publisher, Subscriber};
use lanecast_transport::{Batch, Claim, Event, Publish, Shared, Subscribe, TopicId, Transport};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

const SIZES: [usize; 6] = [25, 64, 100, 128, 500, 1500];
const BATCH: usize = 16;
const TOPIC: &str = "path";

/// A domain of the benchmark's own, removed at its end.
struct Bench {
    domain: Domain,
    // After the domain: what uses the directory goes first.
    _directory: tempfile::TempDir,
}

impl Bench {
    /// As between processes, with both ends in this one.
    fn new() -> Self {
        Self::open(false)
    }

    /// `local_join`: as between the threads of one process.
    fn open(local_join: bool) -> Self {
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let made = tempfile::Builder::new().prefix("lanecast-bench-").tempdir_in(parent);
        let directory = made.expect("a directory for the domain");
        // Half of a core's second cache: a larger ring would measure the third.
        let settings = DomainSettings {
            directory: directory.path().join("domain"),
            window_bytes: 1 << 19,
            local_join,
            ..DomainSettings::default()
        };
        let domain = Domain::open(settings).expect("a domain");
        Self { domain, _directory: directory }
    }

    fn publisher(&self) -> Publisher {
        self.domain.publisher(TOPIC).expect("a publisher")
    }

    /// Both ends, joined.
    fn pair(&self) -> (Publisher, Subscriber) {
        let mut publisher = self.publisher();
        let mut subscriber = self.domain.subscriber(&[TOPIC]).expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, Duration::from_secs(10)), "no subscriber came");
        while subscriber.streams() == 0 {
            let work = subscriber.poll(1, |_| {});
            subscriber.wait(work);
        }
        (publisher, subscriber)
    }
}

fn send(publisher: &mut Publisher, size: usize) {
    let mut claim = publisher.try_claim(size).expect("room");
    claim[..8].copy_from_slice(&(size as u64).to_le_bytes());
    claim.commit();
}

fn read(subscriber: &mut Subscriber, limit: usize) -> usize {
    subscriber.poll(limit, |event| {
        if let Event::Message(message) = event {
            black_box(message.bytes().first_chunk::<8>());
        }
    })
}

fn by_size<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    group
}

/// Claim and commit without readers.
fn claim_commit(criterion: &mut Criterion) {
    let bench = Bench::new();
    let mut publisher = bench.publisher();
    let mut group = by_size(criterion, "claim_commit");
    for size in SIZES {
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| send(&mut publisher, black_box(size)));
        });
    }
    group.finish();
}

/// Claim and commit, then poll the message, one at a time: joined through the directory, and
/// locally.
fn claim_commit_poll(criterion: &mut Criterion) {
    for (name, local_join) in [("claim_commit_poll", false), ("claim_commit_poll_thread", true)] {
        let bench = Bench::open(local_join);
        let (mut publisher, mut subscriber) = bench.pair();
        let mut group = by_size(criterion, name);
        for size in SIZES {
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter(|| {
                    send(&mut publisher, black_box(size));
                    read(&mut subscriber, 1)
                });
            });
        }
        group.finish();
    }
}

/// Sixteen messages made visible together, then polled; the rate is of messages.
fn batch(criterion: &mut Criterion) {
    let bench = Bench::new();
    let (mut publisher, mut subscriber) = bench.pair();
    let mut group = criterion.benchmark_group("batch_of_16_poll");
    group.throughput(Throughput::Elements(BATCH as u64));
    for size in SIZES {
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                let mut batch = publisher.batch();
                for number in 0..BATCH as u64 {
                    let body = batch.try_add(TopicId::FIRST, black_box(size)).expect("room");
                    body[..8].copy_from_slice(&number.to_le_bytes());
                }
                batch.publish();
                read(&mut subscriber, BATCH)
            });
        });
    }
    group.finish();
}

/// The copying call of a publisher with one owner, without readers.
fn try_send(criterion: &mut Criterion) {
    let bench = Bench::new();
    let mut publisher = bench.publisher();
    let mut group = by_size(criterion, "try_send");
    for size in SIZES {
        let bytes = vec![1; size];
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| publisher.try_send(black_box(&bytes)).expect("room"));
        });
    }
    group.finish();
}

/// The copying call of a publisher that threads share, with no other thread and no readers.
fn shared_offer(criterion: &mut Criterion) {
    let bench = Bench::new();
    let publisher = Shared::new(bench.publisher());
    let mut group = by_size(criterion, "shared_offer");
    for size in SIZES {
        let bytes = vec![1; size];
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| publisher.try_send(black_box(&bytes)).expect("room"));
        });
    }
    group.finish();
}

criterion_group!(path, claim_commit, claim_commit_poll, batch, try_send, shared_offer);

fn main() {
    path();
    Criterion::default().configure_from_args().final_summary();
}
