//! `tokio::sync::mpsc`, used from threads that are none of a runtime's.

use anyhow::Result;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::case::{Built, Case};
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{End, Pair, end};
use crate::stream::{Feed, Stream, drained, each, polled, runs};

/// Most messages that are taken at once.
const MOST_AT_ONCE: usize = 1024;

pub const CASES: &[Case] = &[Case {
    peer: "tokio",
    side: "tokio",
    package: Some("tokio"),
    rows: &[Row::Queue, Row::Pop, Row::Batch, Row::Pingpong, Row::PingpongPark],
    build,
}];

fn build(load: &Load) -> Result<(Built, &'static str)> {
    let (put, mut take) = channel(load.capacity);
    let idle = Idle::new(load);
    let (feed, way): (Box<dyn Feed>, _) = match load.row {
        Row::Pingpong | Row::PingpongPark => {
            let (back, taken_back) = channel(load.capacity);
            let spin = load.row == Row::Pingpong;
            let pair =
                Pair { near: both(put, taken_back, idle, spin), far: both(back, take, idle, spin) };
            let way = if spin { "try_send; try_recv" } else { "blocking_send; blocking_recv" };
            return Ok((Built::Pair(pair), way));
        }
        Row::Batch => (permits(put, idle, load.batch), "try_reserve_many; blocking_recv_many"),
        Row::Queue => (sends(put), "blocking_send; blocking_recv_many"),
        _ => (sends(put), "blocking_send; try_recv"),
    };
    let drain = if load.row == Row::Pop {
        polled(idle, move || take.try_recv().ok())
    } else {
        let mut taken = Vec::with_capacity(MOST_AT_ONCE);
        drained(Idle::inside(), move |tally| {
            let most = tally.left().map_or(MOST_AT_ONCE, |left| MOST_AT_ONCE.min(left as usize));
            let there = take.blocking_recv_many(&mut taken, most);
            tally.slice(&taken);
            taken.clear();
            there > 0
        })
    };
    Ok((Built::Stream(Stream { feeds: vec![feed], drains: vec![drain] }), way))
}

fn sends(put: Sender<u64>) -> Box<dyn Feed> {
    each(move |value| put.blocking_send(value).expect("the receiver stays"))
}

fn permits(put: Sender<u64>, mut idle: Idle, batch: u64) -> Box<dyn Feed> {
    runs(batch, move |values| {
        let wanted = (values.end - values.start) as usize;
        let permits = idle.until(|| put.try_reserve_many(wanted).ok());
        permits.zip(values).for_each(|(permit, value)| permit.send(value));
    })
}

fn both(put: Sender<u64>, mut take: Receiver<u64>, mut idle: Idle, spin: bool) -> Box<dyn End> {
    if spin {
        return end(
            move |value| put.try_send(value).expect("a channel with at most one value in it"),
            move || idle.until(|| take.try_recv().ok()),
        );
    }
    end(
        move |value| put.blocking_send(value).expect("the other end stays"),
        move || take.blocking_recv().expect("the other end stays"),
    )
}
