//! A subscriber's side of the ring: what comes next, and how far it has read.

use crate::memory::Memory;
use lanecast_base::Position;
use lanecast_base::sync::{Ordering, fence, light_fence};
use lanecast_wire::shm::{FRAME_ALIGN, FRAME_HEADER, STATE_CLOSED, Word, frame_bytes};

/// How far ahead headers are fetched: in frames, and at least in bytes.
const AHEAD_FRAMES: u64 = 24;
const AHEAD_BYTES: u64 = 1024;
/// Looking where the writer is takes its line away for a moment: not too often.
const LOOK_EVERY_BYTES: u64 = 4096;

/// One reader's state; everything in it is private to the reader.
#[derive(Debug)]
pub(crate) struct ReadEdge<M> {
    memory: M,
    index: usize,
    lease: u64,
    /// The next frame.
    at: Position,
    /// The cursor that the writer sees.
    released: Position,
    messages: u64,
    longest: u32,
    /// Where the writer was when this reader last looked.
    written: Position,
    /// The reader does not look there again before this place.
    next_look: Position,
}

/// A message in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Where its first byte is.
    pub(crate) body: Position,
    pub(crate) length: u32,
    pub(crate) topic: u32,
}

/// What the reader finds next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message.
    Frame(Frame),
    /// Nothing yet.
    Empty,
    /// Bytes that no writer writes, or the reader's place is gone.
    Broken,
}

impl<M: Memory> ReadEdge<M> {
    /// Takes its place in slot `index`, whose lock the caller holds, at the live edge.
    pub(crate) fn join(memory: M, index: usize, longest: u32) -> Self {
        let slot = memory.slot(index);
        let ring = memory.ring();
        // The last owner may have died joined (odd) or have left (even): the next odd number.
        let lease = slot.lease.load(Ordering::Relaxed).wrapping_add(1) | 1;
        memory.gate().used.fetch_or(1 << index, Ordering::Relaxed);
        // A first cursor, surely not past the place where reading will start.
        // PAIRS(cursor): release here, acquire in `WriteEdge::reader`: whatever the slot's last
        // owner read is finished.
        slot.cursor.store(ring.head.load(Ordering::Relaxed), Ordering::Release);
        // PAIRS(lease): release here, acquire in `WriteEdge::reader`: who the new owner is stands
        // in the slot before, so the writer never judges it by a dead one's process.
        slot.lease.store(lease, Ordering::Release);
        // PAIRS(join): lease, fence, head here; head, fence, leases in the writer.
        fence(Ordering::SeqCst);
        // PAIRS(head): acquire here, release in `WriteEdge::publish`.
        let head = ring.head.load(Ordering::Acquire);
        // Anybody may have written the head: frames are read at aligned places only.
        let at = Position::new(head & !(FRAME_ALIGN - 1));
        let edge = Self {
            memory,
            index,
            lease,
            at,
            released: at,
            messages: 0,
            longest,
            written: at,
            next_look: at.plus(LOOK_EVERY_BYTES),
        };
        edge.show_cursor();
        edge
    }

    pub(crate) const fn memory(&self) -> &M {
        &self.memory
    }

    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    pub(crate) const fn lease(&self) -> u64 {
        self.lease
    }

    #[cfg(loom)]
    pub(crate) const fn at(&self) -> Position {
        self.at
    }

    /// How many messages it has passed.
    #[inline(always)]
    pub(crate) const fn messages(&self) -> u64 {
        self.messages
    }

    /// What comes next; does not pass it.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Next {
        let frame = self.memory.frame(self.at);
        // PAIRS(commit): acquire here, release in `WriteEdge::commit`.
        let word = Word(frame.commit.load(Ordering::Acquire));
        if word == Word::EMPTY {
            return Next::Empty;
        }
        let Some(length) = word.checked_length(self.longest) else { return Next::Broken };
        // Relaxed: an eviction in the middle of a message is found by asking after the reads.
        let evicted = self.memory.ring().evicted[self.index].load(Ordering::Relaxed);
        if evicted == self.lease {
            return Next::Broken;
        }
        let topic = frame.topic.load(Ordering::Relaxed);
        Next::Frame(Frame { body: self.at.plus(FRAME_HEADER), length, topic })
    }

    /// Passes a message of `length` bytes.
    #[inline(always)]
    pub(crate) fn pass(&mut self, length: u32) {
        let bytes = frame_bytes(u64::from(length));
        self.look_ahead(bytes);
        self.at = self.at.plus(bytes);
        self.messages = self.messages.wrapping_add(1);
    }

    /// Fetches a later frame's header while this message is handled, supposing that frames are
    /// alike: several lines are under way at once, instead of one after the other.
    ///
    /// Only bytes that are surely written are fetched: taking a line from the writer while it
    /// works on it costs both more than is won.
    #[inline(always)]
    fn look_ahead(&mut self, bytes: u64) {
        let ahead = self.at.plus((AHEAD_FRAMES * bytes).max(AHEAD_BYTES));
        if !ahead.is_past(self.written) {
            self.memory.prefetch(ahead);
        } else if self.at.is_past(self.next_look) {
            self.look_at_head();
        }
    }

    /// The reader has caught up: it need not look where the writer is before it has again read
    /// a few kilobytes without a pause.
    #[inline(always)]
    pub(crate) fn rest(&mut self) {
        self.next_look = self.at.plus(LOOK_EVERY_BYTES);
    }

    #[cold]
    #[inline(never)]
    fn look_at_head(&mut self) {
        // Relaxed: where the writer is, roughly; only a hint depends on it.
        self.written = Position::new(self.memory.ring().head.load(Ordering::Relaxed));
        self.next_look = self.at.plus(LOOK_EVERY_BYTES);
    }

    /// Takes the last pass, of a message of `length` bytes, back.
    pub(crate) fn unpass(&mut self, length: u32) {
        self.at = self.at.minus(frame_bytes(u64::from(length)));
        self.messages = self.messages.wrapping_sub(1);
    }

    /// How many bytes it has passed without showing it to the writer.
    #[inline(always)]
    pub(crate) const fn unreleased(&self) -> u64 {
        self.at.since(self.released)
    }

    /// Shows the writer how far it has read: the bytes before may be overwritten.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.released = self.at;
        self.show_cursor();
    }

    #[inline]
    fn show_cursor(&self) {
        let slot = self.memory.slot(self.index);
        slot.messages.store(self.messages, Ordering::Relaxed);
        // PAIRS(cursor): release here, acquire in `WriteEdge::reader`.
        slot.cursor.store(self.at.get(), Ordering::Release);
        self.notify_writer();
    }

    /// Wakes the writer if it sleeps or is about to.
    #[inline]
    fn notify_writer(&self) {
        // PAIRS(asymmetric): cursor, fence, flag here; flag, fence, cursors in the writer.
        light_fence();
        let gate = self.memory.gate();
        if gate.publisher_waits.load(Ordering::Relaxed) != 0 {
            // Relaxed: a changed word only ends a sleep; what woke the writer it looks for.
            gate.publisher_wake.fetch_add(1, Ordering::Relaxed);
            self.memory.wake(&gate.publisher_wake);
        }
    }

    /// Whether the writer has taken this place away; all reads before the question count.
    #[inline]
    pub(crate) fn is_evicted(&self) -> bool {
        // PAIRS(eviction): acquire fence here, full fence in `WriteEdge::recompute`.
        fence(Ordering::Acquire);
        self.memory.ring().evicted[self.index].load(Ordering::Relaxed) == self.lease
    }

    /// Whether the writer has said goodbye. Everything committed is visible afterwards, so an
    /// empty [`peek`](Self::peek) after a `true` is final.
    pub(crate) fn is_closed(&self) -> bool {
        // PAIRS(state): acquire here, release in `WriteEdge::close`.
        self.memory.ring().state.load(Ordering::Acquire) == STATE_CLOSED
    }

    /// Announces sleep; the word to sleep on and its value, unless there is news.
    ///
    /// Whoever gets `Some` sleeps on the word and then calls [`awake`](Self::awake). The flag
    /// says whether the writer is sure to see the announcement: if not, sleep briefly.
    pub(crate) fn prepare_sleep(&self) -> Option<(u32, bool)> {
        let bit = 1u64 << self.index;
        let slot = self.memory.slot(self.index);
        // Relaxed: the fence below keeps this load before the look at the ring, and a wake that
        // comes later changes the word.
        let expected = slot.wake.load(Ordering::Relaxed);
        self.memory.gate().sleepers.fetch_or(bit, Ordering::Relaxed);
        // PAIRS(asymmetric): sleepers, fence, commit here; commit, fence, sleepers in the writer.
        let covered = self.memory.heavy_fence();
        if self.peek() != Next::Empty || self.is_closed() || self.is_evicted() {
            self.awake();
            return None;
        }
        let sleeps = &slot.sleeps;
        sleeps.store(sleeps.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        Some((expected, covered))
    }

    /// Takes the announcement of sleep back.
    pub(crate) fn awake(&self) {
        let bit = 1u64 << self.index;
        self.memory.gate().sleepers.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Leaves: the slot is free for the next owner of its lock.
    pub(crate) fn leave(&mut self) {
        let slot = self.memory.slot(self.index);
        // PAIRS(lease): release here, acquire in `WriteEdge::reader`: all reads are finished.
        slot.lease.store(self.lease.wrapping_add(1), Ordering::Release);
        self.notify_writer();
    }
}
