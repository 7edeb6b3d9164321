//! Rings of values in place: one producer, consumers in any topology.
//!
//! Consumers are added first: side by side, each of which sees every value, or one after others,
//! which it then never overtakes. The producer comes last and never overtakes the slowest.
//!
//! ```
//! use lanecast_ring::rings;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut build = rings::single_producer(1024, || 0_u64)?;
//! let mut journal = build.consumer()?;
//! let mut replica = build.consumer()?;
//! let mut logic = build.after(&[&journal, &replica])?; // A diamond.
//! let mut producer = build.producer()?;
//!
//! producer.push(7)?;
//! let mut seen = 0;
//! assert_eq!(logic.drain(64, |_| {}), 0, "the two before it have not read it yet");
//! journal.drain(64, |values| assert_eq!(values, [7]));
//! replica.drain(64, |values| assert_eq!(values, [7]));
//! logic.drain(64, |values| seen += values[0]);
//! assert_eq!(seen, 7);
//! # Ok(())
//! # }
//! ```

pub use crate::claim::Claim;
pub use crate::consumer::Consumer;
pub use crate::error::{BuildError, Closed, PushError};
pub use crate::producer::Producer;
pub use crate::taker::Taker;

use crate::cursor::Cursor;
use crate::gates::Gates;
use crate::line::Line;
use crate::slots::Slots;
use lanecast_base::WaitStrategy;
use lanecast_os::barrier;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The largest ring: its positions and sizes stay far from any overflow.
const CAPACITY_MAX: usize = 1 << 32;

/// Starts a ring with one producer: `capacity` slots, each with a value from `factory`.
///
/// # Errors
/// If `capacity` is no power of two, or too large.
pub fn single_producer<T: Send + Sync>(
    capacity: usize,
    factory: impl FnMut() -> T,
) -> Result<Rings<T>, BuildError> {
    if !capacity.is_power_of_two() || capacity > CAPACITY_MAX {
        return Err(BuildError::Capacity { asked: capacity });
    }
    barrier::register();
    let line = Line::new(Slots::new(capacity, factory));
    Ok(Rings {
        line: Arc::new(line),
        members: Vec::new(),
        strategy: WaitStrategy::default(),
        stride: 1,
        pull_after: None,
    })
}

/// One producer and one consumer, which takes values.
///
/// # Errors
/// As for [`single_producer`].
pub fn unicast<T: Send + Sync>(
    capacity: usize,
    factory: impl FnMut() -> T,
    strategy: WaitStrategy,
) -> Result<(Producer<T>, Taker<T>), BuildError> {
    let mut build = single_producer(capacity, factory)?.wait(strategy);
    let taker = build.taker()?;
    Ok((build.producer()?, taker))
}

/// A ring that is being built.
#[derive(Debug)]
pub struct Rings<T> {
    line: Arc<Line<T>>,
    members: Vec<Member>,
    strategy: WaitStrategy,
    stride: u64,
    pull_after: Option<Duration>,
}

/// A consumer, as the builder sees it.
#[derive(Debug)]
struct Member {
    head: Arc<Cursor>,
    /// All that come before it, by number.
    before: BTreeSet<usize>,
    is_alone: bool,
}

impl<T: Send + Sync> Rings<T> {
    /// How the ends added from now on wait; [`WaitStrategy::SpinPark`] unless said otherwise.
    #[must_use]
    pub const fn wait(mut self, strategy: WaitStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Publishes every `values` values instead of each: fewer cache lines change hands.
    ///
    /// Nothing is held back for longer than `delay`: a consumer that has been without values for
    /// so long takes what is written but not published. A sleeping consumer is woken at once.
    /// Say it before adding consumers.
    #[must_use]
    pub fn stride(mut self, values: usize, delay: Duration) -> Self {
        self.stride = values.clamp(1, self.line.slots.capacity() as usize) as u64;
        self.pull_after = (self.stride > 1).then_some(delay);
        self
    }

    /// A consumer of every value as soon as it is published.
    ///
    /// # Errors
    /// If there is a taker, beside which nobody may read.
    pub fn consumer(&mut self) -> Result<Consumer<T>, BuildError> {
        self.after(&[])
    }

    /// A consumer that never overtakes any of `others`.
    ///
    /// # Errors
    /// If one of them belongs to another ring, or if there is a taker that it does not follow.
    pub fn after(&mut self, others: &[&Consumer<T>]) -> Result<Consumer<T>, BuildError> {
        self.add(others, false)
    }

    /// A consumer that may take values out, because it is the only one.
    ///
    /// # Errors
    /// If there are others.
    pub fn taker(&mut self) -> Result<Taker<T>, BuildError> {
        self.taker_after(&[])
    }

    /// A consumer that may change values and take them out, because it follows all the others.
    ///
    /// # Errors
    /// If it does not follow all the others, directly or through them.
    pub fn taker_after(&mut self, others: &[&Consumer<T>]) -> Result<Taker<T>, BuildError> {
        Ok(Taker::new(self.add(others, true)?))
    }

    fn add(&mut self, others: &[&Consumer<T>], is_alone: bool) -> Result<Consumer<T>, BuildError> {
        let before = self.all_before(others)?;
        let mut beside = self.members.iter().enumerate().filter(|(n, _)| !before.contains(n));
        if beside.any(|(_, member)| is_alone || member.is_alone) {
            return Err(BuildError::NotAlone);
        }
        let (gates, pull_after) = if others.is_empty() {
            (Gates::new([Arc::clone(&self.line.tail)]), self.pull_after)
        } else {
            (Gates::new(others.iter().map(|other| Arc::clone(&other.head))), None)
        };
        let consumer = Consumer::new(Arc::clone(&self.line), gates, pull_after, self.strategy);
        self.members.push(Member { head: Arc::clone(&consumer.head), before, is_alone });
        Ok(consumer)
    }

    /// The numbers of `others` and of all that come before them.
    fn all_before(&self, others: &[&Consumer<T>]) -> Result<BTreeSet<usize>, BuildError> {
        let mut before = BTreeSet::new();
        for other in others {
            let number = self.members.iter().position(|m| Arc::ptr_eq(&m.head, &other.head));
            let number = number.ok_or(BuildError::Stranger)?;
            before.insert(number);
            before.extend(&self.members[number].before);
        }
        Ok(before)
    }

    /// The producer, which completes the ring.
    ///
    /// # Errors
    /// If there is no consumer.
    pub fn producer(self) -> Result<Producer<T>, BuildError> {
        if self.members.is_empty() {
            return Err(BuildError::NoConsumer);
        }
        let heads: Box<[_]> = self.members.iter().map(|member| Arc::clone(&member.head)).collect();
        // Set once: the builder is consumed.
        let _ = self.line.heads.set(heads);
        let is_last = |number: &usize| !self.members.iter().any(|m| m.before.contains(number));
        let last = self.members.iter().enumerate().filter(|(number, _)| is_last(number));
        let gates = Gates::new(last.map(|(_, member)| Arc::clone(&member.head)));
        Ok(Producer::new(self.line, gates, self.stride, self.strategy))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
