//! Values per second from producers to workers that share them, each producer and its worker on
//! one CPU, so that with more threads than CPUs everybody often loses its core.
//! `cargo bench -p lanecast-ring --bench lanes`, or `-- --quick` for a look.
#![forbid(unsafe_code)]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group};
use lanecast_base::WaitStrategy;
use lanecast_os::affinity;
use lanecast_ring::rings::{self, Producer, Worker};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Values of one measured block, from all producers together.
const BLOCK: u64 = 1 << 20;
/// Slots of all lanes together: more would not fit in a core's second cache.
const CAPACITY: usize = 1 << 16;
/// Values of a run.
const RUN: usize = 64;

/// Way of passing values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    OneByOne,
    InRuns,
}

fn produce(mut producer: Producer<u64>, way: Way, count: u64) {
    let mut value = 0;
    while value < count {
        if way == Way::OneByOne {
            value += 1;
            producer.push(value).expect("workers");
        } else {
            let mut claim = producer.claim(RUN.min((count - value) as usize)).expect("workers");
            for slot in claim.iter_mut() {
                value += 1;
                *slot = value;
            }
            claim.commit();
        }
    }
}

fn work(mut worker: Worker<u64>, way: Way) -> u64 {
    let mut sum = 0;
    while !worker.is_closed() {
        let mut work = 0;
        if way == Way::OneByOne {
            while let Some(value) = worker.pop() {
                sum += value;
                work += 1;
            }
        } else {
            work = worker.take(RUN, |run| sum += run.iter().sum::<u64>());
        }
        worker.wait(work);
    }
    sum
}

/// The time from the first start to the last end of `count` values from each of `pairs`
/// producers, taken where the work is done.
fn measure(pairs: usize, way: Way, strategy: WaitStrategy, count: u64) -> Duration {
    let cpus = affinity::allowed().unwrap_or_default();
    let build = rings::multi_producer(pairs, CAPACITY / pairs, || 0_u64).expect("rings");
    let mut build = build.wait(strategy);
    let workers = build.workers(pairs).expect("workers");
    let producers = build.producers().expect("producers");
    let start = &Barrier::new(2 * pairs);
    let begin = |number: usize| {
        if let Some(&cpu) = cpus.get(number % cpus.len().clamp(1, 2)) {
            affinity::pin(cpu).expect("a CPU that is allowed");
        }
        start.wait();
        Instant::now()
    };
    thread::scope(|scope| {
        let producers = producers.into_iter().enumerate().map(|(number, producer)| {
            scope.spawn(move || {
                let from = begin(number);
                produce(producer, way, count);
                from
            })
        });
        let producers: Vec<_> = producers.collect();
        let workers = workers.into_iter().enumerate().map(|(number, worker)| {
            scope.spawn(move || {
                begin(number);
                (work(worker, way), Instant::now())
            })
        });
        let workers: Vec<_> = workers.collect();
        let from = producers.into_iter().map(|thread| thread.join().expect("a producer")).min();
        let ends: Vec<_> =
            workers.into_iter().map(|thread| thread.join().expect("a worker")).collect();
        let sum: u128 = ends.iter().map(|(sum, _)| u128::from(*sum)).sum();
        let count = u128::from(count);
        assert_eq!(sum, pairs as u128 * count * (count + 1) / 2, "nothing lost, nothing twice");
        let to = ends.into_iter().map(|(_, end)| end).max();
        to.zip(from).map_or(Duration::ZERO, |(to, from)| to - from)
    })
}

fn rows(group: &mut BenchmarkGroup<'_, WallTime>, pairs: usize) {
    group.throughput(Throughput::Elements(BLOCK));
    for strategy in [WaitStrategy::SpinYield, WaitStrategy::SpinPark] {
        for way in [Way::OneByOne, Way::InRuns] {
            group.bench_function(format!("{way:?}/{strategy}"), |bencher| {
                bencher.iter_custom(|blocks| {
                    measure(pairs, way, strategy, blocks * BLOCK / pairs as u64)
                });
            });
        }
    }
}

fn lanes(criterion: &mut Criterion) {
    for pairs in [2, 4] {
        let mut group = criterion.benchmark_group(format!("{pairs}P-{pairs}C"));
        group.sample_size(10).warm_up_time(Duration::from_millis(300));
        group.measurement_time(Duration::from_secs(1));
        rows(&mut group, pairs);
        group.finish();
    }
}

criterion_group!(benches, lanes);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
