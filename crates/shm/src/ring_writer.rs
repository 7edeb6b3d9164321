//! The publisher's side of the ring: commits messages, and keeps clear of the gating readers.
//!
//! Messages are numbered on their topics: a frame has the low bits of its message's number, and
//! the ring file a count of each topic's messages, from which a joining reader learns the others.
//!
//! One writer; every reader sees every message; the slowest reader gates the writer
//! (receiver-paced). The writer reads the cursors only when it reaches the limit computed last
//! time, so most messages cost no shared reads.
//!
//! A reader joins without the writer's help: it stores its lease, then reads the head and starts
//! there. The writer stores its head, then reads the leases. Each has a full fence in between, so
//! at least one of the two sees the other: either the writer gates on the reader from then on, or
//! the reader starts at or after the position for which the writer computed its limit, which that
//! limit protects for a whole window.

use crate::memory::Memory;
use lanecast_base::Position;
use lanecast_base::sync::{AtomicU64, Ordering, fence, light_fence};
use lanecast_wire::shm::{
    FRAME_ALIGN, STATE_CLOSED, STATE_OPEN, SUBSCRIBERS_MAX, TopicWord, Word, frame_bytes,
};
use std::time::Duration;

/// Bytes kept free behind the slowest reader: the empty commit word after the newest message.
const SLACK: u64 = FRAME_ALIGN;

/// Distance at which cache lines are prefetched for writing. Readers hold them since they read
/// them a window ago; without the prefetch each write would wait for its line.
const AHEAD_BYTES: u64 = 1024;

/// Most unread messages counted for a report.
const COUNT_MAX: u64 = 1 << 20;

/// The writer's state, private to the writer.
#[derive(Debug)]
pub(crate) struct RingWriter<M> {
    memory: M,
    /// Position of the next message: everything before it is committed.
    at: Position,
    /// Messages and the empty word behind them may reach up to here.
    limit: Position,
    /// Number of the next message of each topic.
    next_numbers: Vec<u64>,
    /// The staged messages of a batch, in order.
    staged: Vec<StagedRun>,
    /// Number of staged messages of each topic.
    staged_counts: Vec<u64>,
    /// Last evicted lease of each slot: a private copy of the words that readers see.
    evicted: [u64; SUBSCRIBERS_MAX as usize],
}

/// Staged messages of one topic, one after the other.
#[derive(Clone, Copy, Debug)]
struct StagedRun {
    topic: u32,
    count: u32,
    /// Position after the last one.
    end: Position,
}

/// A sleep that readers are told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnnouncedSleep {
    /// The wake word's value until a reader changes it.
    expected: u32,
    /// Readers are sure to see the announcement.
    is_covered: bool,
}

/// Most messages between two stores of the head, so that a joining reader can tell a number from
/// its low 16 bits: half of what they distinguish, the other half is the reader's.
pub(crate) const UNCOUNTED_MAX: u32 = 1 << 15;

/// Reason of a reader's eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// The reader's process has ended.
    Dead,
    /// The reader has not read for longer than the configured time.
    Stalled,
    /// The reader's cursor stays outside of the window.
    InvalidCursor,
}

impl<M: Memory> RingWriter<M> {
    /// A writer on new memory, starting at `start` (a multiple of the frame alignment).
    pub(crate) fn new(memory: M, start: Position) -> Self {
        let ring = memory.ring();
        ring.head.store(start.get(), Ordering::Relaxed);
        memory.frame(start).commit.store(Word::EMPTY.0, Ordering::Relaxed);
        // Relaxed, both: readers join only after the first topic is counted, which comes later.
        ring.state.store(STATE_OPEN, Ordering::Relaxed);
        let limit = start.plus(memory.window() - SLACK);
        Self {
            memory,
            at: start,
            limit,
            next_numbers: Vec::new(),
            staged: Vec::new(),
            staged_counts: Vec::new(),
            evicted: [0; SUBSCRIBERS_MAX as usize],
        }
    }

    pub(crate) const fn memory(&self) -> &M {
        &self.memory
    }

    pub(crate) const fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Adds the next topic, without messages.
    pub(crate) fn add_topic(&mut self) {
        self.next_numbers.push(0);
        self.staged_counts.push(0);
    }

    /// Number of topics.
    #[inline(always)]
    pub(crate) const fn topics(&self) -> usize {
        self.next_numbers.len()
    }

    /// Position of the next message.
    #[inline(always)]
    pub(crate) const fn at(&self) -> Position {
        self.at
    }

    /// Whether the bytes up to `end` may be written, by the limit computed last time alone.
    #[inline(always)]
    pub(crate) fn is_within_limit(&self, end: Position) -> bool {
        !end.is_past(self.limit)
    }

    /// Makes the next claim read the cursors, whatever its length.
    pub(crate) const fn forget_limit(&mut self) {
        self.limit = self.at;
    }

    /// Whether the bytes up to `end` may be written; reads the cursors only beyond the limit.
    #[inline(always)]
    pub(crate) fn has_space(&mut self, end: Position) -> bool {
        self.is_within_limit(end) || self.has_space_after_update(end)
    }

    #[cold]
    #[inline(never)]
    fn has_space_after_update(&mut self, end: Position) -> bool {
        self.update_limit();
        self.is_within_limit(end)
    }

    /// Computes the limit from the readers' cursors.
    pub(crate) fn update_limit(&mut self) {
        // PAIRS(join): head, fence, leases here; lease, fence, head in `RingReader::join`.
        // PAIRS(eviction): and evictions before this fence, overwriting after it; reads, fence,
        // eviction in `RingReader::is_evicted`: a reader of overwritten bytes sees its eviction.
        fence(Ordering::SeqCst);
        let window = self.memory.window();
        let mut slowest = self.at;
        for (_, _, cursor) in self.gating_readers() {
            // A cursor outside of the window is damage, or belongs to a reader that was suspended
            // while joining and is about to correct it. It counts as a window behind: the writer
            // waits until the cursor is corrected or the reader evicted.
            let lag = self.at.since(cursor).min(window);
            slowest = slowest.earliest(self.at.minus(lag));
        }
        self.limit = slowest.plus(window - SLACK);
    }

    /// The lease and cursor of the reader in slot `index`, if one gates the writer.
    fn gating_reader(&self, index: usize) -> Option<(u64, Position)> {
        let slot = self.memory.slot(index);
        // PAIRS(lease): acquire here, release in `RingReader::leave`: all its reads are finished.
        let lease = slot.lease.load(Ordering::Acquire);
        if lease.is_multiple_of(2) || lease == self.evicted[index] {
            return None;
        }
        // PAIRS(cursor): acquire here, release in `RingReader::release`: reads before the cursor
        // finish before the bytes are overwritten.
        Some((lease, Position::new(slot.cursor.load(Ordering::Acquire))))
    }

    /// Publishes the message written at `at`, which is [`at`](Self::at) as the claim read it,
    /// `bytes` long in the ring.
    ///
    /// # Panics
    /// If the topic was not added.
    #[inline(always)]
    pub(crate) fn commit(&mut self, at: Position, topic: u32, length: u32, bytes: u64) {
        debug_assert_eq!(at, self.at);
        // Everything is loaded before the first store: the processor may hold back a load behind a
        // store whose address it does not know yet, and the messages then wait for one another.
        let number = self.next_numbers[topic as usize];
        let next = at.plus(bytes);
        let memory = &self.memory;
        memory.prefetch_for_writing(next.plus(AHEAD_BYTES));
        let (frame, behind) = (memory.frame(at), memory.frame(next));
        let (topic_count, head) = (memory.count(topic), &memory.ring().head);
        let sleepers = &memory.gate().sleepers;
        let count = number.wrapping_add(1);
        behind.commit.store(Word::EMPTY.0, Ordering::Relaxed);
        frame.topic.store(TopicWord::new(topic, number).0, Ordering::Relaxed);
        self.next_numbers[topic as usize] = count;
        self.at = next;
        // PAIRS(commit): release here, acquire in `RingReader::peek`: the message and the empty
        // word behind it are written before the commit word.
        frame.commit.store(Word::message(length).0, Ordering::Release);
        advance(topic_count, count, head, next);
        if may_sleep(sleepers) {
            self.wake_sleepers();
        }
    }

    /// Prepares a message at `at`, `bytes` long in the ring, that
    /// [`commit_batch`](Self::commit_batch) makes visible. All but the first get their commit word
    /// at once, since readers stop before the first.
    #[inline]
    pub(crate) fn stage(&mut self, at: Position, topic: u32, length: u32, bytes: u64) {
        // Numbers are taken by the commit: a batch can be leaked, without even a drop.
        let staged = &mut self.staged_counts[topic as usize];
        let number = self.next_numbers[topic as usize].wrapping_add(*staged);
        *staged += 1;
        let end = at.plus(bytes);
        match self.staged.last_mut() {
            Some(run) if run.topic == topic && run.count < UNCOUNTED_MAX => {
                (run.count, run.end) = (run.count + 1, end);
            }
            _ => self.staged.push(StagedRun { topic, count: 1, end }),
        }
        let frame = self.memory.frame(at);
        frame.topic.store(TopicWord::new(topic, number).0, Ordering::Relaxed);
        if at != self.at {
            frame.commit.store(Word::message(length).0, Ordering::Relaxed);
        }
    }

    /// Discards staged messages.
    pub(crate) fn unstage(&mut self) {
        for run in self.staged.drain(..) {
            self.staged_counts[run.topic as usize] = 0;
        }
    }

    /// Publishes staged messages, the first of `first_length` bytes, which end at `next`.
    pub(crate) fn commit_batch(&mut self, first_length: u32, next: Position) {
        let memory = &self.memory;
        memory.frame(next).commit.store(Word::EMPTY.0, Ordering::Relaxed);
        // PAIRS(commit): release here, acquire in `RingReader::peek`: the whole batch is visible.
        memory.frame(self.at).commit.store(Word::message(first_length).0, Ordering::Release);
        let mut staged = std::mem::take(&mut self.staged);
        for run in staged.drain(..) {
            // The writer's own number: another process can have written the shared one.
            let number = &mut self.next_numbers[run.topic as usize];
            *number = number.wrapping_add(u64::from(run.count));
            let counted = self.memory.count(run.topic);
            advance(counted, *number, &self.memory.ring().head, run.end);
            self.staged_counts[run.topic as usize] = 0;
        }
        self.at = next;
        // Its memory serves the next batch.
        self.staged = staged;
        self.notify_readers();
    }

    /// Wakes the readers that sleep or are about to, after a change that they wait for.
    #[inline(always)]
    pub(crate) fn notify_readers(&self) {
        if may_sleep(&self.memory.gate().sleepers) {
            self.wake_sleepers();
        }
    }

    /// Wakes every reader that sleeps or is about to sleep.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake_sleepers(&self) {
        // PAIRS(announced): acquire here, fence in `RingReader::join` before any announcement: the
        // slot no longer shows the pipe of its last reader. A bit set after this swap belongs to a
        // reader that has yet to read the commit word.
        let sleepers = self.memory.gate().sleepers.swap(0, Ordering::Acquire);
        for index in bits(sleepers, self.memory.slots()) {
            self.memory.slot(index).wake.fetch_add(1, Ordering::Relaxed);
            self.memory.wake_slot(index);
        }
        let wakes = &self.memory.ring().wakes;
        wakes.store(wakes.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Evicts the reader in slot `index`, if its lease is still `lease`.
    ///
    /// Only the writer's own words change, so a new owner of the slot is not affected.
    pub(crate) fn evict(&mut self, index: usize, lease: u64, why: Eviction) {
        self.evicted[index] = lease;
        let ring = self.memory.ring();
        // Relaxed: overwriting starts after the next `update_limit`, which has the fence.
        ring.evicted[index].store(lease, Ordering::Relaxed);
        if why != Eviction::Dead {
            let evictions = &ring.evictions;
            evictions.store(evictions.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// The readers that gate the writer: slot, lease, cursor.
    pub(crate) fn gating_readers(&self) -> impl Iterator<Item = (usize, u64, Position)> + '_ {
        // Relaxed: a joining reader sets its bit before its fence, see PAIRS(join).
        let used = self.memory.gate().used.load(Ordering::Relaxed);
        bits(used, self.memory.slots())
            .filter_map(|index| self.gating_reader(index).map(|(lease, at)| (index, lease, at)))
    }

    /// Whether the reader in slot `index` with `lease` gets the next message: it gates the writer
    /// before it knows where it starts.
    pub(crate) fn has_joined(&self, index: usize, lease: u64) -> bool {
        // PAIRS(joined): acquire here, release in `RingReader::join`.
        self.memory.slot(index).joined.load(Ordering::Acquire) == lease
    }

    /// Number of messages from `from` to the writer's position; `None` if no message starts there,
    /// or there are too many to count.
    pub(crate) fn count_since(&self, from: Position) -> Option<u64> {
        let bytes = self.at.since(from);
        // The cursor is a reader's, and untrusted.
        if bytes > self.memory.window() || !from.get().is_multiple_of(FRAME_ALIGN) {
            return None;
        }
        let mut at = from;
        for count in 0..COUNT_MAX {
            if at == self.at {
                return Some(count);
            }
            let word = Word(self.memory.frame(at).commit.load(Ordering::Relaxed));
            at = at.plus(frame_bytes(u64::from(word.checked_length(u32::MAX)?)));
            if at.since(from) > bytes {
                return None;
            }
        }
        None
    }

    /// Announces that the writer waits for readers, who then change its wake word. The caller
    /// checks after this, not before, that it has to wait. Returns whether readers are sure to see
    /// the announcement.
    pub(crate) fn announce_wait(&self) -> bool {
        self.memory.gate().publisher_waits.store(1, Ordering::Relaxed);
        // PAIRS(asymmetric): flag, fence, cursors here; cursor, fence, flag in `RingReader`.
        self.memory.heavy_fence()
    }

    /// Sleeps until a reader moves or joins, or `limit` has passed; not at all if `done`.
    pub(crate) fn sleep(&mut self, limit: Duration, done: impl Fn(&mut Self) -> bool) {
        let announced = self.announce_sleep();
        if !done(self) {
            self.sleep_announced(announced, limit);
        }
        self.withdraw_sleep();
    }

    /// Announces a sleep. The caller then checks that it has to wait, sleeps or not, and
    /// [withdraws](Self::withdraw_sleep) the announcement.
    pub(crate) fn announce_sleep(&self) -> AnnouncedSleep {
        // Relaxed: the fence orders it before the caller's check, and a later wake-up changes it.
        let expected = self.memory.gate().publisher_wake.load(Ordering::Relaxed);
        AnnouncedSleep { expected, is_covered: self.announce_wait() }
    }

    /// Sleeps until a reader moves or joins after the announcement, or `limit` has passed.
    pub(crate) fn sleep_announced(&self, announced: AnnouncedSleep, limit: Duration) {
        let AnnouncedSleep { expected, is_covered } = announced;
        // Without coverage a reader can miss the flag: the sleep must be short.
        let limit = if is_covered { limit } else { limit.min(Duration::from_millis(1)) };
        self.memory.sleep(&self.memory.gate().publisher_wake, expected, limit);
    }

    /// Withdraws the announcement of a sleep.
    pub(crate) fn withdraw_sleep(&self) {
        self.memory.gate().publisher_waits.store(0, Ordering::Relaxed);
    }

    /// Closes the session: readers find the state once they have read every message.
    pub(crate) fn close(&mut self) {
        // PAIRS(state): release here, acquire in `RingReader::is_closed`: the last message is
        // visible before the state.
        self.memory.ring().state.store(STATE_CLOSED, Ordering::Release);
        // PAIRS(asymmetric): the state wakes sleepers, like a message.
        light_fence();
        self.wake_sleepers();
    }
}

/// Counts committed messages of a topic, and moves the head behind them.
#[inline(always)]
fn advance(topic_count: &AtomicU64, count: u64, head: &AtomicU64, next: Position) {
    // PAIRS(count): release here, acquire fence in `read_counts`: a reader of this count finds the
    // head before it, which bounds how far the count can be ahead of a position.
    topic_count.store(count, Ordering::Release);
    // PAIRS(head): release here, acquire in `read_counts`: a reader that starts at this head finds
    // every message before it counted.
    head.store(next.get(), Ordering::Release);
}

/// Whether readers sleep or are about to, after a change that they wait for.
#[inline(always)]
fn may_sleep(sleepers: &AtomicU64) -> bool {
    // PAIRS(asymmetric): commit, fence, sleepers here; sleepers, fence, commit in `sleep`.
    light_fence();
    sleepers.load(Ordering::Relaxed) != 0
}

/// The bits set in `word`, ascending, below `limit` (the word is untrusted).
pub(crate) fn bits(mut word: u64, limit: usize) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (index < limit).then_some(index)
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
