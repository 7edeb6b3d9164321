//! kanal: a bounded channel for several producers and consumers.

use anyhow::Result;
use kanal::{Receiver, Sender};

use super::case::{Built, Case};
use crate::load::{Load, Row};
use crate::pair::{End, Pair, end};
use crate::stream::{Stream, blocking, each_until};
use crate::tally::END;

pub const CASES: &[Case] = &[Case {
    peer: "kanal",
    side: "kanal",
    package: Some("kanal"),
    rows: &[Row::Queue, Row::Pop, Row::Mpmc, Row::Pingpong, Row::PingpongPark],
    build,
}];

/// Spins for a while before it sleeps; asking again and again (`try_recv`) was slower.
fn build(load: &Load) -> Result<(Built, &'static str)> {
    let (put, take) = kanal::bounded(load.capacity);
    if matches!(load.row, Row::Pingpong | Row::PingpongPark) {
        let (back, taken_back) = kanal::bounded(load.capacity);
        let pair = Pair { near: both(put, taken_back), far: both(back, take) };
        return Ok((Built::Pair(pair), "send; recv (spins before it sleeps)"));
    }
    let shared = load.is_shared();
    let feeds = (0..load.producers).map(|_| {
        let (put, wake) = (put.clone(), put.clone());
        each_until(
            move |value| put.send(value).expect("receivers stay"),
            move |consumers| {
                // Who sees everything knows when to stop.
                let ends = if shared { consumers } else { 0 };
                (0..ends).for_each(|_| wake.send(END).expect("receivers stay"));
            },
        )
    });
    let feeds = feeds.collect();
    let drains = (0..load.consumers).map(|_| {
        let take = take.clone();
        blocking(move || take.recv().expect("senders stay"))
    });
    let stream = Stream { feeds, drains: drains.collect() };
    Ok((Built::Stream(stream), "send; recv"))
}

fn both(put: Sender<u64>, take: Receiver<u64>) -> Box<dyn End> {
    end(
        move |value| put.send(value).expect("the other end stays"),
        move || take.recv().expect("the other end stays"),
    )
}
