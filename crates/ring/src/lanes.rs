//! An end in each of several rings.

use crate::consumer::Consumer;
use crate::cursor::sleep_on_any;
use crate::line::NAP;
use crate::share::Share;
use crate::taker::Taker;
use lanecast_base::sync::AtomicU32;
use lanecast_base::{Step, WaitStrategy, Waiter};

/// So many values are taken from one lane before the next has its turn.
const PATIENCE: usize = 1024;

/// An end in every producer's lane: [`Lanes<Consumer<T>>`](Consumer), [`Lanes<Taker<T>>`](Taker).
///
/// It takes from the lanes in turns and waits for all of them at once. Each producer's values
/// come in that producer's order; what one has not published holds up nothing of the others.
#[derive(Debug)]
pub struct Lanes<E> {
    pub(crate) lanes: Box<[E]>,
    /// The lane that is looked at next.
    turn: usize,
    /// What may still be taken from it.
    patience: usize,
    waiter: Waiter,
}

/// An end in one lane.
pub trait End {
    /// There was something to take.
    fn found(&mut self);
    /// Marks this end asleep, if it goes on; whether there is nothing to take.
    fn mark(&mut self) -> bool;
    /// What to sleep on after that; `None` if nothing more comes.
    fn word(&self) -> Option<(&AtomicU32, u32)>;
    /// Whether the producer is gone and everything taken.
    fn is_closed(&self) -> bool;
}

impl<E: End> Lanes<E> {
    /// `lanes`, of which that with the number `turn` comes first.
    pub(crate) fn new(lanes: impl IntoIterator<Item = E>, turn: usize, wait: WaitStrategy) -> Self {
        let lanes: Box<[E]> = lanes.into_iter().collect();
        let turn = turn % lanes.len();
        Self { lanes, turn, patience: PATIENCE, waiter: Waiter::new(wait) }
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
            self.pass_turn();
        }
        work
    }

    /// Takes from the first lane that has something, at first from where it took last.
    #[inline(always)]
    pub(crate) fn take_from_one(&mut self, mut take: impl FnMut(&mut E) -> usize) -> usize {
        for _ in 0..self.lanes.len() {
            let work = take(&mut self.lanes[self.turn]);
            if work > 0 && work < self.patience {
                self.patience -= work;
                return work;
            }
            self.pass_turn();
            if work > 0 {
                return work;
            }
        }
        0
    }

    #[inline(always)]
    fn pass_turn(&mut self) {
        self.patience = PATIENCE;
        self.turn += 1;
        if self.turn == self.lanes.len() {
            self.turn = 0;
        }
    }

    /// Waits by the rings' strategy after a round that did `work`: not at all if it did some.
    /// Returns after at most 100 ms, values or not.
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
        } else {
            self.wait_once(sleep);
        }
    }

    #[inline(never)]
    fn wait_once(&mut self, sleep: impl FnOnce(&mut Self)) {
        match self.waiter.next_step() {
            Step::Spin(pauses) => lanecast_base::spin(pauses),
            Step::Yield => std::thread::yield_now(),
            Step::Park => sleep(self),
        }
    }

    /// Sleeps until a lane has something, or its end has come; not at all if `stop` holds.
    #[cold]
    pub(crate) fn sleep_unless(&mut self, stop: impl Fn() -> bool) {
        if self.lanes.iter_mut().all(E::mark) && !stop() {
            sleep_on_any(self.lanes.iter().filter_map(E::word), NAP);
        }
    }

    /// Whether all producers are gone and everything is taken.
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

impl<T> Lanes<Taker<T>> {
    /// As [`Consumer::drain`], from all lanes.
    #[inline(always)]
    pub fn drain(&mut self, max: usize, mut handle: impl FnMut(&[T])) -> usize {
        self.take_from_all(max, |lane, max| lane.drain(max, &mut handle))
    }

    /// As [`Taker::drain_mut`], from all lanes.
    #[inline(always)]
    pub fn drain_mut(&mut self, max: usize, mut handle: impl FnMut(&mut [T])) -> usize {
        self.take_from_all(max, |lane, max| lane.drain_mut(max, &mut handle))
    }

    /// As [`Taker::pop`], from the lane whose turn it is.
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

impl<T> End for Consumer<T> {
    #[inline(always)]
    fn found(&mut self) {
        self.found();
    }
    fn mark(&mut self) -> bool {
        self.mark()
    }
    fn word(&self) -> Option<(&AtomicU32, u32)> {
        self.word()
    }
    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}

impl<T> End for Taker<T> {
    #[inline(always)]
    fn found(&mut self) {
        self.consumer.found();
    }
    fn mark(&mut self) -> bool {
        self.consumer.mark()
    }
    fn word(&self) -> Option<(&AtomicU32, u32)> {
        self.consumer.word()
    }
    fn is_closed(&self) -> bool {
        self.consumer.is_closed()
    }
}

impl<T> End for Share<T> {
    #[inline(always)]
    fn found(&mut self) {
        self.found();
    }
    fn mark(&mut self) -> bool {
        self.mark()
    }
    fn word(&self) -> Option<(&AtomicU32, u32)> {
        self.word()
    }
    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}
