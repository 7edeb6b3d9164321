//! Several producers, and workers who share what they send.

use anyhow::Result;
use lanecast_ring::rings::{self, Worker};

use super::ring;
use super::strategy::strategy;
use crate::cases::case::Built;
use crate::idle::Idle;
use crate::load::Load;
use crate::stream::{Drain, Stream, drained, polled};

/// The most values that a worker takes at once, where it takes runs.
const RUN: usize = 64;

/// Workers take one by one what is sent one by one, and in runs what is sent in batches.
pub(super) fn like_producers(load: &Load) -> Result<(Built, &'static str)> {
    if load.batch == 1 {
        Ok((stream(load, singly)?, "ring a producer: push; workers pop"))
    } else {
        Ok((stream(load, runs)?, "ring a producer: claim; workers take runs"))
    }
}

/// However it was sent, workers take runs.
pub(super) fn in_runs(load: &Load) -> Result<(Built, &'static str)> {
    let load = Load { batch: 1, ..*load };
    Ok((stream(&load, runs)?, "ring a producer: push; workers take runs"))
}

fn stream(load: &Load, drain: fn(Worker<u64>) -> Box<dyn Drain>) -> Result<Built> {
    let build = rings::multi_producer(load.producers, load.capacity, || 0_u64)?;
    let mut build = build.wait(strategy(load));
    let drains = build.workers(load.consumers)?.into_iter().map(drain).collect();
    let producers = build.producers()?.into_iter();
    let feeds = producers.map(|producer| ring::feed(producer, load.batch)).collect();
    Ok(Built::Stream(Stream { feeds, drains }))
}

fn singly(mut worker: Worker<u64>) -> Box<dyn Drain> {
    polled(Idle::inside(), move || {
        let value = worker.pop();
        worker.wait(usize::from(value.is_some()));
        value
    })
}

fn runs(mut worker: Worker<u64>) -> Box<dyn Drain> {
    drained(Idle::inside(), move |tally| {
        let work = worker.take(RUN, |values| tally.slice(values));
        worker.wait(work);
        work > 0
    })
}
