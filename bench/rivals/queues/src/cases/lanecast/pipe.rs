//! Pipes with a signal and a way of waiting.

use anyhow::Result;
use lanecast_base::WaitStrategy;
use lanecast_ring::pipe::{self, Capacity, Receiver, Sender};

use super::strategy::strategy;
use crate::cases::case::Built;
use crate::idle::Idle;
use crate::load::Load;
use crate::pair::{End, Pair, end};
use crate::stream::{Feed, Stream, blocking, drained, each, runs};

fn channel(load: &Load, strategy: WaitStrategy) -> Result<(Sender<u64>, Receiver<u64>)> {
    Ok(pipe::channel(Capacity::Bounded(load.capacity), strategy)?)
}

/// Visible after each message, or after each batch; the reader drains what is there.
pub(super) fn flushed(load: &Load) -> Result<(Built, &'static str)> {
    let (put, mut take) = channel(load, strategy(load))?;
    let drain = drained(Idle::inside(), move |tally| {
        let work = take.drain(usize::MAX, |value| tally.one(value));
        take.wait(work);
        work > 0
    });
    let way = if load.batch > 1 { "pipe: send_all; drain" } else { "pipe: send; drain" };
    Ok((Built::Stream(Stream { feeds: vec![feed(put, load.batch)], drains: vec![drain] }), way))
}

fn feed(mut put: Sender<u64>, batch: u64) -> Box<dyn Feed> {
    if batch == 1 {
        return each(move |value| put.send(value).expect("the receiver stays"));
    }
    runs(batch, move |values| put.send_all(values).expect("the receiver stays"))
}

/// Received one by one.
pub(super) fn received(load: &Load) -> Result<(Built, &'static str)> {
    let (put, mut take) = channel(load, strategy(load))?;
    let drain = blocking(move || take.recv().expect("the sender stays"));
    let stream = Stream { feeds: vec![feed(put, 1)], drains: vec![drain] };
    Ok((Built::Stream(stream), "pipe: send; recv"))
}

pub(super) fn round_trips(load: &Load) -> Result<(Built, &'static str)> {
    Ok((Built::Pair(pair(load, strategy(load))?), "pipe: send; recv"))
}

pub(super) fn round_trips_spin_park(load: &Load) -> Result<(Built, &'static str)> {
    let pair = pair(load, WaitStrategy::SpinPark)?;
    Ok((Built::Pair(pair), "pipe: send; recv (spins before it sleeps)"))
}

fn pair(load: &Load, strategy: WaitStrategy) -> Result<Pair> {
    let (there, take) = channel(load, strategy)?;
    let (back, taken_back) = channel(load, strategy)?;
    Ok(Pair { near: both(there, taken_back), far: both(back, take) })
}

fn both(mut put: Sender<u64>, mut take: Receiver<u64>) -> Box<dyn End> {
    end(
        move |value| put.send(value).expect("the other end stays"),
        move || take.recv().expect("the other end stays"),
    )
}
