//! One sender's stream at this member: what arrived, what is delivered, what is missing.
//!
//! Sequences, from old to new: frames below the stable point are freed; up to `delivered` the
//! application has them; up to `next` they are here without a hole; some lie ahead of a hole.

use super::assembly::Assembly;
use super::gap::Gap;
use super::retention::Retention;
use crate::Nanos;
use crate::event::Order;
use lanecast_wire::group::DataFlags;

/// Frames looked at in one search for holes.
const LONGEST_SEARCH: u64 = 8_192;

/// A sender's stream.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) retained: Retention,
    pub(crate) next: u64,
    pub(crate) delivered: u64,
    /// Frames from here on are not accepted: a change of the view has cut the stream.
    pub(crate) limit: u64,
    /// Messages before are part of the state that the application was given.
    pub(crate) skip_below: u64,
    pub(crate) gap: Gap,
    /// Bytes received since the last acknowledgement.
    pub(crate) unacknowledged: usize,
    assembly: Assembly,
    /// The message under way was granted its place in the total order.
    granted: bool,
}

/// A message that is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Complete<'a> {
    pub(crate) sequence: u64,
    pub(crate) order: Order,
    pub(crate) bytes: &'a [u8],
}

/// Place at which `Lane::deliver` stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// At the end of what is here.
    End,
    /// At a message that waits for its place in the total order.
    Ungranted,
    /// After a message that had its place.
    Granted,
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self {
            retained: Retention::default(),
            next: 0,
            delivered: 0,
            limit: u64::MAX,
            skip_below: 0,
            gap: Gap::new(0),
            unacknowledged: 0,
            assembly: Assembly::default(),
            granted: false,
        }
    }

    /// Begins a view, with room for `capacity` bytes.
    pub(crate) fn reset(&mut self, first: u64, capacity: usize) {
        self.retained.reset(capacity);
        self.assembly.clear();
        (self.next, self.delivered) = (first, first);
        (self.limit, self.skip_below) = (u64::MAX, 0);
        self.gap = Gap::new(first);
        (self.unacknowledged, self.granted) = (0, false);
    }

    /// Whether the frame is the expected one, nothing waits to be delivered before it, and no state
    /// contains it.
    #[inline]
    pub(crate) const fn expects(&self, sequence: u64) -> bool {
        sequence == self.next
            && sequence == self.delivered
            && sequence < self.limit
            && sequence >= self.skip_below
    }

    /// Counts a frame as received that was or will be delivered in place.
    #[inline]
    pub(crate) fn pass(&mut self, now: Nanos, length: usize) {
        self.next += 1;
        self.delivered = self.next;
        self.unacknowledged += Retention::charge(length);
        self.gap.on_progress(now, self.next);
    }

    /// Keeps the expected frame, at the cost of frames that lie ahead. False: there is no room
    /// beside the frames from `others` on, which another member may still ask for.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        others: u64,
        (sequence, flags, body): (u64, DataFlags, &[u8]),
    ) -> bool {
        self.retained.insert(sequence, flags.0, body)
            || self.keep_instead(others, (sequence, flags, body))
    }

    #[cold]
    fn keep_instead(
        &mut self,
        others: u64,
        (sequence, flags, body): (u64, DataFlags, &[u8]),
    ) -> bool {
        let first = others.min(self.delivered).min(sequence);
        self.retained.contains(sequence)
            || self.retained.compact(first, sequence, body.len())
                && self.retained.insert(sequence, flags.0, body)
    }

    /// Keeps a frame that lies ahead of the expected one, if a quarter of the ring stays free.
    pub(crate) fn keep_ahead(&mut self, sequence: u64, flags: DataFlags, body: &[u8]) -> bool {
        let used = self.retained.used() + Retention::charge(body.len());
        used <= self.retained.capacity() / 4 * 3 && self.retained.insert(sequence, flags.0, body)
    }

    /// Moves `next` over the frames that are here; `note` sees each, and may refuse it for now.
    pub(crate) fn accept(
        &mut self,
        now: Nanos,
        mut note: impl FnMut(DataFlags, &[u8]) -> bool,
    ) -> bool {
        let before = self.next;
        while self.next < self.limit
            && let Some(entry) = self.retained.get(self.next)
            && note(DataFlags(entry.flags), entry.body)
        {
            self.unacknowledged += Retention::charge(entry.body.len());
            self.next += 1;
        }
        if self.next > before {
            self.gap.on_progress(now, self.next);
        }
        self.next > before
    }

    /// Delivers received messages in order. `grant`: the next message in total order has its turn.
    pub(crate) fn deliver(
        &mut self,
        mut grant: bool,
        longest: usize,
        mut take: impl FnMut(Complete<'_>),
    ) -> Stop {
        while self.delivered < self.next {
            let sequence = self.delivered;
            let Some(entry) = self.retained.get(sequence) else {
                // Frames that are not kept are delivered when they arrive.
                debug_assert!(false, "frame {sequence} is gone before its delivery");
                self.delivered += 1;
                continue;
            };
            let flags = DataFlags(entry.flags);
            if flags.is_order_list() {
                self.delivered += 1;
                continue;
            }
            if flags.begins() {
                if core::mem::take(&mut self.granted) {
                    // Its last fragment never came: the turn is over.
                    self.assembly.clear();
                    return Stop::Granted;
                }
                if flags.is_agreed() {
                    if !core::mem::take(&mut grant) {
                        return Stop::Ungranted;
                    }
                    self.granted = true;
                }
            }
            self.delivered += 1;
            let ends = flags.ends();
            let order = if self.granted { Order::Total } else { Order::Sender };
            let parts = (flags.begins(), ends);
            if let Some(bytes) = self.assembly.add(parts, sequence, entry.body, longest)
                && sequence >= self.skip_below
            {
                take(Complete { sequence, order, bytes });
            }
            if ends && core::mem::take(&mut self.granted) {
                return Stop::Granted;
            }
        }
        Stop::End
    }

    /// Gives up the message under way, whose missing fragments no member has.
    pub(crate) fn abort_message(&mut self) {
        self.assembly.clear();
        self.granted = false;
    }

    /// Whether a message with its turn waits for its last fragment.
    pub(crate) const fn is_granted(&self) -> bool {
        self.granted
    }

    /// First sequence that the application has not seen a whole message of.
    pub(crate) fn seen(&self) -> u64 {
        self.assembly.first().unwrap_or(self.delivered)
    }

    /// First sequence that this member does not hold for certain; `holds`: it keeps what it has
    /// received.
    pub(crate) const fn acknowledged(&self, holds: bool) -> u64 {
        if holds { self.next } else { self.delivered }
    }

    /// Frees what all members have and the application has seen.
    #[inline]
    pub(crate) fn free(&mut self, others: u64) {
        self.retained.free_below(others.min(self.delivered));
    }

    /// Missing frames up to the highest one known, as runs of first sequence and count.
    pub(crate) fn missing(&self) -> impl Iterator<Item = (u64, u32)> {
        let end = self.gap.heard().min(self.limit).min(self.next.saturating_add(LONGEST_SEARCH));
        let mut at = self.next;
        core::iter::from_fn(move || {
            while at < end && self.retained.contains(at) {
                at += 1;
            }
            let first = at;
            while at < end && !self.retained.contains(at) {
                at += 1;
            }
            (at > first).then(|| (first, (at - first) as u32))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: DataFlags = DataFlags(DataFlags::FIRST | DataFlags::LAST);

    #[test]
    fn frames_that_others_lack_are_kept_and_the_expected_one_is_asked_for_again() {
        let mut lane = Lane::new();
        lane.reset(0, 8 * 64);
        for sequence in 0..6 {
            assert!(lane.keep(0, (sequence, WHOLE, b"delivered")));
            lane.pass(0, 9);
        }
        // One ahead of a hole takes the rest.
        assert!(lane.retained.insert(7, WHOLE.0, &[0; 2 * 64 - 16]));
        let long = [0; 3 * 64 - 16];
        assert!(!lane.keep(0, (6, WHOLE, &long)), "three lines of two");
        assert!((0..6).all(|sequence| lane.retained.contains(sequence)));
        assert!(lane.keep(1, (6, WHOLE, &long)), "all have frame 0");
        let held: Vec<_> = (0..9).filter(|&sequence| lane.retained.contains(sequence)).collect();
        assert_eq!(held, [1, 2, 3, 4, 5, 6]);
    }
}
