//! The topologies, and one interface to whatever reads in them.

use super::value::{Label, Value};
use lanecast_ring::rings::{self, Consumer, ExclusiveConsumer, Lanes, Producer, Worker};
use std::time::Duration;

/// Order of the consumers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Topology {
    Unicast,
    Multicast(usize),
    /// Two readers, an exclusive consumer, and, with one lane, a reader of what it leaves.
    Pipeline,
    /// Two readers, two that follow both and one of them, and an exclusive consumer.
    Diamond,
    Workers(usize),
    WorkersBehind(usize),
}

/// A ring to be built; `lanes` is 0 for a ring that knows only one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) topology: Topology,
    pub(crate) lanes: usize,
    pub(crate) capacity: usize,
    pub(crate) stride: usize,
}

/// Kind of one reading end.
pub(crate) enum End {
    Reader(Consumer<Value>),
    Readers(Lanes<Consumer<Value>>),
    ExclusiveConsumer(ExclusiveConsumer<Value>),
    Takers(Lanes<ExclusiveConsumer<Value>>),
    Workers(Vec<Worker<Value>>),
}

/// An end, and the numbers of all that come before it.
pub(crate) type Placed = (End, Vec<usize>);

macro_rules! place {
    ($build:ident, $shape:ident, $reader:path, $exclusive_consumer:path) => {
        match $shape.topology {
            Topology::Unicast => {
                vec![($exclusive_consumer($build.exclusive_consumer().unwrap()), vec![])]
            }
            Topology::Multicast(count) => {
                (0..count).map(|_| ($reader($build.consumer().unwrap()), vec![])).collect()
            }
            Topology::Pipeline => {
                let first = $build.consumer().unwrap();
                let second = $build.after(&[&first]).unwrap();
                let third = $build.exclusive_after(&[&second]).unwrap();
                let last = ($shape.lanes < 2).then(|| $build.after(&[&third]).unwrap());
                let ends = [($reader(first), vec![]), ($reader(second), vec![0])];
                let last = last.map(|last| ($reader(last), vec![0, 1, 2]));
                ends.into_iter()
                    .chain([($exclusive_consumer(third), vec![0, 1])])
                    .chain(last)
                    .collect()
            }
            Topology::Diamond => {
                let [first, beside] = [(); 2].map(|()| $build.consumer().unwrap());
                let both = $build.after(&[&first, &beside]).unwrap();
                let one = $build.after(&[&beside]).unwrap();
                let last = $build.exclusive_after(&[&both, &one]).unwrap();
                vec![
                    ($reader(first), vec![]),
                    ($reader(beside), vec![]),
                    ($reader(both), vec![0, 1]),
                    ($reader(one), vec![1]),
                    ($exclusive_consumer(last), vec![0, 1, 2, 3]),
                ]
            }
            Topology::Workers(count) => {
                vec![(End::Workers($build.workers(count).unwrap()), vec![])]
            }
            Topology::WorkersBehind(count) => {
                let first = $build.consumer().unwrap();
                let workers = $build.workers_after(count, &[&first]).unwrap();
                vec![($reader(first), vec![]), (End::Workers(workers), vec![0])]
            }
        }
    };
}

impl Shape {
    pub(crate) fn build(&self) -> (Vec<Producer<Value>>, Vec<Placed>) {
        // Nothing is pulled from a stride: that would depend on the time.
        let (stride, delay) = (self.stride, Duration::from_secs(1000));
        if self.lanes == 0 {
            let build = rings::single_producer(self.capacity, Value::default);
            let mut build = build.unwrap().stride(stride, delay);
            let ends = place!(build, self, End::Reader, End::ExclusiveConsumer);
            (vec![build.producer().unwrap()], ends)
        } else {
            let build = rings::multi_producer(self.lanes, self.capacity, Value::default);
            let mut build = build.unwrap().stride(stride, delay);
            let ends = place!(build, self, End::Readers, End::Takers);
            (build.producers().unwrap(), ends)
        }
    }
}

impl End {
    /// Reads at most `max` values; one of the workers reads for all.
    pub(crate) fn read(&mut self, max: usize) -> Vec<Label> {
        let mut seen = Vec::new();
        let mut note = |values: &[Value]| seen.extend(values.iter().map(|value| *value.label));
        let count = match self {
            Self::Reader(end) => end.drain(max, note),
            Self::Readers(end) => end.drain(max, note),
            Self::ExclusiveConsumer(end) => end.drain(max, note),
            Self::Takers(end) => end.drain(max, note),
            Self::Workers(ends) => {
                ends.rotate_left(1);
                // So often at the most until one helps out in all lanes.
                let mut rounds = (0..200).map(|_| ends[0].take(max, |values| note(values)));
                rounds.find(|&count| count > 0).unwrap_or(0)
            }
        };
        assert_eq!(count, seen.len());
        assert!(count <= max);
        seen
    }

    /// As [`read`](Self::read), and takes every second value out; nothing if it may not.
    pub(crate) fn change(&mut self, max: usize) -> Option<Vec<Label>> {
        let mut seen = Vec::new();
        let take = |values: &mut [Value]| {
            for value in values {
                seen.push(*value.label);
                if seen.len() % 2 == 0 {
                    drop(core::mem::take(value));
                }
            }
        };
        match self {
            Self::Reader(_) | Self::Readers(_) => return None,
            Self::ExclusiveConsumer(end) => end.drain_mut(max, take),
            Self::Takers(end) => end.drain_mut(max, take),
            Self::Workers(ends) => ends[0].take(max, take),
        };
        Some(seen)
    }

    /// Takes one value out; nothing if it may not.
    pub(crate) fn pop(&mut self) -> Option<Option<Label>> {
        let value = match self {
            Self::Reader(_) | Self::Readers(_) => return None,
            Self::ExclusiveConsumer(end) => end.pop(),
            Self::Takers(end) => end.pop(),
            Self::Workers(ends) => (0..200).find_map(|_| ends[0].pop()),
        };
        Some(value.map(|value| *value.label))
    }

    /// Whether all of it has come to the end.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Reader(end) => end.is_closed(),
            Self::Readers(end) => end.is_closed(),
            Self::ExclusiveConsumer(end) => end.is_closed(),
            Self::Takers(end) => end.is_closed(),
            Self::Workers(ends) => ends.iter().all(Worker::is_closed),
        }
    }
}
