//! A subscriber's side of the ring: finds the next message, and shows the writer the cursor.
//!
//! Owned by an image, used on the subscriber's thread.

use crate::memory::Memory;
use crate::ring_writer::UNCOUNTED_MAX;
use lanecast_base::sync::{AtomicU64, Ordering, fence, light_fence};
use lanecast_base::{CacheFlush, Position};
use lanecast_wire::shm::{
    FRAME_ALIGN, FRAME_HEADER, STATE_CLOSED, SUBSCRIBERS_MAX, TopicWord, Word, frame_bytes,
    lease_owners, left_at, next_lease,
};

const _: () = assert!(SUBSCRIBERS_MAX.is_power_of_two());

/// Distance of prefetched headers: in frames, and at least in bytes.
const AHEAD_FRAMES: u64 = 24;
const AHEAD_BYTES: u64 = 1024;
/// Size of a cache line.
const LINE_BYTES: u64 = 64;
/// Bytes between reads of the writer's head, since each takes the cache line from the writer.
const HEAD_READ_EVERY_BYTES: u64 = 4096;

/// The writer's head may move this far while the topics' counts are read: fewer frames than half of
/// the numbers that 16 bits distinguish.
const COUNTING_BYTES_MAX: u64 = (UNCOUNTED_MAX as u64 - 1) * FRAME_ALIGN;
/// Attempts to read the counts. Each fails only if the writer has filled half a megabyte meanwhile.
const COUNTING_ATTEMPTS_MAX: u32 = 1_000;

/// One reader's state, private to the reader.
#[derive(Debug)]
pub(crate) struct RingReader<M> {
    memory: M,
    index: usize,
    lease: u64,
    /// The next frame.
    walk: Walk,
    /// Cursor that the writer sees.
    released: Position,
    longest: u32,
    flush: CacheFlush,
    /// Position after this lap of the flush.
    lap_end: Position,
    /// A release behind this position flushes: the last release while the flush is on, otherwise
    /// the end of the lap.
    next_flush: Position,
    /// Each topic's count of messages when this reader joined: at least the number of its first
    /// message from there on, and less than 2^16 more. Topics added later have none.
    counts: Vec<u64>,
}

/// A walk over the ring: the next frame, and the state of prefetching.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// Position of the next frame.
    at: Position,
    messages: u64,
    /// The writer's head at the last read of it.
    written: Position,
    /// Position from which the head may be read again.
    next_head_read: Position,
}

impl Walk {
    /// Position of the next frame.
    #[inline(always)]
    pub(crate) const fn at(&self) -> Position {
        self.at
    }

    #[inline(always)]
    fn step<M: Memory>(&mut self, memory: &M, length: u32) {
        let bytes = frame_bytes(u64::from(length));
        self.prefetch_ahead(memory, bytes);
        self.at = self.at.plus(bytes);
        self.messages = self.messages.wrapping_add(1);
    }

    /// Prefetches a later frame's header while this message is handled, assuming frames of equal
    /// length, so that several cache lines are fetched at once.
    ///
    /// Only bytes that are already written are fetched: taking a line from the writer while it
    /// fills it costs both sides more than it gains.
    #[inline(always)]
    fn prefetch_ahead<M: Memory>(&mut self, memory: &M, bytes: u64) {
        let ahead = self.at.plus((AHEAD_FRAMES * bytes).max(AHEAD_BYTES));
        if !ahead.is_past(self.written) {
            memory.prefetch(ahead);
        } else if self.at.is_past(self.next_head_read) {
            self.read_head(memory);
        }
    }

    #[cold]
    #[inline(never)]
    fn read_head<M: Memory>(&mut self, memory: &M) {
        // Relaxed: only a prefetch depends on it.
        self.written = Position::new(memory.ring().head.load(Ordering::Relaxed));
        self.next_head_read = self.at.plus(HEAD_READ_EVERY_BYTES);
    }
}

/// A message in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Position of its first byte.
    pub(crate) body: Position,
    pub(crate) length: u32,
    pub(crate) topic: TopicWord,
}

/// State of the ring at the reader's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message.
    Frame(Frame),
    /// No message yet.
    Empty,
    /// Invalid bytes, or the reader was evicted.
    Broken,
}

impl<M: Memory> RingReader<M> {
    /// Joins in slot `index`, whose lock the caller holds, at the writer's head.
    pub(crate) fn join(memory: M, index: usize, longest: u32) -> Self {
        let slot = memory.slot(index);
        let ring = memory.ring();
        let lease = next_lease(slot.lease.load(Ordering::Relaxed));
        memory.gate().used.fetch_or(1 << index, Ordering::Relaxed);
        // A first cursor, at or before the position where reading will start.
        // PAIRS(cursor): release here, acquire in `RingWriter::gating_reader`: all reads of the
        // slot's last owner are finished.
        slot.cursor.store(ring.head.load(Ordering::Relaxed), Ordering::Release);
        // PAIRS(lease): release here, acquire in `RingWriter::gating_reader`: the slot has the new
        // owner's process before, so the writer never takes it for a dead predecessor.
        slot.lease.store(lease, Ordering::Release);
        // PAIRS(join): lease, fence, head here; head, fence, leases in the writer.
        // PAIRS(announced): fence here, acquire in `RingWriter::wake_sleepers`: the pipe of the
        // slot's last owner is gone before this one announces sleep.
        // PAIRS(left): fence here, acquire fence in `SlotRoster`: the lease before the words that
        // this owner leaves.
        fence(Ordering::SeqCst);
        let (at, counts) = read_counts(&memory);
        let flush = CacheFlush::new(memory.window());
        let reader = Self {
            memory,
            index,
            lease,
            walk: Walk {
                at,
                messages: 0,
                written: at,
                next_head_read: at.plus(HEAD_READ_EVERY_BYTES),
            },
            released: at,
            longest,
            lap_end: at.plus(flush.lap_bytes()),
            next_flush: at.plus(flush.lap_bytes()),
            flush,
            counts,
        };
        // PAIRS(joined): release here, acquire in `RingWriter::has_joined`: the position was read
        // before a message that the writer commits after it has counted this reader.
        reader.memory.slot(index).joined.store(lease, Ordering::Release);
        reader.publish_cursor();
        reader
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
        self.walk.at
    }

    /// The largest number that the first message of `topic` can have after the join.
    pub(crate) fn first_number_max(&self, topic: u32) -> u64 {
        self.counts.get(topic as usize).copied().unwrap_or(0)
    }

    /// Whether [`next_number_max`](Self::next_number_max) is known now, unless the writer goes on.
    pub(crate) fn knows_numbers(&self) -> bool {
        let head = Position::new(self.memory.ring().head.load(Ordering::Relaxed));
        !self.walk.at.is_past(head) && head.since(self.walk.at) <= COUNTING_BYTES_MAX
    }

    /// The largest number that the next message of `topic` can have; the topic table has it. `None`
    /// if that is not known now, as the writer is about to count a message, or far ahead.
    pub(crate) fn next_number_max(&self, topic: u32) -> Option<u64> {
        let (head, at) = (&self.memory.ring().head, self.walk.at);
        // PAIRS(head): acquire here, release in `RingWriter::advance`: the count has every message
        // before the head.
        if at.is_past(Position::new(head.load(Ordering::Acquire))) {
            return None;
        }
        let count = self.memory.count(topic).load(Ordering::Relaxed);
        // PAIRS(count): acquire here, release in `RingWriter::advance`.
        fence(Ordering::Acquire);
        let ahead = Position::new(head.load(Ordering::Acquire)).since(at);
        (ahead <= COUNTING_BYTES_MAX).then_some(count)
    }

    /// Number of messages that are committed on `topic` by now; the topic table has it.
    pub(crate) fn count(&self, topic: u32) -> u64 {
        self.memory.count(topic).load(Ordering::Relaxed)
    }

    /// A walk from the next message on, which passes nothing for the reader.
    #[inline(always)]
    pub(crate) const fn walk(&self) -> Walk {
        self.walk
    }

    /// Passes everything before the next frame of `walk`.
    #[inline(always)]
    pub(crate) const fn pass_to(&mut self, walk: Walk) {
        self.walk = walk;
    }

    /// The next message, without passing it.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Next {
        self.peek_at(&self.walk)
    }

    /// The next message of `walk`, without passing it.
    #[inline(always)]
    pub(crate) fn peek_at(&self, walk: &Walk) -> Next {
        let frame = self.memory.frame(walk.at);
        // PAIRS(commit): acquire here, release in `RingWriter::commit`.
        let word = Word(frame.commit.load(Ordering::Acquire));
        if word == Word::EMPTY {
            return Next::Empty;
        }
        let Some(length) = word.checked_length(self.longest) else { return Next::Broken };
        // Relaxed: `is_evicted`, called after reading the bytes, finds a later eviction.
        if self.last_evicted().load(Ordering::Relaxed) == self.lease {
            return Next::Broken;
        }
        let topic = TopicWord(frame.topic.load(Ordering::Relaxed));
        Next::Frame(Frame { body: walk.at.plus(FRAME_HEADER), length, topic })
    }

    /// Passes a message of `length` bytes.
    #[inline(always)]
    pub(crate) fn pass(&mut self, length: u32) {
        self.walk.step(&self.memory, length);
    }

    /// Steps `walk` over a message of `length` bytes.
    #[inline(always)]
    pub(crate) fn step(&self, walk: &mut Walk, length: u32) {
        walk.step(&self.memory, length);
    }

    /// Notes that the reader has caught up: it does not read the head before it has read another
    /// few kilobytes without a pause.
    #[inline(always)]
    pub(crate) fn note_caught_up(&mut self) {
        self.walk.next_head_read = self.walk.at.plus(HEAD_READ_EVERY_BYTES);
    }

    /// Fetches the line behind that of the next header, if only the first bytes of the message
    /// share that: both then come from the writer at once, not one after the other.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self) {
        let behind = self.walk.at.plus(FRAME_ALIGN);
        if behind.get().is_multiple_of(LINE_BYTES) {
            self.memory.prefetch(behind);
        }
    }

    /// Undoes the last pass, of a message of `length` bytes.
    pub(crate) fn unpass(&mut self, length: u32) {
        self.walk.at = self.walk.at.minus(frame_bytes(u64::from(length)));
        self.walk.messages = self.walk.messages.wrapping_sub(1);
    }

    /// Bytes passed since the cursor that the writer sees.
    #[inline(always)]
    pub(crate) const fn unreleased(&self) -> u64 {
        self.walk.at.since(self.released)
    }

    /// Shows the writer the current cursor: the bytes before it may be overwritten.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.walk.at.is_past(self.next_flush) {
            self.flush();
        }
        self.released = self.walk.at;
        self.publish_cursor();
    }

    /// Flushes what was passed since the last release, if the flush is on, and ends its lap.
    #[cold]
    #[inline(never)]
    fn flush(&mut self) {
        let at = self.walk.at;
        self.memory.flush(&self.flush, self.released, at);
        if at.is_past(self.lap_end) {
            self.flush.end_lap();
            self.lap_end = at.plus(self.flush.lap_bytes());
        }
        self.next_flush = if self.flush.is_on() { at } else { self.lap_end };
    }

    #[inline]
    fn publish_cursor(&self) {
        let slot = self.memory.slot(self.index);
        slot.messages.store(self.walk.messages, Ordering::Relaxed);
        // PAIRS(cursor): release here, acquire in `RingWriter::gating_reader`.
        slot.cursor.store(self.walk.at.get(), Ordering::Release);
        self.notify_writer();
    }

    /// Wakes the writer if it sleeps or is about to.
    #[inline]
    fn notify_writer(&self) {
        // PAIRS(asymmetric): cursor, fence, flag here; flag, fence, cursors in the writer.
        light_fence();
        let gate = self.memory.gate();
        if gate.publisher_waits.load(Ordering::Relaxed) != 0 {
            // Relaxed: the changed word only ends a sleep; the writer then reads the cursors.
            gate.publisher_wake.fetch_add(1, Ordering::Relaxed);
            self.memory.wake(&gate.publisher_wake);
        }
    }

    /// Whether the writer has evicted this reader. If not, all bytes read before are intact.
    #[inline]
    pub(crate) fn is_evicted(&self) -> bool {
        // PAIRS(eviction): acquire fence here, full fence in `RingWriter::update_limit`.
        fence(Ordering::Acquire);
        self.last_evicted().load(Ordering::Relaxed) == self.lease
    }

    /// The last evicted lease of this reader's slot, which the writer stores.
    #[inline(always)]
    pub(crate) fn last_evicted(&self) -> &AtomicU64 {
        // Slots are numbered from 0, so the mask changes nothing; it spares a check per message.
        &self.memory.ring().evicted[self.index & (SUBSCRIBERS_MAX as usize - 1)]
    }

    /// Whether the writer has closed the session. Every commit is visible afterwards, so an empty
    /// [`peek`](Self::peek) after `true` is final.
    pub(crate) fn is_closed(&self) -> bool {
        // PAIRS(state): acquire here, release in `RingWriter::close`.
        self.memory.ring().state.load(Ordering::Acquire) == STATE_CLOSED
    }

    /// Announces sleep; returns the slot's wake word's value before it.
    ///
    /// The caller passes a heavy fence, one for all readers that it sleeps on, and sleeps on the
    /// words only if none [has news](Self::has_news) after that. In both cases it then calls
    /// [`cancel_sleep`](Self::cancel_sleep), unless an armed descriptor relies on the announcement:
    /// withdrawn between a commit and the writer's look at the sleepers, it would be missed. If the
    /// fence does not make writers sure to see the announcement, the sleep must be short.
    pub(crate) fn begin_sleep(&self) -> u32 {
        // Relaxed: the fence orders this load before the `peek`, and a later wake-up changes the
        // word.
        let expected = self.memory.slot(self.index).wake.load(Ordering::Relaxed);
        self.announce_sleep();
        expected
    }

    /// The steps before a sleep on this reader alone; `None` if `has_news` tells of work. The flag
    /// tells whether the writer is sure to see the announcement.
    #[cfg(all(test, loom))]
    pub(crate) fn prepare_sleep(&self, has_news: impl FnOnce() -> bool) -> Option<(u32, bool)> {
        let expected = self.begin_sleep();
        // PAIRS(asymmetric): sleepers, fence, commit here; commit, fence, sleepers in the writer.
        let covered = self.memory.heavy_fence();
        (!has_news()).then_some((expected, covered))
    }

    /// Announces sleep: the writer's next commit changes the slot's wake word. The caller passes a
    /// heavy fence and then checks [`has_news`](Self::has_news) before it sleeps.
    pub(crate) fn announce_sleep(&self) {
        self.memory.gate().sleepers.fetch_or(1 << self.index, Ordering::Relaxed);
    }

    /// Whether there is a message, or the session has ended.
    pub(crate) fn has_news(&self) -> bool {
        self.peek() != Next::Empty || self.is_closed() || self.is_evicted()
    }

    /// Counts a sleep, for inspection.
    pub(crate) fn count_sleep(&self) {
        let sleeps = &self.memory.slot(self.index).sleeps;
        sleeps.store(sleeps.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Withdraws the announcement of sleep.
    pub(crate) fn cancel_sleep(&self) {
        let bit = 1u64 << self.index;
        self.memory.gate().sleepers.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Leaves the session: the slot is free for the next owner of its lock.
    pub(crate) fn leave(&mut self) {
        let slot = self.memory.slot(self.index);
        // Relaxed: any head since the last message tells whether something was left unread.
        let head = Position::new(self.memory.ring().head.load(Ordering::Relaxed));
        let unread = if head.is_past(self.walk.at) { head.since(self.walk.at) } else { 0 };
        slot.cursor.store(self.walk.at.get(), Ordering::Relaxed);
        slot.unread.store(unread, Ordering::Relaxed);
        // Once more, where the next owner of the slot does not write.
        let owner = lease_owners(self.lease);
        let place = (owner % 2) as usize;
        slot.left_unread[place].store(unread, Ordering::Relaxed);
        slot.left_at[place].store(left_at(self.walk.at.get(), owner), Ordering::Relaxed);
        // PAIRS(lease): release here, acquire in `RingWriter::gating_reader`: all reads are
        // finished; and acquire in `SlotRoster::update`: cursor and unread bytes are final.
        slot.lease.store(self.lease.wrapping_add(1), Ordering::Release);
        self.notify_writer();
    }
}

/// The writer's head, and after it the count of each topic's messages.
fn read_counts<M: Memory>(memory: &M) -> (Position, Vec<u64>) {
    let ring = memory.ring();
    let mut counts = Vec::new();
    // PAIRS(head): acquire here, release in `RingWriter::advance`: the counts have every message
    // before the head, and `topics` has its topic.
    let mut head = ring.head.load(Ordering::Acquire);
    for _ in 0..COUNTING_ATTEMPTS_MAX {
        let topics = ring.topics.load(Ordering::Relaxed).min(memory.topics_max());
        counts.clear();
        counts.extend((0..topics).map(|topic| memory.count(topic).load(Ordering::Relaxed)));
        // PAIRS(count): acquire here, release in `RingWriter::advance`.
        fence(Ordering::Acquire);
        let now = ring.head.load(Ordering::Acquire);
        if now.wrapping_sub(head) <= COUNTING_BYTES_MAX {
            break;
        }
        // No writer is so fast so often: in damaged memory the first message shows it.
        counts.clear();
        head = now;
    }
    // The head is untrusted: frames are read at aligned positions only.
    (Position::new(head & !(FRAME_ALIGN - 1)), counts)
}

#[cfg(all(test, not(loom)))]
mod tests;
