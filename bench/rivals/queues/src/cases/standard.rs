//! `std::sync::mpsc`: the bounded and the unbounded channel.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use anyhow::Result;

use super::case::{Built, Case};
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{Pair, end};
use crate::stream::{Stream, blocking, each, polled};

pub const CASES: &[Case] = &[
    Case {
        peer: "std",
        side: "std",
        package: None,
        rows: &[Row::Queue, Row::Pop, Row::Pingpong, Row::PingpongPark],
        build: bounded,
    },
    Case {
        peer: "std",
        side: "std-unbounded",
        package: None,
        rows: &[Row::Queue, Row::Pop],
        build: unbounded,
    },
];

fn bounded(load: &Load) -> Result<(Built, &'static str)> {
    let (put, take) = sync_channel(load.capacity);
    if matches!(load.row, Row::Pingpong | Row::PingpongPark) {
        let (back, taken_back) = sync_channel(load.capacity);
        let (near, far) = ((put, taken_back), (back, take));
        return Ok(if load.row == Row::Pingpong {
            (Built::Pair(spinning(near, far, Idle::new(load))), "send; try_recv")
        } else {
            (Built::Pair(sleeping(near, far)), "send; recv")
        });
    }
    let feed = each(move |value| put.send(value).expect("the receiver stays"));
    let drain = blocking(move || take.recv().expect("the sender stays"));
    let stream = Stream { feeds: vec![feed], drains: vec![drain] };
    Ok((Built::Stream(stream), "sync_channel: send; recv"))
}

type Side = (SyncSender<u64>, Receiver<u64>);

fn spinning(near: Side, far: Side, idle: Idle) -> Pair {
    let spins = |(put, take): Side| {
        let mut idle = idle;
        end(
            move |value| put.send(value).expect("the other end stays"),
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

fn unbounded(load: &Load) -> Result<(Built, &'static str)> {
    let (put, take) = channel();
    let feed = each(move |value| put.send(value).expect("the receiver stays"));
    let drain = polled(Idle::new(load), move || take.try_recv().ok());
    let stream = Stream { feeds: vec![feed], drains: vec![drain] };
    Ok((Built::Stream(stream), "channel: send; try_recv (unbounded)"))
}
