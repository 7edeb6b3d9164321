//! One session, as one subscriber receives it.
//!
//! Two layers: `gap_tracker` knows which datagrams are missing, and `topics` which piece is next on
//! each topic. So a missing datagram delays only the topics whose next piece is in it.

mod block;
mod control;
mod counters;
mod delivery;
mod gap_tracker;
mod gaps;
mod joining;
mod life;
mod nak;
mod status;
mod topic;
mod topics;

pub use counters::{GapEnd, GapRecord, ReceiverCounters};
pub use delivery::{Delivery, Phase};
pub use topic::Topic;

use crate::round_trip::RoundTrip;
use crate::{Nanos, SECOND};
use counters::GapLog;
use gap_tracker::{Gap, GapTracker};
use joining::Joining;
use lanecast_transport::{CloseReason, LossReason};
use lanecast_wire::net::{Blocks, DataHeader, Frame, FrameHeader, Kind};
use life::Life;
use nak::Nak;
use status::{Status, Told};
use std::net::SocketAddr;
use topics::{Origin, Topics};

/// How a receiver behaves.
#[derive(Clone, Debug)]
pub struct ReceiverSettings {
    /// Who it is: random, new for each session.
    pub receiver: u64,
    /// How many datagrams it can take without having read any.
    pub window_datagrams: u32,
    /// How many bytes may wait for what comes before them.
    pub reorder_bytes_max: usize,
    /// How long a missing datagram is asked for.
    pub recovery: Nanos,
    /// How long the sender may be silent, unless it says so itself.
    pub liveness: Nanos,
    /// How long a gap may be mere reordering before it is asked for.
    pub reorder: Nanos,
    /// The group that it belongs to for flow control, or 0.
    pub tag: u32,
    /// Begins with the oldest that the sender keeps.
    pub late_join: bool,
    /// The frames come by a stream: nothing is asked for again.
    pub stream: bool,
    /// The longest message that it takes, in bytes.
    pub longest_message_max: usize,
    /// The session's datagrams go to a group.
    pub multicast: bool,
    /// Makes its chance repeatable.
    pub seed: u64,
}

impl Default for ReceiverSettings {
    fn default() -> Self {
        Self {
            receiver: 1,
            window_datagrams: 4_096,
            reorder_bytes_max: 8 << 20,
            recovery: 10 * SECOND,
            liveness: SECOND,
            reorder: 0,
            tag: 0,
            late_join: false,
            stream: false,
            longest_message_max: 64 << 20,
            multicast: false,
            seed: 1,
        }
    }
}

/// One session, as one subscriber receives it.
#[derive(Debug)]
pub struct Receiver {
    settings: ReceiverSettings,
    session: u64,
    source: SocketAddr,
    phase: Phase,
    tracker: GapTracker,
    topics: Topics,
    joining: Joining,
    nak: Nak,
    status: Status,
    life: Life,
    trip: RoundTrip,
    counters: ReceiverCounters,
    log: GapLog,
    /// The last datagram that was given up, and why.
    doubt: Option<u64>,
    why: LossReason,
    /// Something was delivered that the application is not done with.
    unread: bool,
}

impl Receiver {
    /// Begins to join `session`, which comes from `source`, for the topics `wanted`.
    pub fn new(
        settings: ReceiverSettings,
        session: u64,
        source: SocketAddr,
        wanted: &[&str],
        now: Nanos,
    ) -> Self {
        let every = status::interval(settings.liveness);
        Self {
            session,
            source,
            phase: Phase::Joining,
            tracker: GapTracker::new(),
            topics: Topics::new(&settings, wanted),
            joining: Joining::new(settings.seed, now),
            nak: Nak::new(settings.seed ^ settings.receiver, settings.multicast),
            status: Status::new(settings.window_datagrams, settings.tag, every),
            life: Life::of(&settings, now),
            trip: RoundTrip::new(),
            counters: ReceiverCounters::default(),
            log: GapLog::default(),
            doubt: None,
            why: LossReason::GaveUp,
            unread: false,
            settings,
        }
    }

    /// Wants another topic, which the session is said to have; may be told again.
    pub fn subscribe(&mut self, name: &str) {
        if self.topics.subscribe(name) && self.phase == Phase::Live && !self.joining.is_resuming() {
            self.joining.ask(self.life.heard());
        }
    }

    /// Where the session comes from, and this receiver's frames go to.
    pub const fn source(&self) -> SocketAddr {
        self.source
    }

    /// The session.
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// How far the receiver has come.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The topic in `slot`: topics have slots in the order in which they were wanted.
    ///
    /// # Panics
    /// If no delivery has named the slot.
    pub fn topic(&self, slot: u32) -> &Topic {
        self.topics.get(slot)
    }

    /// What the receiver has counted.
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// How long a frame takes to the source and back.
    pub const fn round_trip(&self) -> &RoundTrip {
        &self.trip
    }

    /// How many bytes wait for what comes before them, for the rest of their message or for the
    /// end of their batch.
    pub const fn reorder_bytes(&self) -> usize {
        self.topics.reorder_bytes()
    }

    /// How many datagrams are missing now.
    pub fn missing(&self) -> u64 {
        self.tracker.gaps().iter().map(|gap| gap.count).sum()
    }

    /// The oldest record of a gap that has not been asked for: one when it is noticed, and one or
    /// more when what is missing comes or is given up.
    pub fn next_gap_record(&mut self) -> Option<GapRecord> {
        self.log.take()
    }

    /// Takes a frame whose body is at `at` in the caller's buffer.
    #[inline]
    pub fn on_frame(&mut self, now: Nanos, frame: &Frame<'_>, at: usize, out: &mut Vec<Delivery>) {
        if frame.session != self.session || self.phase == Phase::Closed {
            return;
        }
        let before = out.len();
        if frame.kind == Kind::Data {
            self.on_data(now, frame, at, out);
        } else {
            self.on_control(now, frame, out);
        }
        self.pass_unread(out.len() > before);
    }

    /// What brought nothing for the application, like a gap that may have held none of its
    /// messages, needs no reading: the sender may wait for this mark.
    #[inline]
    fn pass_unread(&mut self, delivered: bool) {
        self.unread |= delivered;
        if !self.unread {
            self.consumed_all();
        }
    }

    #[inline]
    fn on_data(&mut self, now: Nanos, frame: &Frame<'_>, at: usize, out: &mut Vec<Delivery>) {
        let Some((header, bytes)) = frame.data() else {
            self.counters.malformed += 1;
            return;
        };
        if self.phase != Phase::Live {
            return;
        }
        if self.tracker.take_next(frame.sequence) {
            self.life.hear(now);
            self.counters.datagrams += 1;
            if !self.take_blocks(frame.sequence, bytes, at + size_of::<DataHeader>(), out) {
                self.drop_again(now, frame.sequence);
            }
            if self.life.is_closing() {
                self.finish_if_drained(now, out);
            }
        } else {
            self.on_other_data(now, frame, header, (bytes, at + size_of::<DataHeader>()), out);
        }
    }

    /// Delivers the blocks of a datagram; false if something had to be dropped for want of room.
    #[inline]
    fn take_blocks(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        at: usize,
        out: &mut Vec<Delivery>,
    ) -> bool {
        let mut blocks = Blocks::new(bytes);
        let mut room = true;
        while let Some((header, items)) = blocks.next() {
            let offset = bytes.len() - blocks.left() - items.rest().len();
            let origin = Origin { sequence, at: (at + offset) as u32 };
            let view = (&self.tracker, self.why);
            room &= self.topics.take((header, items), origin, view, &mut self.counters, out);
        }
        room
    }

    /// Takes note of the time.
    pub fn on_time(&mut self, now: Nanos, out: &mut Vec<Delivery>) {
        let absence = self.life.look(now);
        if absence > 0 {
            self.tracker.excuse(absence, now);
        }
        let before = out.len();
        match self.phase {
            Phase::Joining => self.give_up_joining(now),
            Phase::Live => self.on_live_time(now, out),
            Phase::Closed => {}
        }
        self.pass_unread(out.len() > before);
    }

    fn on_live_time(&mut self, now: Nanos, out: &mut Vec<Delivery>) {
        if self.joining.wakes(now) {
            self.topics.seek();
        }
        let mut any = false;
        while let Some(Gap { first, count, .. }) = self.tracker.expired(now, self.settings.recovery)
        {
            self.give_up(now, first, count, LossReason::GaveUp);
            any = true;
        }
        if any {
            self.topics.release((&self.tracker, self.why), &mut self.counters, out);
        }
        if self.life.is_over(now) {
            self.finish(now, CloseReason::Died, out);
        } else {
            self.finish_if_drained(now, out);
        }
    }

    /// When `on_time` and `next_transmit` have something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let connected = |due: Option<Nanos>| due.filter(|_| !self.life.is_cut());
        let joining = connected(self.joining.next_due());
        match self.phase {
            Phase::Joining => {
                let silent = self.stream_timeout_at();
                joining.into_iter().chain(silent).chain([self.joining_until()]).min()
            }
            Phase::Live => {
                let nak = Nak::next_due(&self.tracker);
                let expiry = self.tracker.next_expiry(self.settings.recovery);
                let told = connected(Some(self.status.next_due()));
                let told = told.filter(|_| !self.joining.is_resuming());
                let silent = self.stream_timeout_at();
                let times = [joining, connected(nak), expiry, told, silent, self.life.next_due()];
                times.into_iter().flatten().min()
            }
            Phase::Closed => connected(self.life.has_to_leave().then_some(0)),
        }
    }

    /// Writes the next frame for the source into `buffer`; gives its length.
    pub fn next_transmit(&mut self, now: Nanos, buffer: &mut [u8]) -> Option<usize> {
        if self.life.is_cut() || buffer.len() < size_of::<FrameHeader>() {
            return None;
        }
        let ids = (self.session, self.settings.receiver);
        let told = Told {
            lost: self.counters.lost_datagrams,
            topics: self.topics.numbered(),
            round_trip: if self.trip.is_known() { self.trip.smoothed().max(1) } else { 0 },
        };
        if self.phase == Phase::Closed {
            return self.life.write_leave(&mut self.status, &self.tracker, told, ids, buffer);
        }
        let live = self.phase == Phase::Live;
        let begun = live || self.joining.is_resuming();
        let place = (self.session, begun.then(|| self.tracker.expected()));
        let join = self.joining.write(&self.settings, &self.topics, place, now, buffer);
        if join.is_some() || !live {
            return join;
        }
        let nak = self.nak.write(&mut self.tracker, &self.trip, now, ids, buffer);
        if nak.is_some() {
            self.counters.naks += 1;
            // How long to wait for the answer should be known, and while something is missing
            // nothing else may be told.
            self.status.measure_again(now);
            return nak;
        }
        // Until the sender has said where it goes on, what it thinks of this receiver may be old.
        if self.joining.is_resuming() {
            return None;
        }
        self.status.write(&self.tracker, told, now, ids, buffer)
    }

    /// How far the deliveries so far go.
    #[inline]
    pub fn delivered_to(&self) -> u64 {
        self.tracker.expected()
    }

    /// The application is done with every delivery until the receiver had
    /// [reached](Self::reached) `mark`, but not with those since.
    #[inline]
    pub fn consumed_to(&mut self, mark: u64) {
        if self.phase != Phase::Joining {
            self.status.read_to(mark);
        }
    }

    /// The application is done with every delivery so far.
    #[inline]
    pub fn consumed_all(&mut self) {
        self.unread = false;
        if self.phase != Phase::Joining {
            self.status.read_all(&self.tracker);
            self.life.read_all();
        }
    }
}

#[cfg(test)]
mod tests;
