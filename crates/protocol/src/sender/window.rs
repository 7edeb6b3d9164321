//! Send window: the retained datagrams, contiguous in one block of memory, and their index.
//!
//! ```text
//! positions:  oldest .......................................... end
//!             | datagram | datagram | (up to the start) | datagram | open ...
//! ```
//! Positions count bytes and never wrap; a datagram's offset in memory is its position modulo the
//! memory's size. A datagram that would cross the end of the memory begins at offset 0 instead.

use crate::Nanos;
use crate::sequence::{ahead, before, later};
use lanecast_wire::net::{Blocks, DATA_OFFSET, DataHeader, FrameHeader};
use std::ops::Range;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// [`Slot::topic`] of a datagram with blocks of several topics.
pub(super) const MANY: u32 = u32::MAX;
/// Most datagrams in a run: the kernel's limit for segmentation offload.
const RUN_MAX: usize = 64;
/// Most bytes in a run: the longest UDP payload.
const GSO_BYTES_MAX: usize = 65_507;
/// Bytes of the window per index entry.
const BYTES_PER_SLOT: usize = 128;

/// Index entry of a datagram.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    position: u64,
    length: u32,
    topic: u32,
    /// Last repair, and the receiver that it was sent to; 0: to the group.
    repaired_at: Option<Nanos>,
    repaired_for: u64,
}

/// Contiguous datagrams, all `segment` bytes long except the last, which may be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) count: usize,
    pub(super) bytes: Range<usize>,
    pub(super) segment: usize,
}

impl Run {
    /// The sequence after the run.
    pub(super) const fn end(&self) -> u64 {
        self.first.wrapping_add(self.count as u64)
    }
}

/// Retained datagrams, and room for the open one.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) bytes: Box<[u8]>,
    slots: Box<[Slot]>,
    oldest: u64,
    next: u64,
    end: u64,
    /// Bytes that the transport adds to each datagram.
    envelope: usize,
}

impl Window {
    /// Creates an empty window that begins at sequence `first`; rounds `bytes` up to a power of
    /// two.
    pub(super) fn new(bytes: usize, first: u64) -> Self {
        let bytes = bytes.next_power_of_two();
        let slots = (bytes / BYTES_PER_SLOT).max(16);
        Self {
            bytes: vec![0; bytes].into(),
            slots: vec![Slot::default(); slots].into(),
            oldest: first,
            next: first,
            end: 0,
            envelope: 0,
        }
    }

    /// The same for a transport that adds `envelope` bytes to each datagram.
    pub(super) const fn with_envelope(mut self, envelope: usize) -> Self {
        self.envelope = envelope;
        self
    }

    /// Oldest retained sequence; the next one if the window is empty.
    pub(super) const fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Sequence of the next datagram to be closed.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Position after the last closed datagram.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Whether the datagram is retained.
    pub(super) const fn holds(&self, sequence: u64) -> bool {
        !before(sequence, self.oldest) && before(sequence, self.next)
    }

    fn slot(&self, sequence: u64) -> &Slot {
        &self.slots[sequence as usize & (self.slots.len() - 1)]
    }

    fn slot_mut(&mut self, sequence: u64) -> &mut Slot {
        let mask = self.slots.len() - 1;
        &mut self.slots[sequence as usize & mask]
    }

    const fn index(&self, position: u64) -> usize {
        position as usize & (self.bytes.len() - 1)
    }

    /// First position from `position` on where a datagram of up to `limit` bytes is contiguous.
    const fn begin(&self, position: u64, limit: usize) -> u64 {
        let index = self.index(position);
        let size = self.bytes.len();
        // A datagram never wraps: one slice has to hold it for the system call.
        if index + limit > size { position + (size - index) as u64 } else { position }
    }

    /// Makes room for `count` datagrams of up to `limit` bytes after an open one that will end at
    /// `open`. Drops the oldest, all before `until`; false if that is not enough.
    pub(super) fn make_room(
        &mut self,
        open: Option<u64>,
        count: usize,
        limit: usize,
        until: u64,
    ) -> bool {
        let start = open.unwrap_or(self.end);
        // At the longest lengths: the messages are split only after the room is granted.
        let end = (0..count).fold(start, |at, _| self.begin(at, limit) + limit as u64);
        self.make_room_to(end, count + usize::from(open.is_some()), until)
    }

    /// Makes room for `count` datagrams of different lengths and `bytes` bytes in all, after an
    /// open one that will end at `open`; each is followed by `limit` bytes that are contiguous.
    pub(super) fn make_room_for(
        &mut self,
        open: Option<u64>,
        (count, bytes): (usize, usize),
        limit: usize,
        until: u64,
    ) -> bool {
        let start = open.unwrap_or(self.end);
        let wraps = self.index(start) + bytes + limit > self.bytes.len();
        // Behind the last whole datagram before the end of the memory less than `limit` stays free.
        let bytes = bytes + limit + if wraps { limit } else { 0 };
        self.make_room_to(start + bytes as u64, count + usize::from(open.is_some()), until)
    }

    /// Makes room for `count` datagrams, the last of which ends at `end`.
    fn make_room_to(&mut self, end: u64, count: usize, until: u64) -> bool {
        // More than the whole window: no progress of receivers would ever make room.
        if end - self.end > self.bytes.len() as u64 || count > self.slots.len() {
            return false;
        }
        // The loop may drop datagrams and still fail: those were free to be overwritten anyway.
        while self.oldest != self.next {
            let kept = self.next.wrapping_sub(self.oldest) as usize;
            // Positions only grow: one window further on, memory is used again.
            let overlaps = self.slot(self.oldest).position + (self.bytes.len() as u64) < end;
            if !overlaps && kept + count <= self.slots.len() {
                break;
            }
            if !before(self.oldest, until) {
                return false;
            }
            self.oldest = self.oldest.wrapping_add(1);
        }
        true
    }

    /// Position and memory offset of the next datagram to open.
    pub(super) const fn place(&self, limit: usize) -> (u64, usize) {
        let position = self.begin(self.end, limit);
        (position, self.index(position))
    }

    /// Adds the next datagram; `topic` is its only topic, or [`MANY`].
    pub(super) fn close(&mut self, position: u64, length: usize, topic: u32) {
        // A new entry has no repair yet: the old datagram's mark must not pass on to it.
        let slot = Slot { position, length: length as u32, topic, ..Slot::default() };
        *self.slot_mut(self.next) = slot;
        self.end = position + length as u64;
        self.next = self.next.wrapping_add(1);
    }

    /// Removes the datagrams from `next` on, which were never published.
    pub(super) const fn rewind(&mut self, next: u64, end: u64) {
        self.next = next;
        self.end = end;
    }

    /// Writes `part` at an offset of the bytes.
    #[inline(always)]
    pub(super) fn write<T: IntoBytes + Immutable + ?Sized>(&mut self, at: usize, part: &T) {
        let part = part.as_bytes();
        self.bytes[at..at + part.len()].copy_from_slice(part);
    }

    /// The bytes of a retained datagram.
    pub(super) fn datagram(&self, sequence: u64) -> &[u8] {
        let Slot { position, length, .. } = *self.slot(sequence);
        let start = self.index(position);
        &self.bytes[start..start + length as usize]
    }

    /// Bytes of the retained datagrams from a sequence on.
    pub(super) fn bytes_since(&self, sequence: u64) -> u64 {
        let first = later(sequence, self.oldest);
        if before(first, self.next) { self.end - self.slot(first).position } else { 0 }
    }

    /// The blocks of a retained datagram.
    pub(super) fn blocks(&self, sequence: u64) -> Blocks<'_> {
        Blocks::new(&self.datagram(sequence)[DATA_OFFSET..])
    }

    /// Whether a retained datagram has a block of a topic that `accepts`.
    pub(super) fn has_topic(&self, sequence: u64, accepts: impl Fn(u32) -> bool) -> bool {
        match self.slot(sequence).topic {
            // Only mixed datagrams are read: for the others the index knows the topic.
            MANY => self.blocks(sequence).any(|(block, _)| accepts(block.topic.get())),
            topic => accepts(topic),
        }
    }

    /// Longest run from `first` on that one system call can send: before `until`, each one `fits`.
    pub(super) fn run(&self, first: u64, until: u64, fits: impl Fn(u64) -> bool) -> Run {
        let Slot { position, length, .. } = *self.slot(first);
        let segment = length as usize;
        let (mut count, mut bytes) = (1, segment);
        while count < RUN_MAX {
            let next = first.wrapping_add(count as u64);
            if !before(next, until) || !self.holds(next) || !fits(next) {
                break;
            }
            let slot = self.slot(next);
            let length = slot.length as usize;
            let sealed = bytes + length + (count + 1) * self.envelope;
            // Offset 0 is not contiguous with what lies before it, even if the positions are.
            let follows = slot.position == position + bytes as u64 && self.index(slot.position) > 0;
            if !follows || length > segment || sealed > GSO_BYTES_MAX {
                break;
            }
            bytes += length;
            count += 1;
            // Segmentation offload allows only the last datagram to be shorter.
            if length < segment {
                break;
            }
        }
        let start = self.index(position);
        Run { first, count, bytes: start..start + bytes, segment }
    }

    /// Writes the header fields that change with each transmission; `skipped` is that of the first.
    pub(super) fn stamp(&mut self, run: &Run, flags: u16, skipped: u32) {
        let mut sequence = run.first;
        for datagram in self.bytes[run.bytes.clone()].chunks_mut(run.segment) {
            let Ok((header, rest)) = FrameHeader::mut_from_prefix(datagram) else { continue };
            header.flags = flags.into();
            // Within a run nothing is skipped.
            let skipped = if sequence == run.first { skipped } else { 0 };
            let retained = ahead(sequence, self.oldest).clamp(0, i64::from(u32::MAX)) as u32;
            let data = DataHeader { skipped: skipped.into(), retained: retained.into() };
            let written = data.write_to_prefix(rest);
            debug_assert!(written.is_ok(), "a datagram begins with both headers");
            sequence = sequence.wrapping_add(1);
        }
    }

    /// Marks the run as repaired for `receiver`, or for all if that is 0.
    pub(super) fn mark_repaired(&mut self, run: &Run, receiver: u64, now: Nanos) {
        for number in 0..run.count as u64 {
            let slot = self.slot_mut(run.first.wrapping_add(number));
            (slot.repaired_at, slot.repaired_for) = (Some(now), receiver);
        }
    }

    /// Whether the datagram was repaired for `receiver` (or all) less than `pause` ago.
    pub(super) fn is_repaired(
        &self,
        sequence: u64,
        receiver: u64,
        now: Nanos,
        pause: Nanos,
    ) -> bool {
        let slot = self.slot(sequence);
        // Zero: a repair to the group was for this receiver too.
        let for_it = slot.repaired_for == 0 || slot.repaired_for == receiver;
        for_it && slot.repaired_at.is_some_and(|at| now.saturating_sub(at) < pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closes a datagram of `length`, dropping any before `until` for it.
    fn add(window: &mut Window, length: usize, until: u64) -> bool {
        let room = window.make_room(None, 1, 64, until);
        if room {
            let (position, _) = window.place(64);
            window.close(position, length, 1);
        }
        room
    }

    #[test]
    fn retained_datagrams_are_not_overwritten() {
        let mut window = Window::new(256, u64::MAX - 1);
        let first = window.next();
        for _ in 0..4 {
            assert!(add(&mut window, 64, first));
        }
        assert!(!add(&mut window, 64, first), "all are needed");
        assert!(add(&mut window, 64, first.wrapping_add(1)));
        assert!(!window.holds(first) && window.holds(first.wrapping_add(1)));
        assert!(!add(&mut window, 64, first.wrapping_add(1)));
    }

    #[test]
    fn a_run_ends_at_the_memory_s_end_and_after_a_shorter_one() {
        let mut window = Window::new(256, 0);
        for length in [64, 64, 64, 64, 64, 40, 64] {
            assert!(add(&mut window, length, u64::MAX >> 1));
        }
        assert_eq!(window.run(3, 7, |_| true).count, 1, "the next lies at the start");
        let run = window.run(4, 7, |_| true);
        assert_eq!((run.count, run.bytes, run.segment), (2, 0..104, 64));
        assert_eq!(window.run(4, 5, |_| true).count, 1);
        assert_eq!(window.run(4, 7, |sequence| sequence != 5).count, 1);
    }

    #[test]
    fn a_run_leaves_room_for_the_envelopes_of_its_datagrams() {
        for (envelope, count) in [(0, 64), (40, 62)] {
            let mut window = Window::new(1 << 17, 0).with_envelope(envelope);
            for _ in 0..70 {
                assert!(add(&mut window, 1_000, 0));
            }
            let run = window.run(0, 70, |_| true);
            assert_eq!(run.count, count);
            assert!(run.bytes.len() + run.count * envelope <= GSO_BYTES_MAX);
        }
    }

    #[test]
    fn there_are_no_more_datagrams_than_entries() {
        let mut window = Window::new(2_048, 5);
        let capacity = window.slots.len() as u64;
        for _ in 0..capacity {
            assert!(add(&mut window, 8, 5));
        }
        assert!(!add(&mut window, 8, 5));
        assert!(add(&mut window, 8, 6));
    }

    #[test]
    fn a_repair_counts_for_all_or_for_one() {
        let mut window = Window::new(256, 0);
        assert!(add(&mut window, 64, 0));
        let run = window.run(0, 1, |_| true);
        window.mark_repaired(&run, 7, 100);
        assert!(window.is_repaired(0, 7, 105, 10) && !window.is_repaired(0, 8, 105, 10));
        window.mark_repaired(&run, 0, 100);
        assert!(window.is_repaired(0, 8, 105, 10) && !window.is_repaired(0, 8, 110, 10));
    }
}
