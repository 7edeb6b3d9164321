//! One session, as one subscriber receives it.
//!
//! Data passes two layers: the `gap_tracker` knows which datagrams are missing, and per topic a
//! `reassembly` knows which fragment is next, so that a missing datagram delays only the topics in
//! it. `joining` performs the handshake, `parity` rebuilds missing datagrams and `nak` requests
//! them, `status` reports the application's progress, and `liveness` detects a dead sender.
//! `session` holds their common state. In order of arrival, `early_delivery` delivers what a gap
//! would delay.
//!
//! A receiver belongs to one thread, which passes it frames and the time, sends what it writes, and
//! hands its deliveries to the application.

mod block;
mod config;
mod control;
mod counters;
mod delivery;
mod early_delivery;
mod gap_tracker;
mod joining;
mod liveness;
mod nak;
mod output;
mod parity;
mod parity_window;
mod reassembly;
mod session;
mod slots;
mod status;
mod topic_requests;
mod topics;

pub use config::{DeliveryOrder, ReceiverSettings};
pub use counters::{GapEnd, GapRecord, ReceiverCounters};
pub use delivery::{Delivery, Phase};
pub use reassembly::TopicReassembly;

use crate::Nanos;
use crate::round_trip::RoundTrip;
use gap_tracker::Gap;
use lanecast_transport::{CloseReason, LossReason};
use lanecast_wire::net::{DataHeader, Frame, FrameHeader, Kind, flag};
use liveness::{Goodbye, LEAVES, Liveness};
use nak::Nak;
use session::Session;
use status::StatusReport;
use std::net::SocketAddr;

/// One session, as one subscriber receives it.
#[derive(Debug)]
pub struct Receiver {
    session: Session,
    source: SocketAddr,
    /// Deliveries were handed out that the application has not read yet.
    unread: bool,
    /// The sender's frames stay unread until the application has caught up.
    is_paused: bool,
}

impl Receiver {
    /// Starts to join `session` at `source`, for the topics `wanted`.
    pub fn new(
        settings: ReceiverSettings,
        session: u64,
        source: SocketAddr,
        wanted: &[&str],
        now: Nanos,
    ) -> Self {
        let session = Session::new(settings, session, wanted, now);
        Self { session, source, unread: false, is_paused: false }
    }

    /// Subscribes to another topic that the session was announced with; repetitions are harmless.
    pub fn subscribe(&mut self, name: &str) {
        let session = &mut self.session;
        // While a join or a resume runs, its next Join names the topic anyway.
        let is_live = session.phase == Phase::Live && !session.joining.is_resuming();
        if session.topics.subscribe(name) && is_live {
            session.joining.request_now(session.liveness.heard_at());
        }
    }

    /// Whether the topic was subscribed to.
    pub fn has_topic(&self, name: &str) -> bool {
        self.session.topics.has_name(name)
    }

    /// Address of the sender, which this receiver's frames go to.
    pub const fn source(&self) -> SocketAddr {
        self.source
    }

    /// Number of the session.
    pub const fn session(&self) -> u64 {
        self.session.number
    }

    /// Phase of the receiver.
    pub const fn phase(&self) -> Phase {
        self.session.phase
    }

    /// The topic in `slot`: topics have slots in the order of their subscription.
    ///
    /// # Panics
    /// If no delivery has named the slot.
    pub fn topic(&self, slot: u32) -> &TopicReassembly {
        self.session.topics.get(slot)
    }

    /// Counts so far.
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.session.counters
    }

    /// Estimated round trip to the sender.
    pub const fn round_trip(&self) -> &RoundTrip {
        &self.session.round_trip
    }

    /// Bytes kept for missing datagrams, for the rest of a batch, or for more fragments.
    pub const fn reorder_bytes(&self) -> usize {
        self.session.topics.reorder_bytes()
    }

    /// Number of datagrams missing now.
    pub fn missing(&self) -> u64 {
        self.session.tracker.gaps().iter().fold(0, |sum, gap| sum.saturating_add(gap.count))
    }

    /// Takes the oldest gap record: one is logged when a gap is noticed, and one or more when it is
    /// recovered or lost.
    pub fn next_gap_record(&mut self) -> Option<GapRecord> {
        self.session.log.take()
    }

    /// Whether so many gap records wait that the next ones may replace them.
    pub fn has_gap_backlog(&self) -> bool {
        self.session.log.is_filling()
    }

    /// Handles a frame whose body is at offset `at` in the caller's buffer.
    #[inline]
    pub fn on_frame(&mut self, now: Nanos, frame: &Frame<'_>, at: usize, out: &mut Vec<Delivery>) {
        // Late datagrams of a closed session are normal: they do not count as malformed.
        if frame.session != self.session.number || self.session.phase == Phase::Closed {
            return;
        }
        let before = out.len();
        if frame.kind == Kind::Data {
            self.on_data(now, frame, at, out);
        } else {
            control::on_control(&mut self.session, now, frame, out);
        }
        self.consume_undelivered(out.len() > before);
    }

    /// Counts progress as read if nothing is unread: frames without deliveries, like a gap without
    /// the subscribed topics, need no reading, and the sender may be waiting for it.
    #[inline]
    fn consume_undelivered(&mut self, delivered: bool) {
        self.unread |= delivered;
        if !self.unread {
            self.consumed_all();
        }
    }

    #[inline]
    fn on_data(&mut self, now: Nanos, frame: &Frame<'_>, at: usize, out: &mut Vec<Delivery>) {
        let session = &mut self.session;
        let Some((header, bytes)) = frame.data() else {
            session.counters.malformed += 1;
            return;
        };
        // Without a Welcome the start is unknown: what is missed now is requested later.
        if session.phase != Phase::Live {
            return;
        }
        let at = at + size_of::<DataHeader>();
        // Fast path: the next datagram, and none is missing.
        if session.tracker.take_next(frame.sequence) {
            session.liveness.on_heard(now);
            session.counters.datagrams += 1;
            if let Some(parity) = &mut session.parity {
                parity.retain(frame.sequence, bytes);
            }
            if !session.take_blocks(frame.sequence, bytes, at, out) {
                session.reopen(now, frame.sequence);
            }
            // Only then can this datagram be the last one.
            if session.liveness.is_closing() {
                session.finish_if_drained(now, out);
            }
        } else {
            let is_repair = frame.flags & flag::AGAIN != 0;
            let end = if is_repair { GapEnd::Repaired } else { GapEnd::Late };
            session.take_other_data(now, frame, header, (bytes, at), end, out);
            // It may be what the parity of its block still lacked.
            if session.parity.as_ref().is_some_and(|parity| parity.is_waiting()) {
                parity::rebuild(session, now, out);
            }
        }
    }

    /// Does everything that is due.
    pub fn on_time(&mut self, now: Nanos, out: &mut Vec<Delivery>) {
        // Time counts again when frames are read.
        if self.is_paused {
            return;
        }
        let session = &mut self.session;
        // A process that did not run has not heard the sender: its deadlines move along.
        let absence = session.liveness.poll(now);
        if absence > 0 {
            session.tracker.extend_deadlines(absence, now);
        }
        let before = out.len();
        match session.phase {
            Phase::Joining => {
                // No answer at all: the sender is gone, or unreachable from here.
                if now >= session.joining_until() {
                    session.phase = Phase::Closed;
                    session.liveness.close_reason = Some(CloseReason::Died);
                }
            }
            Phase::Live => self.on_live_time(now, out),
            Phase::Closed => {}
        }
        self.consume_undelivered(out.len() > before);
    }

    /// The caller leaves the sender's frames unread from now on, because the application is too far
    /// behind, or reads them again. Meanwhile neither the sender's silence nor missing datagrams
    /// count, and only statuses are written: they keep this receiver alive at the sender.
    pub fn set_paused(&mut self, is_paused: bool, now: Nanos) {
        let session = &mut self.session;
        let absence = match self.is_paused {
            true => session.liveness.excuse(now),
            false if is_paused => session.liveness.poll(now),
            false => 0,
        };
        if absence > 0 {
            session.tracker.extend_deadlines(absence, now);
            session.joining.extend_deadline(absence, now);
        }
        self.is_paused = is_paused;
    }

    fn on_live_time(&mut self, now: Nanos, out: &mut Vec<Delivery>) {
        let session = &mut self.session;
        session.joining.retry_absent(&mut session.topics, now);
        let times = session.settings.gap_times();
        let mut any = false;
        while let Some(Gap { first, count, .. }) = session.tracker.expired(now, times) {
            session.lose(now, first, count, LossReason::GaveUp);
            any = true;
        }
        // Blocks behind the lost datagrams wait for nothing any more.
        if any {
            session.release(out);
        }
        if session.liveness.is_dead(now) {
            session.finish(now, CloseReason::Died, out);
        } else {
            session.finish_if_drained(now, out);
        }
    }

    /// Latest time of the next call of [`on_time`](Self::on_time) and
    /// [`next_transmit`](Self::next_transmit).
    pub fn next_deadline(&self) -> Option<Nanos> {
        let session = &self.session;
        // Without a connection, frames that are due cannot be sent.
        let connected = |due: Option<Nanos>| due.filter(|_| !session.liveness.is_disconnected);
        let joining = connected(session.joining.next_due());
        let silent = session.stream_timeout_at();
        match session.phase {
            Phase::Joining if self.is_paused => None,
            Phase::Live if self.is_paused => {
                let status = connected(Some(session.status.next_due()));
                status.filter(|_| !session.joining.is_resuming())
            }
            Phase::Joining => {
                joining.into_iter().chain(silent).chain([session.joining_until()]).min()
            }
            Phase::Live => {
                let nak = connected(Nak::next_due(&session.tracker));
                let expiry = session.tracker.next_expiry(session.settings.gap_times());
                let status = connected(Some(session.status.next_due()));
                let status = status.filter(|_| !session.joining.is_resuming());
                let times = [joining, nak, expiry, status, silent, session.liveness.next_due()];
                times.into_iter().flatten().min()
            }
            Phase::Closed => connected((!session.liveness.has_left()).then_some(0)),
        }
    }

    /// Writes the next frame to the sender into `buffer`; returns its length.
    pub fn next_transmit(&mut self, now: Nanos, buffer: &mut [u8]) -> Option<usize> {
        let session = &mut self.session;
        // Frames for a broken connection would be lost: they are written to the next one.
        if session.liveness.is_disconnected || buffer.len() < size_of::<FrameHeader>() {
            return None;
        }
        let ids = (session.number, session.settings.receiver);
        let trip = &session.round_trip;
        let report = StatusReport {
            lost: session.counters.lost_datagrams,
            topics: session.topics.begun(),
            round_trip: if trip.is_known() { trip.smoothed().max(1) } else { 0 },
        };
        let Session { liveness, status, tracker, joining, topics, settings, .. } = session;
        if session.phase == Phase::Closed {
            return liveness.write_goodbye(status, tracker, report, ids, buffer);
        }
        let is_live = session.phase == Phase::Live;
        // Answers to a Join or a NAK would stay unread.
        if self.is_paused {
            let writes = is_live && !joining.is_resuming();
            return writes.then(|| status.write(tracker, report, now, ids, buffer)).flatten();
        }
        // Without a begin the tracker's position means nothing.
        let has_begun = is_live || joining.is_resuming();
        let position = (session.number, has_begun.then(|| tracker.expected()));
        let join = joining.write(settings, topics, position, now, buffer);
        // A Join goes first: a sender that does not know this receiver answers all else with Eject.
        if join.is_some() || !is_live {
            return join;
        }
        let takes_parity = session.parity.is_some();
        let trip = &session.round_trip;
        let nak = session.nak.write((tracker, takes_parity), trip, now, ids, buffer);
        if nak.is_some() {
            session.counters.naks += 1;
            // The wait for the repair depends on the round trip, and while datagrams are missing
            // no other status may be due that would measure it.
            status.measure_if_old(now);
            return nak;
        }
        // Until the sender has answered where the stream resumes, its state may be outdated.
        if joining.is_resuming() {
            return None;
        }
        status.write(tracker, report, now, ids, buffer)
    }

    /// Position of the deliveries so far, for [`consumed_to`](Self::consumed_to).
    #[inline]
    pub fn delivered_to(&self) -> u64 {
        self.session.tracker.expected()
    }

    /// The application has read all deliveries up to `position`, taken from
    /// [`delivered_to`](Self::delivered_to).
    #[inline]
    pub fn consumed_to(&mut self, position: u64) {
        if self.session.phase != Phase::Joining {
            self.session.status.consumed_to(position);
        }
    }

    /// The application has read all deliveries so far.
    #[inline]
    pub fn consumed_all(&mut self) {
        self.unread = false;
        if self.session.phase != Phase::Joining {
            self.session.status.consumed_all(&self.session.tracker);
        }
    }

    /// Reason of the end, once the session is over; `None` if this side has left.
    pub const fn close_reason(&self) -> Option<CloseReason> {
        self.session.liveness.close_reason
    }

    /// The connection is broken, or could not be made again.
    pub fn disconnected(&mut self) {
        self.session.liveness.is_disconnected = true;
        if self.session.phase == Phase::Closed {
            // No Leave can be sent any more: the sender sees the end of the connection.
            self.session.liveness.goodbye = Goodbye::None;
        }
    }

    /// Sets whether the sender's host refused the last connection: the sender then counts as dead
    /// after the liveness, without the time that a network failure gets.
    pub fn set_connection_refused(&mut self, is_refused: bool) {
        self.session.liveness.is_refused = is_refused;
    }

    /// A new connection is there: resumes where the old one broke off.
    pub fn reconnected(&mut self, now: Nanos) {
        let session = &mut self.session;
        session.liveness.is_disconnected = false;
        session.liveness.is_refused = false;
        session.liveness.bytes_at = session.liveness.bytes_at.max(now);
        match session.phase {
            Phase::Joining if !session.joining.is_resuming() => session.joining.start(now),
            Phase::Joining | Phase::Live => session.joining.resume_again(now),
            Phase::Closed => {}
        }
    }

    /// The connection has brought bytes, perhaps not a whole frame.
    #[inline]
    pub fn bytes_arrived(&mut self, now: Nanos) {
        self.session.liveness.bytes_at = self.session.liveness.bytes_at.max(now);
    }

    /// Time at which a silent connection counts as broken: its owner then closes it and connects
    /// again. `None` without an open connection.
    pub fn stream_timeout_at(&self) -> Option<Nanos> {
        self.session.stream_timeout_at()
    }

    /// Silence after which the sender counts as dead.
    pub const fn liveness(&self) -> Nanos {
        self.session.liveness.timeout
    }

    /// Whether the session can be revived: it was joined, and ended because the sender was silent.
    pub fn can_be_revived(&self) -> bool {
        // Only silence can heal: a closed session is over, an evicted receiver is not wanted.
        let ended = self.session.liveness.close_reason;
        ended == Some(CloseReason::Died) && self.session.topics.have_left()
    }

    /// Resumes the session after its sender was announced again. Topics begin with another
    /// `Joined`, followed by the losses of the meantime. False, without an effect, if the session
    /// [cannot be revived](Self::can_be_revived).
    pub fn revive(&mut self, now: Nanos) -> bool {
        if !self.can_be_revived() {
            return false;
        }
        let session = &mut self.session;
        session.liveness = Liveness::new(&session.settings, now);
        (session.phase, session.last_lost) = (Phase::Joining, None);
        session.joining.resume_again(now);
        true
    }

    /// Whether the session is over and no frame is left to send.
    pub fn is_done(&self) -> bool {
        self.session.phase == Phase::Closed && self.session.liveness.has_left()
    }

    /// Leaves the session at once, without reading the rest; Leave frames follow.
    pub fn leave(&mut self) {
        let session = &mut self.session;
        if session.phase != Phase::Closed || !session.liveness.has_left() {
            session.phase = Phase::Closed;
            session.liveness.goodbye = Goodbye::Leave(LEAVES);
        }
    }
}

#[cfg(test)]
mod tests;
