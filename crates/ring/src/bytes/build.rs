//! Builder of a byte ring: consumers in any topology, then the producers.

use super::consumer::ByteConsumer;
use super::frame_memory::{ByteLane, FrameMemory};
use super::lane_reader::LaneReader;
use super::producer::ByteProducer;
use crate::cursor::Cursor;
use crate::error::BuildError;
use crate::gating::GatingCursors;
use core::marker::PhantomData;
use lanecast_base::WaitStrategy;
use lanecast_os::barrier;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Permitted sizes of a ring, in bytes.
const CAPACITY: core::ops::RangeInclusive<usize> = 64..=1 << 32;

/// A ring with one producer; see [`ByteRing`].
#[derive(Debug)]
pub enum One {}

/// A ring with several producers; see [`ByteRing`].
#[derive(Debug)]
pub enum Many {}

/// Builder of a byte ring: consumers first, producers last.
#[derive(Debug)]
pub struct ByteRing<Producers> {
    lanes: Vec<LaneBuild>,
    /// Numbers of all consumers before each consumer.
    before: Vec<BTreeSet<usize>>,
    strategy: WaitStrategy,
    stride: u32,
    pull_after: Option<Duration>,
    producers: PhantomData<Producers>,
}

/// A lane and its consumers' cursors.
#[derive(Debug)]
struct LaneBuild {
    lane: Arc<ByteLane>,
    heads: Vec<Arc<Cursor>>,
}

/// A ring of `capacity` bytes with one producer.
///
/// # Errors
/// If the capacity is not a power of two of at least 64, or there is no memory.
pub fn single_producer(capacity: usize) -> Result<ByteRing<One>, BuildError> {
    ByteRing::new(1, capacity)
}

/// A ring with several producers, each with `capacity` bytes of its own.
///
/// ```
/// use lanecast_ring::bytes;
/// let mut build = bytes::multi_producer(2, 1024)?;
/// let mut consumer = build.consumer();
/// for (number, mut producer) in build.producers()?.into_iter().enumerate() {
///     std::thread::spawn(move || producer.send(&[number as u8]));
/// }
/// let mut sum = 0;
/// while !consumer.is_closed() {
///     let work = consumer.poll(16, |message| sum += message[0]);
///     consumer.wait(work);
/// }
/// assert_eq!(sum, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As for [`single_producer`], or if `producers` is 0.
pub fn multi_producer(producers: usize, capacity: usize) -> Result<ByteRing<Many>, BuildError> {
    ByteRing::new(producers, capacity)
}

impl<Producers> ByteRing<Producers> {
    fn new(producers: usize, capacity: usize) -> Result<Self, BuildError> {
        if !capacity.is_power_of_two() || !CAPACITY.contains(&capacity) {
            return Err(BuildError::Bytes { asked: capacity });
        }
        if producers == 0 {
            return Err(BuildError::NoProducer);
        }
        barrier::register();
        let branch = |_| {
            let memory =
                FrameMemory::new(capacity).map_err(|_| BuildError::NoMemory { asked: capacity });
            Ok(LaneBuild { lane: Arc::new(ByteLane::new(memory?)), heads: Vec::new() })
        };
        Ok(Self {
            lanes: (0..producers).map(branch).collect::<Result<_, _>>()?,
            before: Vec::new(),
            strategy: WaitStrategy::default(),
            stride: 1,
            pull_after: None,
            producers: PhantomData,
        })
    }

    /// Wait strategy of the ends added afterwards.
    #[must_use]
    pub const fn wait(mut self, strategy: WaitStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Publishes after every `messages` messages instead of each: fewer cache-line transfers.
    ///
    /// Messages are held back for at most `delay`: a consumer without messages for so long reads
    /// unpublished ones. A sleeping consumer is woken at once. Call it before adding consumers.
    #[must_use]
    pub fn stride(mut self, messages: u32, delay: Duration) -> Self {
        self.stride = messages.max(1);
        self.pull_after = (self.stride > 1).then_some(delay);
        self
    }

    /// A consumer that sees every message as soon as it is published.
    pub fn consumer(&mut self) -> ByteConsumer {
        let pull_after = self.pull_after;
        self.add(BTreeSet::new(), |_, LaneBuild { lane, .. }| {
            let tail = || [Arc::clone(&lane.tail)];
            LaneReader::new(Arc::clone(lane), GatingCursors::new(tail(), tail()), pull_after)
        })
    }

    /// A consumer that never overtakes any of `others`, nor those that they follow.
    ///
    /// # Errors
    /// If one of them belongs to another ring.
    pub fn after(&mut self, others: &[&ByteConsumer]) -> Result<ByteConsumer, BuildError> {
        if others.is_empty() {
            return Ok(self.consumer());
        }
        let (before, pull_after) = (self.all_before(others)?, self.pull_after);
        let all = before.clone();
        Ok(self.add(before, |number, LaneBuild { lane, heads }| {
            let last = others.iter().map(|other| Arc::clone(other.readers()[number].head()));
            // Those that the others follow gate as well, once one of the others is gone.
            let all = all.iter().map(|&consumer| Arc::clone(&heads[consumer]));
            let gates = GatingCursors::new(last, all.chain([Arc::clone(&lane.tail)]));
            LaneReader::new(Arc::clone(lane), gates, pull_after)
        }))
    }

    /// Numbers of `others` and of all consumers before them.
    fn all_before(&self, others: &[&ByteConsumer]) -> Result<BTreeSet<usize>, BuildError> {
        let mut before = BTreeSet::new();
        for other in others {
            let head = other.readers()[0].head();
            let number = self.lanes[0].heads.iter().position(|known| Arc::ptr_eq(known, head));
            let number = number.ok_or(BuildError::ForeignConsumer)?;
            before.insert(number);
            before.extend(&self.before[number]);
        }
        Ok(before)
    }

    /// A consumer behind the consumers `before`, with a reader in each lane.
    fn add(
        &mut self,
        before: BTreeSet<usize>,
        reader: impl Fn(usize, &LaneBuild) -> LaneReader,
    ) -> ByteConsumer {
        self.before.push(before);
        let branches = self.lanes.iter_mut().enumerate();
        let readers = branches.map(|(number, branch)| {
            let reader = reader(number, branch);
            branch.heads.push(Arc::clone(reader.head()));
            reader
        });
        ByteConsumer::new(readers.collect(), self.strategy)
    }

    fn finish(self) -> Result<Vec<ByteProducer>, BuildError> {
        let (stride, strategy) = (self.stride, self.strategy);
        let producer = |LaneBuild { lane, heads }| {
            let gates =
                GatingCursors::new(heads.iter().map(Arc::clone), heads.iter().map(Arc::clone));
            // Set once: the builder is consumed.
            let _ = lane.heads.set(heads.into_boxed_slice());
            ByteProducer::new(lane, gates, stride, strategy)
        };
        if self.lanes[0].heads.is_empty() {
            return Err(BuildError::NoConsumer);
        }
        Ok(self.lanes.into_iter().map(producer).collect())
    }
}

impl ByteRing<One> {
    /// The producer, which completes the ring.
    ///
    /// # Errors
    /// If there is no consumer.
    pub fn producer(self) -> Result<ByteProducer, BuildError> {
        self.finish()?.pop().ok_or(BuildError::NoProducer)
    }
}

impl ByteRing<Many> {
    /// The producers, as many as were asked for; they complete the ring.
    ///
    /// # Errors
    /// If there is no consumer.
    pub fn producers(self) -> Result<Vec<ByteProducer>, BuildError> {
        self.finish()
    }
}
