//! Several producers, and workers who share what they send.

use anyhow::Result;
use lanecast_ring::rings::{self, Worker};

use super::super::Built;
use super::{ring, strategy};
use crate::idle::Idle;
use crate::load::Load;
use crate::stream::{Drain, Stream, drained, polled};

pub(super) fn build(load: &Load) -> Result<(Built, &'static str)> {
    let build = rings::multi_producer(load.producers, load.capacity, || 0_u64)?;
    let mut build = build.wait(strategy(load));
    let workers = build.workers(load.consumers)?;
    let producers = build.producers()?.into_iter();
    let feeds = producers.map(|producer| ring::feed(producer, load.batch)).collect();
    let (drains, way) = if load.batch == 1 {
        (workers.into_iter().map(singly).collect(), "ring a producer: push; workers pop")
    } else {
        let most = load.batch as usize;
        let drains = workers.into_iter().map(|worker| in_runs(worker, most)).collect();
        (drains, "ring a producer: claim; workers take runs")
    };
    Ok((Built::Stream(Stream { feeds, drains }), way))
}

fn singly(mut worker: Worker<u64>) -> Box<dyn Drain> {
    polled(Idle::inside(), move || {
        let value = worker.pop();
        worker.wait(usize::from(value.is_some()));
        value
    })
}

fn in_runs(mut worker: Worker<u64>, most: usize) -> Box<dyn Drain> {
    drained(Idle::inside(), move |tally| {
        let work = worker.take(most, |values| tally.slice(values));
        worker.wait(work);
        work > 0
    })
}
