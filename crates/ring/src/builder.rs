//! Builder of a ring with one producer: its consumers in any topology, then its producer.

use crate::consumer::Consumer;
use crate::cursor::{Cursor, IDLE};
use crate::error::BuildError;
use crate::exclusive_consumer::ExclusiveConsumer;
use crate::gating::GatingCursors;
use crate::handlers::{HandlerRing, RingControl, RingSet, Stage, Staged};
use crate::producer::Producer;
use crate::producer_lane::RingBuffer;
use crate::sleep_leader::SleepLeader;
use crate::slots::Slots;
use crate::work_claim::{WorkClaim, WorkerGroup};
use crate::worker::Worker;
use lanecast_base::WaitStrategy;
use lanecast_os::barrier;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Largest capacity: positions and sizes stay far from any overflow.
pub(crate) const CAPACITY_MAX: usize = 1 << 32;

/// Starts a ring with one producer: `capacity` slots, each with a value from `factory`.
///
/// # Errors
/// If `capacity` is not a power of two, or too large.
pub fn single_producer<T: Send + Sync>(
    capacity: usize,
    factory: impl FnMut() -> T,
) -> Result<Rings<T>, BuildError> {
    if !capacity.is_power_of_two() || capacity > CAPACITY_MAX {
        return Err(BuildError::Capacity { asked: capacity });
    }
    barrier::register();
    let ring = RingBuffer::new(Slots::new(capacity, factory));
    Ok(Rings {
        ring: Arc::new(ring),
        members: Vec::new(),
        strategy: WaitStrategy::default(),
        stride: 1,
        pull_after: None,
    })
}

/// A ring with one producer and one exclusive consumer.
///
/// # Errors
/// As for [`single_producer`].
pub fn unicast<T: Send + Sync>(
    capacity: usize,
    factory: impl FnMut() -> T,
    strategy: WaitStrategy,
) -> Result<(Producer<T>, ExclusiveConsumer<T>), BuildError> {
    let mut build = single_producer(capacity, factory)?.wait(strategy);
    let exclusive_consumer = build.exclusive_consumer()?;
    Ok((build.producer()?, exclusive_consumer))
}

/// Builder of a ring: consumers first, the producer last.
#[derive(Debug)]
pub struct Rings<T> {
    ring: Arc<RingBuffer<T>>,
    members: Vec<Member>,
    strategy: WaitStrategy,
    stride: u64,
    pull_after: Option<Duration>,
}

/// A consumer of the ring being built.
#[derive(Debug)]
struct Member {
    head: Arc<Cursor>,
    /// Numbers of all consumers before it.
    before: BTreeSet<usize>,
    is_exclusive: bool,
}

impl<T: Send + Sync> Rings<T> {
    /// Wait strategy of the ends added afterwards; [`WaitStrategy::SpinPark`] by default.
    #[must_use]
    pub const fn wait(mut self, strategy: WaitStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Publishes after every `values` values instead of each: fewer cache-line transfers.
    ///
    /// Values are held back for at most `delay`: a consumer without values for so long reads
    /// unpublished ones. A sleeping consumer is woken at once. Call it before adding consumers.
    #[must_use]
    pub fn stride(mut self, values: usize, delay: Duration) -> Self {
        self.stride = values.clamp(1, self.ring.slots.capacity() as usize) as u64;
        self.pull_after = (self.stride > 1).then_some(delay);
        self
    }

    /// A consumer of every value as soon as it is published.
    ///
    /// # Errors
    /// If there is an exclusive consumer.
    pub fn consumer(&mut self) -> Result<Consumer<T>, BuildError> {
        self.after(&[])
    }

    /// A consumer that never overtakes any of `others`.
    ///
    /// # Errors
    /// If one of them belongs to another ring, or if there is an exclusive consumer beside it.
    pub fn after(&mut self, others: &[&Consumer<T>]) -> Result<Consumer<T>, BuildError> {
        self.add(others, false)
    }

    /// An exclusive consumer without other consumers: it may take values out.
    ///
    /// # Errors
    /// If there are others.
    pub fn exclusive_consumer(&mut self) -> Result<ExclusiveConsumer<T>, BuildError> {
        self.exclusive_after(&[])
    }

    /// An exclusive consumer that follows all other consumers: it may change values and take them
    /// out.
    ///
    /// # Errors
    /// If it does not follow all the others, directly or through them.
    pub fn exclusive_after(
        &mut self,
        others: &[&Consumer<T>],
    ) -> Result<ExclusiveConsumer<T>, BuildError> {
        Ok(ExclusiveConsumer::new(self.add(others, true)?))
    }

    /// A group of `count` workers that share the values, without other consumers.
    ///
    /// # Errors
    /// If there are others, or if `count` is 0.
    pub fn workers(&mut self, count: usize) -> Result<Vec<Worker<T>>, BuildError> {
        self.workers_after(count, &[])
    }

    /// A group of `count` workers that share the values and follow all other consumers.
    ///
    /// # Errors
    /// If it does not follow all the others, directly or through them, or if `count` is 0.
    pub fn workers_after(
        &mut self,
        count: usize,
        others: &[&Consumer<T>],
    ) -> Result<Vec<Worker<T>>, BuildError> {
        let watch = Arc::new(SleepLeader::default());
        let shares = self.shares(count, others)?.into_iter();
        let worker = |share| Worker::new(Box::new([share]), 1, Arc::clone(&watch), self.strategy);
        Ok(shares.map(worker).collect())
    }

    /// Work claims of `count` workers in this ring.
    pub(crate) fn shares(
        &mut self,
        count: usize,
        others: &[&Consumer<T>],
    ) -> Result<Vec<WorkClaim<T>>, BuildError> {
        if count == 0 {
            return Err(BuildError::NoConsumer);
        }
        let before = self.before(others, true)?;
        // The producer reads the cursors in this order: the group's first.
        let claimed = self.join(Cursor::new(0), &before, true);
        let group = Arc::new(WorkerGroup::new(claimed));
        let share = |_| {
            let head = self.join(Cursor::new(IDLE), &before, true);
            WorkClaim::new(self.consume(head, others, &before), Arc::clone(&group))
        };
        Ok((0..count).map(share).collect())
    }

    fn add(
        &mut self,
        others: &[&Consumer<T>],
        is_exclusive: bool,
    ) -> Result<Consumer<T>, BuildError> {
        let before = self.before(others, is_exclusive)?;
        let head = self.join(Cursor::new(0), &before, is_exclusive);
        Ok(self.consume(head, others, &before))
    }

    /// All consumers before one that follows `others`; an error if a consumer beside it is
    /// exclusive, or if it is exclusive itself and there are any beside it.
    fn before(
        &self,
        others: &[&Consumer<T>],
        is_exclusive: bool,
    ) -> Result<BTreeSet<usize>, BuildError> {
        let before = self.all_before(others)?;
        let mut beside = self.members.iter().enumerate().filter(|(n, _)| !before.contains(n));
        if beside.any(|(_, member)| is_exclusive || member.is_exclusive) {
            return Err(BuildError::NotExclusive);
        }
        Ok(before)
    }

    fn join(&mut self, head: Cursor, before: &BTreeSet<usize>, is_exclusive: bool) -> Arc<Cursor> {
        let head = Arc::new(head);
        self.members.push(Member { head: Arc::clone(&head), before: before.clone(), is_exclusive });
        head
    }

    fn consume(
        &self,
        head: Arc<Cursor>,
        others: &[&Consumer<T>],
        before: &BTreeSet<usize>,
    ) -> Consumer<T> {
        let tail = || core::iter::once(Arc::clone(&self.ring.tail));
        let gates = if others.is_empty() {
            GatingCursors::new(tail(), tail())
        } else {
            let all = before.iter().map(|&number| Arc::clone(&self.members[number].head));
            GatingCursors::new(
                others.iter().map(|other| Arc::clone(&other.head)),
                all.chain(tail()),
            )
        };
        Consumer::new(Arc::clone(&self.ring), head, gates, self.pull_after, self.strategy)
    }

    /// Numbers of `others` and of all consumers before them.
    fn all_before(&self, others: &[&Consumer<T>]) -> Result<BTreeSet<usize>, BuildError> {
        let mut before = BTreeSet::new();
        for other in others {
            let number = self.members.iter().position(|m| Arc::ptr_eq(&m.head, &other.head));
            let number = number.ok_or(BuildError::ForeignConsumer)?;
            before.insert(number);
            before.extend(&self.members[number].before);
        }
        Ok(before)
    }

    /// Handlers that each see every message; see [`Staged`].
    pub fn handle_with<K>(self, stage: impl Stage<T, K>) -> Staged<T, Self>
    where
        T: 'static,
    {
        Staged::new(self).then(stage)
    }

    /// Handlers that share the messages, each message for one of them; see [`Staged`].
    pub fn share_among<K, S: Stage<T, K>>(self, handlers: Vec<S>) -> Staged<T, Self>
    where
        T: 'static,
    {
        Staged::new(self).share_among(handlers)
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
        let is_last = |number: &usize| !self.members.iter().any(|m| m.before.contains(number));
        let last = self.members.iter().enumerate().filter(|(number, _)| is_last(number));
        let last = last.map(|(_, member)| Arc::clone(&member.head));
        let gates = GatingCursors::new(last, heads.iter().map(Arc::clone));
        // Set once: the builder is consumed.
        let _ = self.ring.heads.set(heads);
        Ok(Producer::new(Arc::clone(&self.ring), gates, self.stride, self.strategy))
    }
}

impl<T: Send + Sync + 'static> HandlerRing<T> for Rings<T> {
    type End = Consumer<T>;
    type Producers = Producer<T>;

    fn add(&mut self, others: &[&Consumer<T>]) -> Result<Consumer<T>, BuildError> {
        self.after(others)
    }

    fn share(
        &mut self,
        count: usize,
        others: &[&Consumer<T>],
    ) -> Result<Vec<Worker<T>>, BuildError> {
        self.workers_after(count, others)
    }

    fn complete(self) -> Result<(Producer<T>, Box<dyn RingControl>), BuildError> {
        let producer = self.producer()?;
        let lines = RingSet(vec![Arc::clone(&producer.barrier().ring)]);
        Ok((producer, Box::new(lines)))
    }
}

impl<T> Drop for Rings<T> {
    /// Without a producer the consumers have nothing to wait for.
    fn drop(&mut self) {
        if self.ring.heads.get().is_none() {
            self.ring.close(0);
        }
    }
}
