//! State of one received session: gaps noticed, recovered and lost, and the end of the session.
//!
//! Shared by the data path (`receiver`) and the control frames (`control`).

use super::config::ReceiverSettings;
use super::counters::{GapEnd, GapLog, GapRecord, ReceiverCounters};
use super::delivery::{Delivery, Phase};
use super::gap_tracker::{Arrival, GapTracker};
use super::joining::Joining;
use super::liveness::{Goodbye, Liveness};
use super::nak::Nak;
use super::parity_window::ParityWindow;
use super::status::{self, Status};
use super::topics::{BlockOrigin, Topics};
use crate::round_trip::RoundTrip;
use crate::sequence::{before, distance, later};
use crate::{Nanos, rng};
use lanecast_transport::{CloseReason, LossReason};
use lanecast_wire::net::{Blocks, DataHeader, Frame};

/// State of one received session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) settings: ReceiverSettings,
    pub(super) number: u64,
    pub(super) phase: Phase,
    pub(super) tracker: GapTracker,
    pub(super) topics: Topics,
    pub(super) joining: Joining,
    pub(super) nak: Nak,
    pub(super) status: Status,
    pub(super) liveness: Liveness,
    pub(super) round_trip: RoundTrip,
    /// `None` in a session without parity.
    pub(super) parity: Option<Box<ParityWindow>>,
    pub(super) counters: ReceiverCounters,
    pub(super) log: GapLog,
    /// Last sequence that was lost.
    pub(super) last_lost: Option<u64>,
    /// Reason of the latest loss.
    pub(super) loss_reason: LossReason,
}

impl Session {
    pub(super) fn new(
        settings: ReceiverSettings,
        number: u64,
        wanted: &[&str],
        now: Nanos,
    ) -> Self {
        let interval = status::interval(settings.liveness);
        Self {
            number,
            phase: Phase::Joining,
            tracker: GapTracker::new(),
            topics: Topics::new(&settings, wanted),
            joining: Joining::new(settings.seed, now),
            // Mixed: a seed that is the receiver's number would leave all with one seed.
            nak: Nak::new(rng::mix(settings.seed) ^ settings.receiver, settings.multicast),
            status: Status::new(settings.window_datagrams, settings.tag, interval),
            liveness: Liveness::new(&settings, now),
            round_trip: RoundTrip::new(),
            parity: None,
            counters: ReceiverCounters::default(),
            log: GapLog::default(),
            last_lost: None,
            loss_reason: LossReason::GaveUp,
            settings,
        }
    }

    /// Delivers the blocks of a datagram; false if one was dropped because the reorder buffer is
    /// full.
    #[inline]
    pub(super) fn take_blocks(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        at: usize,
        out: &mut Vec<Delivery>,
    ) -> bool {
        let mut blocks = Blocks::new(bytes);
        let mut room = true;
        while let Some((header, items)) = blocks.next() {
            // Deliveries name offsets in the caller's buffer: messages are not copied.
            let offset = bytes.len() - blocks.left() - items.rest().len();
            let origin = BlockOrigin { sequence, at: (at + offset) as u32 };
            let gaps = (&self.tracker, self.loss_reason);
            // Goes on without room: other topics of the datagram may need none.
            room &= self.topics.take((header, items), origin, gaps, &mut self.counters, out);
        }
        room
    }

    /// Handles a datagram that is not the next one, or that comes while others are missing, or that
    /// was rebuilt.
    #[cold]
    pub(super) fn take_other_data(
        &mut self,
        now: Nanos,
        frame: &Frame<'_>,
        header: &DataHeader,
        (bytes, at): (&[u8], usize),
        end: GapEnd,
        out: &mut Vec<Delivery>,
    ) {
        let sequence = frame.sequence;
        let arrival = self.tracker.classify(sequence, header.skipped.get());
        if !self.accepts(arrival, now) {
            return;
        }
        if arrival == Arrival::New {
            self.notice_gap(now, sequence, header.skipped.get());
            self.tracker.advance(sequence.wrapping_add(1), 1, now, now);
        }
        if let Some(parity) = &mut self.parity {
            parity.retain(sequence, bytes);
        }
        // Before the blocks: what it declares lost or skipped may let them be delivered.
        self.read_header(now, sequence, header);
        if arrival == Arrival::Duplicate {
            self.counters.duplicates += 1;
        } else {
            self.counters.datagrams += 1;
            // A gap stays open until all blocks are taken: a topic must not skip one of them.
            match (self.take_blocks(sequence, bytes, at, out), arrival) {
                (true, Arrival::Missing) => {
                    self.counters.recovered_messages += self.topics.messages_in(bytes);
                    self.recover(sequence, now, end);
                }
                (true, _) => {}
                (false, _) => self.reopen(now, sequence),
            }
        }
        self.release(out);
        self.finish_if_drained(now, out);
    }

    /// Counts a frame that is out of order; returns whether to accept it.
    pub(super) fn accepts(&mut self, arrival: Arrival, now: Nanos) -> bool {
        match arrival {
            Arrival::Implausible => {
                // Forged, or much was missed: only an answer from the sender itself can tell.
                self.counters.implausible += 1;
                self.joining.resume(now);
            }
            Arrival::Overflow => {
                self.counters.overflowed += 1;
                self.liveness.on_heard(now);
            }
            _ => {
                self.liveness.on_heard(now);
                return true;
            }
        }
        false
    }

    /// Records the gap between the head and `to`, without the last `skipped` datagrams.
    pub(super) fn notice_gap(&mut self, now: Nanos, to: u64, skipped: u32) {
        // Not at once where the network reorders: the datagram may be the next one.
        let due = self.nak.first_due(now, &self.round_trip).saturating_add(self.settings.reorder);
        // After a first datagram at the start there is none.
        let history = self.liveness.history_from.take() == Some(self.tracker.head());
        let due = match &self.parity {
            // Its parity may be on the way, unless it was sent before this receiver joined.
            Some(parity) if !history => due.max(parity.hold(now, self.round_trip.smoothed())),
            _ => due,
        };
        let Some(gap) = self.tracker.advance(to, skipped, now, due) else { return };
        if self.settings.stream {
            // A stream loses nothing on the way: the sender has skipped them.
            self.lose(now, gap.first, gap.count, LossReason::Skipped);
        } else {
            self.counters.gaps += 1;
            let (first, count, end) = (gap.first, gap.count, GapEnd::Open);
            self.log.add(GapRecord { noticed: now, after: 0, first, count, end });
            if let Some(gap) = self.tracker.last_gap() {
                gap.history = history;
            }
        }
    }

    /// Records that a missing datagram was received or rebuilt.
    fn recover(&mut self, sequence: u64, now: Nanos, end: GapEnd) {
        let (counters, log) = (&mut self.counters, &mut self.log);
        self.tracker.remove(sequence, 1, |gap, first, count| {
            let after = now.saturating_sub(gap.noticed);
            counters.count_recovery(after);
            log.add(GapRecord { noticed: gap.noticed, after, first, count, end });
        });
        // Datagrams dropped because the reorder buffer was full may fit now.
        let again = counters.overflowed > 0 && before(sequence, self.tracker.expected());
        self.nak.request_next(&mut self.tracker, again, now);
    }

    /// Records missing datagrams among `first..first + count` as lost.
    pub(super) fn lose(&mut self, now: Nanos, first: u64, count: u64, why: LossReason) {
        let Self { counters, log, last_lost, .. } = self;
        let mut any = false;
        self.tracker.remove(first, count, |gap, first, count| {
            let after = now.saturating_sub(gap.noticed);
            counters.lost_datagrams = counters.lost_datagrams.saturating_add(count);
            let last = first.wrapping_add(count - 1);
            // The latest loss decides whether a topic's end is certain.
            *last_lost = Some(last_lost.map_or(last, |known| later(known, last)));
            let end = GapEnd::Lost(why);
            log.add(GapRecord { noticed: gap.noticed, after, first, count, end });
            any = true;
        });
        if any {
            self.loss_reason = why;
        }
    }

    /// Counts a datagram as missing again: the reorder buffer had no room for it.
    #[cold]
    pub(super) fn reopen(&mut self, now: Nanos, sequence: u64) {
        self.counters.overflowed += 1;
        // Not at once: the buffer is still full.
        let due = now.saturating_add(self.round_trip.patience());
        self.tracker.reopen(sequence, sequence.wrapping_add(1), now, due);
    }

    /// Applies the header of a data or session frame: datagrams before it that were skipped for
    /// this receiver, and those that the sender no longer retains.
    pub(super) fn read_header(&mut self, now: Nanos, sequence: u64, header: &DataHeader) {
        // Nothing is missing, so nothing can be declared lost or skipped.
        if self.tracker.gaps().is_empty() {
            return;
        }
        let skipped = u64::from(header.skipped.get());
        self.tracker.remove(sequence.wrapping_sub(skipped), skipped, |_, _, _| {});
        let oldest = sequence.wrapping_sub(u64::from(header.retained.get()));
        let first = self.tracker.expected();
        let gone = distance(first, oldest);
        if gone > 0 {
            self.lose(now, first, gone, LossReason::Gone);
        }
    }

    /// Delivers everything that no longer waits for missing datagrams.
    pub(super) fn release(&mut self, out: &mut Vec<Delivery>) {
        self.topics.release((&self.tracker, self.loss_reason), &mut self.counters, out);
    }

    /// Ends the session if the sender has closed it and nothing more can come.
    pub(super) fn finish_if_drained(&mut self, now: Nanos, out: &mut Vec<Delivery>) {
        let Some(end) = self.liveness.end else { return };
        if self.phase != Phase::Live || !self.tracker.is_complete_to(end) {
            // A gap was opened again: the wait for a later Session frame starts over.
            self.liveness.drained_at = None;
            return;
        }
        let since = *self.liveness.drained_at.get_or_insert(now);
        let waits = now < since.saturating_add(self.liveness.timeout);
        // After a loss, a later Session frame may report how many messages it had.
        let is_uncertain = self.last_lost.is_some_and(|lost| self.topics.are_uncertain(lost));
        if waits && is_uncertain {
            return;
        }
        // A sender repeats them until it has heard from all receivers: this one is gone.
        let why = if is_uncertain { CloseReason::Died } else { CloseReason::Closed };
        self.finish(now, why, out);
    }

    /// Ends the session: delivers everything received, reports losses and leaves every topic.
    pub(super) fn finish(&mut self, now: Nanos, why: CloseReason, out: &mut Vec<Delivery>) {
        let reason = match why {
            CloseReason::Closed => self.loss_reason,
            CloseReason::Died => LossReason::GaveUp,
            // `Evicted` or `Refused`; a receiver gives no other reason.
            _ => LossReason::Evicted,
        };
        let (first, head) = (self.tracker.expected(), self.tracker.head());
        // Nothing more will come: what is missing now is lost.
        self.lose(now, first, distance(first, head), reason);
        let gaps = (&self.tracker, self.loss_reason);
        let slots = self.topics.end(gaps, &mut self.counters, out);
        out.extend(slots.map(|slot| match self.topics.get(slot).is_contradicted() {
            true => Delivery::Left { slot, why: CloseReason::Damaged },
            false => Delivery::Left { slot, why },
        }));
        (self.phase, self.liveness.close_reason) = (Phase::Closed, Some(why));
        self.joining.stop();
        if why == CloseReason::Closed {
            // A closed sender stays until nothing is missing here. What has come can be read
            // without it, so it need not wait for a slow application; a dead one waits for nothing.
            self.liveness.goodbye = Goodbye::Status;
        }
    }

    /// Time at which joining fails without an answer.
    pub(super) fn joining_until(&self) -> Nanos {
        // The longer one: a join must survive the outages that a stream survives.
        let patience = self.settings.recovery.max(self.settings.liveness);
        self.joining.since().saturating_add(patience)
    }

    /// Time at which a silent connection counts as broken; `None` without an open one.
    pub(super) fn stream_timeout_at(&self) -> Option<Nanos> {
        let liveness = &self.liveness;
        let is_open = self.settings.stream && !liveness.is_disconnected;
        (is_open && self.phase != Phase::Closed).then(|| liveness.connection_timeout_at())
    }
}
