//! Costs of each step of a message's path through a pipe, in one thread: no other core, no
//! cache-line transfer. `cargo bench -p lanecast-ring`, or `-- --quick` for a look.
#![forbid(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use lanecast_base::WaitStrategy;
use lanecast_ring::pipe::{self, Capacity, Peer};
use lanecast_ring::signal::{PollSet, Semaphore, Signal, Signals, SocketSignal};
use std::hint::black_box;

/// Written in batches, flushed, drained.
fn batches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipe/write, flush, drain");
    for batch in [1_u64, 16, 256] {
        group.throughput(Throughput::Elements(batch));
        let (mut bounded, mut first) = pipe::bounded(1 << 12).expect("it fits");
        group.bench_function(BenchmarkId::new("bounded", batch), |bencher| {
            bencher.iter(|| {
                (0..batch).for_each(|number| bounded.try_write(number).expect("there is room"));
                black_box(bounded.flush() == Peer::Awake);
                first.drain(usize::MAX, |number| {
                    black_box(number);
                })
            });
        });
        let (mut unbounded, mut second) = pipe::unbounded();
        group.bench_function(BenchmarkId::new("unbounded", batch), |bencher| {
            bencher.iter(|| {
                (0..batch).for_each(|number| unbounded.write(number));
                black_box(unbounded.flush() == Peer::Awake);
                second.drain(usize::MAX, |number| {
                    black_box(number);
                })
            });
        });
    }
}

/// With all that a channel adds; and with a reader that sleeps each time.
fn singly(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipe/one message");
    group.throughput(Throughput::Elements(1));
    let (mut sender, mut receiver) =
        pipe::channel(Capacity::Bounded(1 << 12), WaitStrategy::SpinPark).expect("it fits");
    group.bench_function("channel, send and receive", |bencher| {
        bencher.iter(|| {
            sender.send(black_box(7_u64)).expect("the receiver is there");
            receiver.recv()
        });
    });
    let (mut writer, mut reader) = pipe::unbounded();
    group.bench_function("the reader is asleep each time", |bencher| {
        bencher.iter(|| {
            assert!(!reader.check());
            writer.write(7);
            assert_eq!(writer.flush(), Peer::Asleep);
            reader.read()
        });
    });
}

/// A signal to an awake thread, and its taking.
fn signals(criterion: &mut Criterion) {
    fn go<W: Signals>(criterion: &mut Criterion, name: &str, mut waiter: W) {
        let signal = waiter.bind(0).expect("there is one");
        criterion.bench_function(&format!("signal/{name}"), |bencher| {
            bencher.iter(|| {
                signal.signal();
                waiter.check()
            });
        });
    }
    go(criterion, "semaphore", Semaphore::new());
    go(criterion, "pollset", PollSet::new());
    go(criterion, "socket signal", SocketSignal::new().expect("a descriptor"));
}

criterion_group!(benches, batches, singly, signals);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
