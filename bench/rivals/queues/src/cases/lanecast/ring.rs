//! Rings with one producer.

use anyhow::Result;
use lanecast_ring::rings::{self, Consumer, ExclusiveConsumer, Producer};

use super::strategy::strategy;
use crate::cases::case::Built;
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{End, Pair, end};
use crate::stream::{Drain, Feed, Stream, drained, each, polled, runs};

pub(super) fn in_slices(load: &Load) -> Result<(Built, &'static str)> {
    let mut build = rings::single_producer(load.capacity, || 0_u64)?.wait(strategy(load));
    let first = build.consumer()?;
    let mut consumers = vec![first];
    match load.row {
        Row::Multicast => consumers.extend([build.consumer()?, build.consumer()?]),
        Row::Diamond => {
            let second = build.consumer()?;
            let last = build.after(&[&consumers[0], &second])?;
            consumers.extend([second, last]);
        }
        _ => (),
    }
    let feed = feed(build.producer()?, load.batch);
    let drains = consumers.into_iter().map(slices).collect();
    let way = if load.batch > 1 {
        "ring: claim; drained as slices"
    } else {
        "ring: push; drained as slices"
    };
    Ok((Built::Stream(Stream { feeds: vec![feed], drains }), way))
}

pub(super) fn feed(mut ring: Producer<u64>, batch: u64) -> Box<dyn Feed> {
    if batch == 1 {
        return each(move |value| ring.push(value).expect("consumers stay"));
    }
    runs(batch, move |mut values| {
        while !values.is_empty() {
            let wanted = (values.end - values.start) as usize;
            let mut claim = ring.claim(wanted).expect("consumers stay");
            for (slot, value) in claim.iter_mut().zip(values.clone()) {
                *slot = value;
            }
            values.start += claim.len() as u64;
            claim.commit();
        }
    })
}

fn slices(mut ring: Consumer<u64>) -> Box<dyn Drain> {
    drained(Idle::inside(), move |tally| {
        let work = ring.drain(usize::MAX, |values| tally.slice(values));
        ring.wait(work);
        work > 0
    })
}

pub(super) fn popped(load: &Load) -> Result<(Built, &'static str)> {
    let (mut put, ring) = rings::unicast(load.capacity, || 0_u64, strategy(load))?;
    let feed = each(move |value| put.push(value).expect("the consumer stays"));
    let drain = polled(Idle::inside(), one_or_wait(ring));
    Ok((Built::Stream(Stream { feeds: vec![feed], drains: vec![drain] }), "ring: push; pop"))
}

/// Takes values singly, and leaves the waiting to the ring when there is none.
fn one_or_wait(mut ring: ExclusiveConsumer<u64>) -> impl FnMut() -> Option<u64> {
    move || {
        let value = ring.pop_copy();
        if value.is_none() {
            ring.wait(0);
        }
        value
    }
}

pub(super) fn round_trips(load: &Load) -> Result<(Built, &'static str)> {
    let (there, take) = rings::unicast(load.capacity, || 0_u64, strategy(load))?;
    let (back, taken_back) = rings::unicast(load.capacity, || 0_u64, strategy(load))?;
    let pair = Pair { near: both(there, taken_back), far: both(back, take) };
    Ok((Built::Pair(pair), "ring: push; pop"))
}

fn both(mut put: Producer<u64>, ring: ExclusiveConsumer<u64>) -> Box<dyn End> {
    let mut one = one_or_wait(ring);
    let mut waits = Idle::inside();
    end(move |value| put.push(value).expect("the other end stays"), move || waits.until(&mut one))
}
