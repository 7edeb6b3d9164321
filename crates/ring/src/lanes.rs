//! Lanes: a consumer or worker of several producers, with an end in each producer's ring.

use crate::consumer::Consumer;
use crate::cursor::{SleepWord, sleep_on_any};
use crate::exclusive_consumer::ExclusiveConsumer;
use crate::producer_lane::PARK_TIME_MAX;
use crate::reader_throttle::{ReaderThrottle, pause};
use crate::work_claim::WorkClaim;
use lanecast_base::{WaitStep, WaitStrategy, Waiter};

/// Values taken from one of its own lanes before the next has its turn.
const TURN_VALUES: usize = 1024;
/// Empty polls of its own lanes before a worker helps in others, whose own workers usually finish
/// alone.
const EMPTY_POLLS_BEFORE_HELPING: u32 = if cfg!(loom) { 2 } else { 64 };
/// Values taken from another worker's lane before the next has its turn.
const TURN_VALUES_HELPING: usize = 256;

/// An end in every producer's lane: [`Lanes<Consumer<T>>`](Consumer),
/// [`Lanes<ExclusiveConsumer<T>>`](ExclusiveConsumer).
///
/// Takes from the lanes in turns and waits for all of them at once. The values of each producer
/// stay in order; unpublished values of one producer do not delay those of another.
#[derive(Debug)]
pub struct Lanes<E> {
    pub(crate) lanes: Box<[E]>,
    /// Number of its own lanes, the first ones; a worker only helps in the others.
    own: usize,
    /// The lane polled next.
    turn: usize,
    /// Empty polls since the last value.
    empty_polls: u32,
    /// Values left in the current turn.
    turn_values: usize,
    waiter: Waiter,
    throttle: ReaderThrottle,
}

/// An end in one lane.
pub trait LaneEnd {
    /// Number of values to read from which this end is far enough behind the producer.
    fn far(&self) -> usize;
    /// Whether more values are known to be available.
    fn has_more(&self) -> bool;
    /// Notes that there were values.
    fn found(&mut self);
    /// Sets a park flag unless the stream has ended; returns whether there are no values.
    fn mark(&mut self) -> bool;
    /// The word to sleep on after that; `None` if the stream has ended.
    fn word(&self) -> Option<SleepWord<'_>>;
    /// Whether the producer is gone and all values are taken.
    fn is_closed(&self) -> bool;
}

impl<E: LaneEnd> Lanes<E> {
    /// `lanes`, of which the first `own` are its own.
    pub(crate) fn new(lanes: Box<[E]>, own: usize, wait: WaitStrategy) -> Self {
        let throttle = ReaderThrottle::new(lanes.iter().map(E::far).sum());
        let waiter = Waiter::new(wait);
        Self { lanes, own, turn: 0, empty_polls: 0, turn_values: TURN_VALUES, waiter, throttle }
    }

    /// Takes at most `max` values, from all lanes.
    #[inline(always)]
    fn take_from_all(&mut self, max: usize, mut take: impl FnMut(&mut E, usize) -> usize) -> usize {
        let mut work = 0;
        for _ in 0..self.lanes.len() {
            if work == max {
                break;
            }
            work += take(&mut self.lanes[self.turn], max - work);
            self.turn = if self.turn + 1 == self.lanes.len() { 0 } else { self.turn + 1 };
        }
        work
    }

    /// Takes from the first lane with values, starting with the last one used. Other workers' lanes
    /// come last, and only after some empty polls of its own.
    #[inline(always)]
    pub(crate) fn take_from_one(&mut self, mut take: impl FnMut(&mut E) -> usize) -> usize {
        let mut work = take(&mut self.lanes[self.turn]);
        if work > 0 && work < self.turn_values {
            self.turn_values -= work;
            self.empty_polls = 0;
            return work;
        }
        let helps = work == 0 && self.may_help();
        let turns = if helps { self.own + self.lanes.len() } else { self.own };
        for _ in 0..turns {
            self.pass_turn(helps);
            if work > 0 {
                break;
            }
            work = take(&mut self.lanes[self.turn]);
        }
        if work > 0 {
            self.empty_polls = 0;
        }
        work
    }

    /// Lets the next [`take_from_one`](Self::take_from_one) poll all lanes if its own are empty.
    pub(crate) const fn help_at_once(&mut self) {
        self.empty_polls = EMPTY_POLLS_BEFORE_HELPING;
    }

    /// Whether its own lanes have been empty often enough to poll the others.
    #[inline(always)]
    const fn may_help(&mut self) -> bool {
        self.empty_polls = self.empty_polls.saturating_add(1);
        self.empty_polls >= EMPTY_POLLS_BEFORE_HELPING && self.own < self.lanes.len()
    }

    /// Passes the turn on to the next of its own lanes, or of all lanes.
    #[inline(always)]
    const fn pass_turn(&mut self, helps: bool) {
        let lanes = if helps { self.lanes.len() } else { self.own };
        self.turn = if self.turn + 1 < lanes { self.turn + 1 } else { 0 };
        self.turn_values = if self.turn < self.own { TURN_VALUES } else { TURN_VALUES_HELPING };
    }

    /// Waits by the rings' strategy after a poll with `work` values; returns at once if there were
    /// any. Returns after at most 100 ms.
    #[inline(always)]
    pub fn wait(&mut self, work: usize) {
        self.wait_by(work, |lanes| lanes.sleep_unless(|| false));
    }

    /// As [`wait`](Self::wait), with another way to sleep.
    #[inline(always)]
    pub(crate) fn wait_by(&mut self, work: usize, sleep: impl FnOnce(&mut Self)) {
        if work > 0 {
            self.waiter.found(work);
            self.lanes.iter_mut().for_each(E::found);
            if !self.lanes.iter().any(E::has_more) {
                let pauses = self.throttle.caught_up(work);
                pause(pauses, self.waiter.strategy());
            }
        } else {
            self.throttle.empty();
            self.wait_once(sleep);
        }
    }

    #[inline(never)]
    fn wait_once(&mut self, sleep: impl FnOnce(&mut Self)) {
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => lanecast_base::spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => sleep(self),
        }
    }

    /// Sleeps until a lane has values or ends; not at all if `stop` holds.
    #[cold]
    pub(crate) fn sleep_unless(&mut self, stop: impl Fn() -> bool) {
        if self.lanes.iter_mut().all(E::mark) && !stop() {
            sleep_on_any(self.lanes.iter().filter_map(E::word), PARK_TIME_MAX);
        }
    }

    /// Whether all producers are gone and all values are taken.
    pub fn is_closed(&self) -> bool {
        self.lanes.iter().all(E::is_closed)
    }
}

impl<T> Lanes<Consumer<T>> {
    /// As [`Consumer::drain`], from all lanes.
    #[inline(always)]
    pub fn drain(&mut self, max: usize, mut handle: impl FnMut(&[T])) -> usize {
        self.take_from_all(max, |lane, max| lane.drain(max, &mut handle))
    }

    /// As [`Consumer::drain_while`], from all lanes.
    pub(crate) fn drain_while(&mut self, mut handle: impl FnMut(&[T], bool) -> usize) -> usize {
        self.take_from_all(usize::MAX, |lane, _| lane.drain_while(&mut handle))
    }
}

impl<T> Lanes<ExclusiveConsumer<T>> {
    /// As [`Consumer::drain`], from all lanes.
    #[inline(always)]
    pub fn drain(&mut self, max: usize, mut handle: impl FnMut(&[T])) -> usize {
        self.take_from_all(max, |lane, max| lane.drain(max, &mut handle))
    }

    /// As [`ExclusiveConsumer::drain_mut`], from all lanes.
    #[inline(always)]
    pub fn drain_mut(&mut self, max: usize, mut handle: impl FnMut(&mut [T])) -> usize {
        self.take_from_all(max, |lane, max| lane.drain_mut(max, &mut handle))
    }

    /// As [`ExclusiveConsumer::pop`], from the lane whose turn it is.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T>
    where
        T: Default,
    {
        let mut value = None;
        self.take_from_one(|lane| {
            value = lane.pop();
            usize::from(value.is_some())
        });
        value
    }
}

/// Implements [`LaneEnd`] by the methods of the same names, of `$field` if there is one.
macro_rules! lane_end {
    ($End:ident$(.$field:ident)?, |$end:ident| $slots:expr) => {
        impl<T> LaneEnd for $End<T> {
            fn far(&self) -> usize {
                let $end = self;
                $slots.far()
            }
            #[inline(always)]
            fn has_more(&self) -> bool {
                self$(.$field)?.has_more()
            }
            #[inline(always)]
            fn found(&mut self) {
                self$(.$field)?.found();
            }
            fn mark(&mut self) -> bool {
                self$(.$field)?.mark()
            }
            fn word(&self) -> Option<SleepWord<'_>> {
                self$(.$field)?.word()
            }
            fn is_closed(&self) -> bool {
                self$(.$field)?.is_closed()
            }
        }
    };
}

lane_end!(Consumer, |end| end.ring.slots);
lane_end!(ExclusiveConsumer.consumer, |end| end.consumer.ring.slots);
lane_end!(WorkClaim, |end| end.ring().slots);
