//! Builder of rings with several producers: a lane for each of them.

use crate::builder::{Rings, single_producer};
use crate::consumer::Consumer;
use crate::error::BuildError;
use crate::exclusive_consumer::ExclusiveConsumer;
use crate::handlers::{HandlerRing, RingControl, RingSet, Stage, Staged};
use crate::lanes::Lanes;
use crate::producer::Producer;
use crate::sleep_leader::SleepLeader;
use crate::worker::Worker;
use lanecast_base::WaitStrategy;
use std::sync::Arc;
use std::time::Duration;

/// Starts a ring with `producers` producers: each has a lane of `capacity` slots, with values from
/// `factory`.
///
/// # Errors
/// If there is no producer, or if `capacity` is not a power of two or too large.
pub fn multi_producer<T: Send + Sync>(
    producers: usize,
    capacity: usize,
    mut factory: impl FnMut() -> T,
) -> Result<MultiRings<T>, BuildError> {
    if producers == 0 {
        return Err(BuildError::NoProducer);
    }
    let lanes = (0..producers).map(|_| single_producer(capacity, &mut factory));
    Ok(MultiRings { lanes: lanes.collect::<Result<_, _>>()?, strategy: WaitStrategy::default() })
}

/// Builder of a ring with several producers: as [`Rings`], with a lane for each producer.
#[derive(Debug)]
pub struct MultiRings<T> {
    lanes: Vec<Rings<T>>,
    strategy: WaitStrategy,
}

impl<T: Send + Sync> MultiRings<T> {
    /// As [`Rings::wait`].
    #[must_use]
    pub fn wait(mut self, strategy: WaitStrategy) -> Self {
        self.strategy = strategy;
        self.lanes = self.lanes.into_iter().map(|lane| lane.wait(strategy)).collect();
        self
    }

    /// As [`Rings::stride`].
    #[must_use]
    pub fn stride(mut self, values: usize, delay: Duration) -> Self {
        self.lanes = self.lanes.into_iter().map(|lane| lane.stride(values, delay)).collect();
        self
    }

    /// A consumer of every value of every producer.
    ///
    /// # Errors
    /// As for [`Rings::consumer`].
    pub fn consumer(&mut self) -> Result<Lanes<Consumer<T>>, BuildError> {
        self.after::<Consumer<T>>(&[])
    }

    /// A consumer that never overtakes any of `others`, in any lane.
    ///
    /// # Errors
    /// As for [`Rings::after`].
    pub fn after<E: AsRef<Consumer<T>>>(
        &mut self,
        others: &[&Lanes<E>],
    ) -> Result<Lanes<Consumer<T>>, BuildError> {
        let lanes = self.in_each(others, |lane, others| lane.after(others))?;
        Ok(Lanes::new(lanes.into(), self.lanes.len(), self.strategy))
    }

    /// An exclusive consumer without other consumers: it may take values out.
    ///
    /// # Errors
    /// As for [`Rings::exclusive_consumer`].
    pub fn exclusive_consumer(&mut self) -> Result<Lanes<ExclusiveConsumer<T>>, BuildError> {
        self.exclusive_after::<Consumer<T>>(&[])
    }

    /// An exclusive consumer that follows all other consumers: it may change values and take them
    /// out.
    ///
    /// # Errors
    /// As for [`Rings::exclusive_after`].
    pub fn exclusive_after<E: AsRef<Consumer<T>>>(
        &mut self,
        others: &[&Lanes<E>],
    ) -> Result<Lanes<ExclusiveConsumer<T>>, BuildError> {
        let lanes = self.in_each(others, |lane, others| lane.exclusive_after(others))?;
        Ok(Lanes::new(lanes.into(), self.lanes.len(), self.strategy))
    }

    /// A group of `count` workers that share the values of all producers. Each has its own lanes
    /// and helps in the others.
    ///
    /// # Errors
    /// As for [`Rings::workers`].
    pub fn workers(&mut self, count: usize) -> Result<Vec<Worker<T>>, BuildError> {
        self.workers_after::<Consumer<T>>(count, &[])
    }

    /// A group of workers that follows all other consumers.
    ///
    /// # Errors
    /// As for [`Rings::workers_after`].
    pub fn workers_after<E: AsRef<Consumer<T>>>(
        &mut self,
        count: usize,
        others: &[&Lanes<E>],
    ) -> Result<Vec<Worker<T>>, BuildError> {
        let groups = self.in_each(others, |lane, others| lane.shares(count, others))?;
        let mut groups: Vec<_> = groups.into_iter().map(Vec::into_iter).collect();
        let watch = Arc::new(SleepLeader::default());
        let workers = (0..count).map(|number| {
            let mut shares: Box<[_]> = groups.iter_mut().filter_map(Iterator::next).collect();
            // Each has its own lanes, or shares one if there are fewer lanes than workers.
            let begin = |number| number * shares.len() / count;
            let (first, own) = (begin(number), (begin(number + 1) - begin(number)).max(1));
            shares.rotate_left(first);
            Worker::new(shares, own, Arc::clone(&watch), self.strategy)
        });
        Ok(workers.collect())
    }

    /// Adds an end to each lane, which follows `others` there.
    fn in_each<E: AsRef<Consumer<T>>, R>(
        &mut self,
        others: &[&Lanes<E>],
        add: impl Fn(&mut Rings<T>, &[&Consumer<T>]) -> Result<R, BuildError>,
    ) -> Result<Vec<R>, BuildError> {
        let lanes = self.lanes.iter_mut().enumerate().map(|(number, lane)| {
            let others = others.iter().map(|other| other.lanes.get(number).map(E::as_ref));
            let others: Option<Vec<_>> = others.collect();
            add(lane, &others.ok_or(BuildError::ForeignConsumer)?)
        });
        lanes.collect()
    }

    /// As [`Rings::handle_with`].
    pub fn handle_with<K>(self, stage: impl Stage<T, K>) -> Staged<T, Self>
    where
        T: 'static,
    {
        Staged::new(self).then(stage)
    }

    /// As [`Rings::share_among`].
    pub fn share_among<K, S: Stage<T, K>>(self, handlers: Vec<S>) -> Staged<T, Self>
    where
        T: 'static,
    {
        Staged::new(self).share_among(handlers)
    }

    /// The producers, which complete the rings.
    ///
    /// # Errors
    /// If there is no consumer.
    pub fn producers(self) -> Result<Vec<Producer<T>>, BuildError> {
        self.lanes.into_iter().map(Rings::producer).collect()
    }
}

impl<T: Send + Sync + 'static> HandlerRing<T> for MultiRings<T> {
    type End = Lanes<Consumer<T>>;
    type Producers = Vec<Producer<T>>;

    fn add(&mut self, others: &[&Self::End]) -> Result<Self::End, BuildError> {
        self.after(others)
    }

    fn share(&mut self, count: usize, others: &[&Self::End]) -> Result<Vec<Worker<T>>, BuildError> {
        self.workers_after(count, others)
    }

    fn complete(self) -> Result<(Vec<Producer<T>>, Box<dyn RingControl>), BuildError> {
        let producers = self.producers()?;
        let lines = producers.iter().map(|producer| Arc::clone(&producer.barrier().ring)).collect();
        Ok((producers, Box::new(RingSet(lines))))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
