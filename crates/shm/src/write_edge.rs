//! The publisher's side of the ring: where the next message goes, and who is in its way.
//!
//! One writer, several readers, all of which see everything; the slowest gates the writer
//! (receiver-paced). The writer looks at the readers' cursors only when it reaches the limit
//! that it computed last time, so a message costs no shared reads at all.
//!
//! A reader joins by itself, without the writer's help: it shows its lease, then reads the
//! head and starts there. The writer shows its head, then reads the leases. Each has a full
//! fence in between, so at least one of the two sees the other: either the writer gates on the
//! reader from now on, or the reader starts at or after the place where the writer computed its
//! limit, which that limit protects for a whole window.

use crate::memory::Memory;
use lanecast_base::Position;
use lanecast_base::sync::{Ordering, fence, light_fence};
use lanecast_wire::shm::{FRAME_ALIGN, STATE_CLOSED, STATE_OPEN, SUBSCRIBERS_MAX, Word};
use std::time::Duration;

/// Kept free behind the slowest reader: the empty commit word after the newest message.
const SLACK: u64 = FRAME_ALIGN;

/// How far ahead cache lines are taken back from the readers that read them a window ago, so
/// that writing does not wait for each.
const AHEAD_BYTES: u64 = 1024;

/// The one writer's state; everything in it is private to the writer.
#[derive(Debug)]
pub(crate) struct WriteEdge<M> {
    memory: M,
    /// Where the next message goes: all before it is committed.
    at: Position,
    /// Messages and the empty word behind them may reach up to here.
    limit: Position,
    messages: u64,
    /// The lease evicted from each slot, a private copy of what readers are shown.
    evicted: [u64; SUBSCRIBERS_MAX as usize],
}

/// Why a reader loses its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Its process has ended.
    Dead,
    /// It has not read for longer than the configured time.
    Stalled,
    /// Its cursor is where no reader can be, and stays there.
    Nonsense,
}

impl<M: Memory> WriteEdge<M> {
    /// A writer on fresh memory, starting at `start` (a multiple of the frame alignment).
    pub(crate) fn new(memory: M, start: Position) -> Self {
        let ring = memory.ring();
        ring.head.store(start.get(), Ordering::Relaxed);
        memory.frame(start).commit.store(Word::EMPTY.0, Ordering::Relaxed);
        // Relaxed, both: nobody joins before the first topic is counted, which comes later.
        ring.state.store(STATE_OPEN, Ordering::Relaxed);
        let limit = start.plus(memory.window() - SLACK);
        Self { memory, at: start, limit, messages: 0, evicted: [0; SUBSCRIBERS_MAX as usize] }
    }

    pub(crate) const fn memory(&self) -> &M {
        &self.memory
    }

    pub(crate) const fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Where the next message goes.
    #[inline(always)]
    pub(crate) const fn at(&self) -> Position {
        self.at
    }

    /// Whether the bytes up to `end` may be written; looks at the readers only if need be.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, end: Position) -> bool {
        !end.is_past(self.limit) || self.look_again(end)
    }

    #[cold]
    #[inline(never)]
    fn look_again(&mut self, end: Position) -> bool {
        self.recompute();
        !end.is_past(self.limit)
    }

    /// Computes the limit anew from the readers' cursors.
    pub(crate) fn recompute(&mut self) {
        // PAIRS(join): head, fence, leases here; lease, fence, head in `ReadEdge::join`.
        // PAIRS(eviction): and evictions before this fence, overwriting after it; reads, fence,
        // eviction in `ReadEdge::is_evicted`: who reads garbled bytes sees the eviction.
        fence(Ordering::SeqCst);
        let window = self.memory.window();
        let mut slowest = self.at;
        for (_, _, cursor) in self.readers() {
            // A cursor where no reader can be: nonsense, or that of a reader which was held up
            // in the middle of joining and is about to correct it. Until then, nothing moves.
            let lag = self.at.since(cursor).min(window);
            slowest = slowest.earliest(self.at.minus(lag));
        }
        self.limit = slowest.plus(window - SLACK);
    }

    /// The lease and cursor of the reader in slot `index`, if one gates the writer.
    fn reader(&self, index: usize) -> Option<(u64, Position)> {
        let slot = self.memory.slot(index);
        // PAIRS(lease): acquire here, release in `ReadEdge::leave`: all its reads are finished.
        let lease = slot.lease.load(Ordering::Acquire);
        if lease.is_multiple_of(2) || lease == self.evicted[index] {
            return None;
        }
        // PAIRS(cursor): acquire here, release in `ReadEdge::release`: what was read before is
        // finished before it is overwritten.
        Some((lease, Position::new(slot.cursor.load(Ordering::Acquire))))
    }

    /// Publishes the message written at [`at`](Self::at), `bytes` long in the ring.
    #[inline(always)]
    pub(crate) fn commit(&mut self, topic: u32, length: u32, bytes: u64) {
        let next = self.at.plus(bytes);
        let memory = &self.memory;
        memory.prefetch_for_writing(next.plus(AHEAD_BYTES));
        memory.frame(next).commit.store(Word::EMPTY.0, Ordering::Relaxed);
        let frame = memory.frame(self.at);
        frame.topic.store(topic, Ordering::Relaxed);
        // PAIRS(commit): release here, acquire in `ReadEdge::next`: the message and the empty
        // word behind it are there before it is.
        frame.commit.store(Word::message(length).0, Ordering::Release);
        self.publish(next, 1);
    }

    /// Prepares a message at `at` that [`commit_batch`](Self::commit_batch) makes visible: all
    /// but the first may carry their commit word at once, nobody gets past the first.
    #[inline]
    pub(crate) fn stage(&mut self, at: Position, topic: u32, length: u32) {
        let frame = self.memory.frame(at);
        frame.topic.store(topic, Ordering::Relaxed);
        if at != self.at {
            frame.commit.store(Word::message(length).0, Ordering::Relaxed);
        }
    }

    /// Publishes staged messages, the first of `first_length` bytes, which end at `next`.
    pub(crate) fn commit_batch(&mut self, first_length: u32, next: Position, count: u64) {
        let memory = &self.memory;
        memory.frame(next).commit.store(Word::EMPTY.0, Ordering::Relaxed);
        // PAIRS(commit): release here, acquire in `ReadEdge::next`: all are there at once.
        memory.frame(self.at).commit.store(Word::message(first_length).0, Ordering::Release);
        self.publish(next, count);
    }

    #[inline(always)]
    fn publish(&mut self, next: Position, count: u64) {
        self.at = next;
        self.messages = self.messages.wrapping_add(count);
        let ring = self.memory.ring();
        // PAIRS(head): release here, acquire in `ReadEdge::join`, which starts reading there.
        ring.head.store(next.get(), Ordering::Release);
        ring.messages.store(self.messages, Ordering::Relaxed);
        // PAIRS(asymmetric): commit, fence, sleepers here; sleepers, fence, commit in `sleep`.
        light_fence();
        if self.memory.gate().sleepers.load(Ordering::Relaxed) != 0 {
            self.wake_sleepers();
        }
    }

    /// Wakes every reader that sleeps or is about to.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake_sleepers(&self) {
        // Relaxed, like the wake words: a bit set after this swap belongs to a reader that has
        // yet to look at what was committed.
        let sleepers = self.memory.gate().sleepers.swap(0, Ordering::Relaxed);
        for index in bits(sleepers, self.memory.slots()) {
            let word = &self.memory.slot(index).wake;
            word.fetch_add(1, Ordering::Relaxed);
            self.memory.wake(word);
        }
        let wakes = &self.memory.ring().wakes;
        wakes.store(wakes.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Takes the place of the reader in slot `index` away, if its lease is still `lease`.
    ///
    /// Only the writer's own words change, so a new owner of the slot is never hit by mistake.
    pub(crate) fn evict(&mut self, index: usize, lease: u64, why: Eviction) {
        self.evicted[index] = lease;
        let ring = self.memory.ring();
        // Relaxed: nothing is overwritten before the next `recompute`, which has the fence.
        ring.evicted[index].store(lease, Ordering::Relaxed);
        if why != Eviction::Dead {
            let evictions = &ring.evictions;
            evictions.store(evictions.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// The readers that gate the writer: slot, lease, cursor.
    pub(crate) fn readers(&self) -> impl Iterator<Item = (usize, u64, Position)> + '_ {
        // Relaxed: a joining reader sets its bit before its fence, see PAIRS(join).
        let used = self.memory.gate().used.load(Ordering::Relaxed);
        bits(used, self.memory.slots())
            .filter_map(|index| self.reader(index).map(|(lease, at)| (index, lease, at)))
    }

    /// Sleeps until a reader moves or joins, or `limit` has passed, unless `done` holds first.
    pub(crate) fn sleep(&mut self, limit: Duration, done: impl Fn(&mut Self) -> bool) {
        let gate = self.memory.gate();
        let expected = gate.publisher_wake.load(Ordering::Relaxed);
        gate.publisher_waits.store(1, Ordering::Relaxed);
        // PAIRS(asymmetric): flag, fence, cursors here; cursor, fence, flag in `ReadEdge`.
        let covered = self.memory.heavy_fence();
        if !done(self) {
            let limit = if covered { limit } else { limit.min(Duration::from_millis(1)) };
            let gate = self.memory.gate();
            self.memory.sleep(&gate.publisher_wake, expected, limit);
        }
        self.memory.gate().publisher_waits.store(0, Ordering::Relaxed);
    }

    /// Says goodbye: readers find the state once they have read everything.
    pub(crate) fn close(&mut self) {
        // PAIRS(state): release here, acquire in `ReadEdge::is_closed`: the last message is
        // there before the goodbye.
        self.memory.ring().state.store(STATE_CLOSED, Ordering::Release);
        // PAIRS(asymmetric): the goodbye is news to sleepers, like a message.
        light_fence();
        self.wake_sleepers();
    }
}

/// The bits set in `word`, ascending, below `limit`: anybody may have written the word.
pub(crate) fn bits(mut word: u64, limit: usize) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (index < limit).then_some(index)
    })
}
