//! Rings with several producers, whose consumers share the messages.

use super::exchange::{Case, End, Found};
use super::single::produce;
use crate::smx::RunLength;
use crate::threads::{Block, DeliveryCheck, Failed, Quota, Role, ThreadGroup};
use lanecast_ring::rings::{self, Worker};

/// Runs a row with several producers.
pub(super) fn run<const WORDS: usize>(case: &Case, length: RunLength) -> Result<Found, Failed> {
    let (producers, consumers) = (case.row.producers(), case.row.consumers());
    let build = rings::multi_producer(producers, case.capacity, Block::<WORDS>::default)?;
    let mut build = build.wait(case.wait);
    let workers = build.workers(consumers)?;
    let mut group = ThreadGroup::new();
    for ((at, producer), cpu) in
        build.producers()?.into_iter().enumerate().zip(&case.seats.producers)
    {
        let share = Quota::share(length, at, producers);
        group.join(Role::Producer, *cpu, move || produce(producer, case.batch, share, at));
    }
    for (worker, cpu) in workers.into_iter().zip(&case.seats.consumers) {
        group.join(Role::Consumer, *cpu, move || work(worker, case.batch, producers));
    }
    Ok(Found::all_see_all(group.run()?))
}

/// Claims exclusive runs of at most `batch` messages.
fn work<const WORDS: usize>(
    mut worker: Worker<Block<WORDS>>,
    batch: usize,
    producers: usize,
) -> End {
    let mut seen = DeliveryCheck::new(producers);
    loop {
        let work = worker.take(batch, |blocks| seen.see(blocks));
        if work == 0 && worker.is_closed() {
            return End::seen(seen);
        }
        worker.wait(work);
    }
}
