//! Datagrams that are not the next: gaps noticed, filled and given up.

use super::Delivery;
use super::gap_tracker::Place;
use super::{GapEnd, GapRecord, LossReason, Receiver, nak};
use crate::Nanos;
use crate::sequence::{before, later};
use lanecast_wire::net::{DataHeader, Frame};

impl Receiver {
    /// A datagram that is not next, or comes while others are missing.
    #[cold]
    pub(super) fn on_other_data(
        &mut self,
        now: Nanos,
        frame: &Frame<'_>,
        header: &DataHeader,
        (bytes, at): (&[u8], usize),
        out: &mut Vec<Delivery>,
    ) {
        let sequence = frame.sequence;
        let place = self.tracker.place(sequence, header.skipped.get());
        if !self.hear_place(place, now) {
            return;
        }
        if place == Place::New {
            self.notice(now, sequence, header.skipped.get());
            self.tracker.advance(sequence.wrapping_add(1), 1, now, now);
        }
        self.learn_header(now, sequence, header);
        if place == Place::Old {
            self.counters.duplicates += 1;
        } else {
            self.counters.datagrams += 1;
            // A missing one stays missing until its last block is taken: none is jumped over.
            match (self.take_blocks(sequence, bytes, at, out), place) {
                (true, Place::Missing) => {
                    self.counters.recovered_messages += self.topics.messages_in(bytes);
                    self.recover(sequence, now);
                }
                (true, _) => {}
                (false, _) => self.drop_again(now, sequence),
            }
        }
        self.topics.release((&self.tracker, self.why), &mut self.counters, out);
        self.finish_if_drained(now, out);
    }

    /// Counts what is out of place; whether the frame is to be taken.
    pub(super) fn hear_place(&mut self, place: Place, now: Nanos) -> bool {
        match place {
            Place::Absurd => {
                // Either a lie, or much was missed: only the sender itself can tell.
                self.counters.implausible += 1;
                self.joining.resume(now);
            }
            Place::Full => {
                self.counters.overflowed += 1;
                self.life.hear(now);
            }
            _ => {
                self.life.hear(now);
                return true;
            }
        }
        false
    }

    /// Notices what is missing between the head and `to`, of which the last `skipped` are unwanted.
    pub(super) fn notice(&mut self, now: Nanos, to: u64, skipped: u32) {
        let due = self.nak.first_due(now, &self.trip).saturating_add(self.settings.reorder);
        let history = std::mem::take(&mut self.life.history);
        let Some(gap) = self.tracker.advance(to, skipped, now, due) else { return };
        if self.settings.stream {
            self.give_up(now, gap.first, gap.count, LossReason::Skipped);
        } else {
            self.counters.gaps += 1;
            let (first, count, end) = (gap.first, gap.count, GapEnd::Open);
            self.log.note(GapRecord { noticed: now, after: 0, first, count, end });
            if let Some(gap) = self.tracker.last_gap() {
                gap.history = history;
            }
        }
    }

    /// A missing datagram has come, and been taken.
    fn recover(&mut self, sequence: u64, now: Nanos) {
        let (counters, log) = (&mut self.counters, &mut self.log);
        self.tracker.settle(sequence, 1, |gap, first, count| {
            let after = now.saturating_sub(gap.noticed);
            counters.note_recovery(after);
            let end = GapEnd::Recovered;
            log.note(GapRecord { noticed: gap.noticed, after, first, count, end });
        });
        // What was dropped for want of room may have room now.
        let again = counters.overflowed > 0 && before(sequence, self.tracker.expected());
        self.nak.go_on(&mut self.tracker, again, now);
    }

    /// Gives up what is missing of `first..first + count`.
    pub(super) fn give_up(&mut self, now: Nanos, first: u64, count: u64, why: LossReason) {
        let Self { counters, log, doubt, .. } = self;
        let mut any = false;
        self.tracker.settle(first, count, |gap, first, count| {
            let after = now.saturating_sub(gap.noticed);
            counters.lost_datagrams += count;
            let last = first.wrapping_add(count - 1);
            *doubt = Some(doubt.map_or(last, |known| later(known, last)));
            let end = GapEnd::Lost(why);
            log.note(GapRecord { noticed: gap.noticed, after, first, count, end });
            any = true;
        });
        if any {
            self.why = why;
        }
    }

    /// A datagram could not be kept: it is missing again.
    #[cold]
    pub(super) fn drop_again(&mut self, now: Nanos, sequence: u64) {
        self.counters.overflowed += 1;
        let due = now.saturating_add(self.trip.patience());
        self.tracker.reopen(sequence, sequence.wrapping_add(1), now, due);
    }

    /// What a data or session frame at `sequence` says of those before it.
    pub(super) fn learn_header(&mut self, now: Nanos, sequence: u64, header: &DataHeader) {
        if self.tracker.gaps().is_empty() {
            return;
        }
        let skipped = u64::from(header.skipped.get());
        self.tracker.settle(sequence.wrapping_sub(skipped), skipped, |_, _, _| {});
        let oldest = sequence.wrapping_sub(u64::from(header.retained.get()));
        let first = self.tracker.expected();
        let gone = nak::distance(first, oldest);
        if gone > 0 {
            self.give_up(now, first, gone, LossReason::Gone);
        }
    }
}
