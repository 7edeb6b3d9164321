//! crossbeam: its bounded channel, and its two queues.

use std::sync::Arc;

use anyhow::Result;
use crossbeam_channel::{Receiver, Sender, TrySendError};
use crossbeam_queue::{ArrayQueue, SegQueue};

use super::case::{Built, Case};
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{Pair, end};
use crate::stream::{Stream, each, polled};

pub const CASES: &[Case] = &[
    Case {
        peer: "crossbeam",
        side: "crossbeam",
        package: Some("crossbeam-channel"),
        rows: &[Row::Queue, Row::Pop, Row::Mpmc, Row::Pingpong, Row::PingpongPark],
        build: channel,
    },
    Case {
        peer: "crossbeam",
        side: "arrayqueue",
        package: Some("crossbeam-queue"),
        rows: &[Row::Queue, Row::Pop, Row::Mpmc],
        build: array_queue,
    },
    Case {
        peer: "crossbeam",
        side: "segqueue",
        package: Some("crossbeam-queue"),
        rows: &[Row::Queue, Row::Pop, Row::Mpmc],
        build: seg_queue,
    },
];

fn channel(load: &Load) -> Result<(Built, &'static str)> {
    let (put, take) = crossbeam_channel::bounded(load.capacity);
    if matches!(load.row, Row::Pingpong | Row::PingpongPark) {
        let (back, taken_back) = crossbeam_channel::bounded(load.capacity);
        let (near, far) = ((put, taken_back), (back, take));
        return Ok(if load.row == Row::Pingpong {
            (Built::Pair(spinning(near, far, Idle::new(load))), "try_send; try_recv")
        } else {
            (Built::Pair(sleeping(near, far)), "send; recv (spins before it sleeps)")
        });
    }
    let idle = Idle::new(load);
    let feeds = (0..load.producers).map(|_| {
        let (put, mut idle) = (put.clone(), idle);
        each(move |value| {
            idle.until(|| match put.try_send(value) {
                Ok(()) => Some(()),
                Err(TrySendError::Full(_)) => None,
                Err(TrySendError::Disconnected(_)) => unreachable!("receivers stay"),
            });
        })
    });
    let feeds = feeds.collect();
    let drains = (0..load.consumers).map(|_| {
        let take = take.clone();
        polled(idle, move || take.try_recv().ok())
    });
    let stream = Stream { feeds, drains: drains.collect() };
    Ok((Built::Stream(stream), "try_send; try_recv"))
}

type Side = (Sender<u64>, Receiver<u64>);

fn spinning(near: Side, far: Side, idle: Idle) -> Pair {
    let spins = |(put, take): Side| {
        let mut idle = idle;
        end(
            move |value| put.try_send(value).expect("a channel with at most one value in it"),
            move || idle.until(|| take.try_recv().ok()),
        )
    };
    Pair { near: spins(near), far: spins(far) }
}

fn sleeping(near: Side, far: Side) -> Pair {
    let sleeps = |(put, take): Side| {
        end(
            move |value| put.send(value).expect("the other end stays"),
            move || take.recv().expect("the other end stays"),
        )
    };
    Pair { near: sleeps(near), far: sleeps(far) }
}

fn array_queue(load: &Load) -> Result<(Built, &'static str)> {
    let (queue, idle) = (Arc::new(ArrayQueue::new(load.capacity)), Idle::new(load));
    let feeds = (0..load.producers).map(|_| {
        let (queue, mut idle) = (queue.clone(), idle);
        each(move |value| idle.until(|| queue.push(value).ok()))
    });
    let drains = (0..load.consumers).map(|_| {
        let queue = queue.clone();
        polled(idle, move || queue.pop())
    });
    let stream = Stream { feeds: feeds.collect(), drains: drains.collect() };
    Ok((Built::Stream(stream), "push; pop"))
}

fn seg_queue(load: &Load) -> Result<(Built, &'static str)> {
    let queue = Arc::new(SegQueue::new());
    let feeds = (0..load.producers).map(|_| {
        let queue = queue.clone();
        each(move |value| queue.push(value))
    });
    let drains = (0..load.consumers).map(|_| {
        let queue = queue.clone();
        polled(Idle::new(load), move || queue.pop())
    });
    let stream = Stream { feeds: feeds.collect(), drains: drains.collect() };
    Ok((Built::Stream(stream), "push; pop (unbounded)"))
}
