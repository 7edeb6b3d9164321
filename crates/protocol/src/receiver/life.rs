//! Whether the sender lives, and how a session ends.

use super::gap_tracker::GapTracker;
use super::status::{Status, Told};
use super::{CloseReason, Delivery, LossReason, Phase, Receiver, ReceiverSettings, nak};
use crate::{MILLISECOND, Nanos};
use lanecast_wire::net::{FrameWriter, Kind, LeaveBody};

/// What is left to say when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    Nothing,
    /// Once the application has read everything: the status, then Leave.
    WhenRead,
    Status,
    /// So many Leaves: the sender answers none, and waits long for whom it does not hear.
    Leave(u8),
}

/// How often Leave is said where it may be lost.
const LEAVES: u8 = 3;

/// The time is looked at no more often than this, however short a liveness the sender tells.
const LOOK_MIN: Nanos = MILLISECOND;

/// The life of a session.
#[derive(Debug)]
pub(super) struct Life {
    heard: Nanos,
    /// When bytes last came by the connection, or it was made.
    stirred: Nanos,
    /// Last look at the time.
    looked: Nanos,
    liveness: Nanos,
    /// Silence of a stream lasts at least this long before its sender counts as dead: time for
    /// further connections. 0 for datagrams.
    reconnection: Nanos,
    /// The stream is broken.
    is_cut: bool,
    /// The sender's host is there, and refuses another connection.
    is_refused: bool,
    /// The sequence after the last: the sender has closed.
    pub(super) end: Option<u64>,
    /// Since when nothing is missing any more.
    drained: Option<Nanos>,
    /// The next gap is history from before this receiver joined.
    pub(super) history: bool,
    farewell: Farewell,
    over: Option<CloseReason>,
}

impl Life {
    pub(super) fn of(settings: &ReceiverSettings, now: Nanos) -> Self {
        let reconnection = if settings.stream { settings.recovery } else { 0 };
        Self::new(settings.liveness, reconnection, now)
    }

    const fn new(liveness: Nanos, reconnection: Nanos, now: Nanos) -> Self {
        Self {
            heard: now,
            stirred: now,
            looked: now,
            liveness,
            reconnection,
            is_cut: false,
            is_refused: false,
            end: None,
            drained: None,
            history: false,
            farewell: Farewell::Nothing,
            over: None,
        }
    }

    #[inline]
    pub(super) fn hear(&mut self, now: Nanos) {
        self.heard = self.heard.max(now);
    }

    /// When a connection that stays silent counts as broken: half the liveness leaves the other
    /// half for another one, and is longer than any pause between two signs of life.
    pub(super) fn silent_at(&self) -> Nanos {
        self.heard.max(self.stirred).saturating_add(self.liveness / 2)
    }

    /// Somebody looks at the time. If nobody has for longer than can be, say because the process
    /// stood still, the sender is not to blame for the silence; gives how long that was.
    pub(super) fn look(&mut self, now: Nanos) -> Nanos {
        let unseen = now.saturating_sub(self.looked);
        self.looked = self.looked.max(now);
        let absence = unseen.saturating_sub(self.liveness / 2);
        self.heard = self.heard.saturating_add(absence).min(self.heard.max(now));
        self.stirred = self.stirred.saturating_add(absence).min(self.stirred.max(now));
        absence
    }

    pub(super) const fn heard(&self) -> Nanos {
        self.heard
    }

    /// How long silence means life.
    pub(super) fn set_liveness(&mut self, liveness: Nanos) {
        self.liveness = liveness.max(1);
    }

    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    #[inline]
    pub(super) const fn is_closing(&self) -> bool {
        self.end.is_some()
    }

    /// When the silence has lasted too long, or the time has to be looked at before: a pause
    /// between two looks that is longer than half the liveness counts as this side's absence.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        let look = self.looked.saturating_add((self.liveness / 4).max(LOOK_MIN));
        let silent = self.over_at().min(look);
        Some(self.drained.map_or(silent, |at| silent.min(at.saturating_add(self.liveness))))
    }

    /// A network that is cut gets time to heal; a host that refuses is reached, and its process
    /// is gone.
    fn over_at(&self) -> Nanos {
        let reconnection = if self.is_refused { 0 } else { self.reconnection };
        self.heard.saturating_add(self.liveness.max(reconnection))
    }

    pub(super) fn is_over(&self, now: Nanos) -> bool {
        now >= self.over_at()
    }

    pub(super) fn read_all(&mut self) {
        if self.farewell == Farewell::WhenRead {
            self.farewell = Farewell::Status;
        }
    }

    /// Whether nothing is left to say, now or later.
    pub(super) fn has_left(&self) -> bool {
        self.farewell == Farewell::Nothing
    }

    pub(super) fn has_to_leave(&self) -> bool {
        matches!(self.farewell, Farewell::Status | Farewell::Leave(_))
    }

    /// Writes what is left to say.
    pub(super) fn write_leave(
        &mut self,
        status: &mut Status,
        tracker: &GapTracker,
        told: Told,
        ids: (u64, u64),
        buffer: &mut [u8],
    ) -> Option<usize> {
        match self.farewell {
            Farewell::Nothing | Farewell::WhenRead => None,
            Farewell::Status => {
                self.farewell = Farewell::Leave(LEAVES);
                status.hurry();
                status.write(tracker, told, self.heard, ids, buffer)
            }
            Farewell::Leave(left) => {
                let rest = Farewell::Leave(left - 1);
                self.farewell = if left > 1 { rest } else { Farewell::Nothing };
                let mut writer = FrameWriter::new(buffer, Kind::Leave, 0, ids.0, 0);
                writer.add(&LeaveBody { receiver: ids.1.into() }).then(|| writer.finish())
            }
        }
    }
}

impl Receiver {
    /// Why it is over, once it is; `None` after this side's own leaving.
    pub const fn close_reason(&self) -> Option<CloseReason> {
        self.life.over
    }

    /// The stream is broken, or could not be made again.
    pub fn disconnected(&mut self) {
        self.life.is_cut = true;
        if self.phase == Phase::Closed {
            self.life.farewell = Farewell::Nothing;
        }
    }

    /// Whether the sender's host refused the last try of another stream: then the sender counts as
    /// dead after the liveness, without the time that a cut network gets.
    pub fn set_connection_refused(&mut self, is_refused: bool) {
        self.life.is_refused = is_refused;
    }

    /// The stream is there again: goes on where it broke off.
    pub fn reconnected(&mut self, now: Nanos) {
        self.life.is_cut = false;
        self.life.is_refused = false;
        self.life.stirred = self.life.stirred.max(now);
        match self.phase {
            Phase::Joining if !self.joining.is_resuming() => self.joining.start(now),
            Phase::Joining | Phase::Live => self.joining.resume_anew(now),
            Phase::Closed => {}
        }
    }

    /// Bytes have come by the stream, perhaps not enough for a frame.
    #[inline]
    pub fn bytes_arrived(&mut self, now: Nanos) {
        self.life.stirred = self.life.stirred.max(now);
    }

    /// When the stream counts as broken unless bytes come before: its owner breaks it off then,
    /// and connects again. `None`: there is none, or nothing is to come by it.
    pub fn stream_timeout_at(&self) -> Option<Nanos> {
        let is_awaited = self.settings.stream && !self.life.is_cut && self.phase != Phase::Closed;
        is_awaited.then(|| self.life.silent_at())
    }

    /// How long the sender may be silent, as far as is known.
    pub const fn liveness(&self) -> Nanos {
        self.life.liveness
    }

    /// Whether the session can be gone on with: it was joined, and ended because the sender was
    /// silent.
    pub fn can_be_revived(&self) -> bool {
        self.life.over == Some(CloseReason::Died) && self.topics.have_left()
    }

    /// The sender is heard of after all: asks it to go on where this receiver is. Topics begin
    /// anew with a `Joined`, and what was missed meanwhile is told as lost behind it. False, and
    /// nothing happens, if the session [cannot be gone on with](Self::can_be_revived).
    pub fn revive(&mut self, now: Nanos) -> bool {
        if !self.can_be_revived() {
            return false;
        }
        self.life = Life::of(&self.settings, now);
        (self.phase, self.doubt) = (Phase::Joining, None);
        self.joining.resume_anew(now);
        true
    }

    /// Whether it is over, and nothing is left to say: it can be dropped.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Closed && self.life.has_left()
    }

    /// This side wants no more, not even what it has not read yet; one Leave frame follows.
    pub fn leave(&mut self) {
        if self.phase != Phase::Closed || !self.life.has_left() {
            self.phase = Phase::Closed;
            self.life.farewell = Farewell::Leave(LEAVES);
        }
    }

    /// Until when somebody has to answer.
    pub(super) fn joining_until(&self) -> Nanos {
        let patience = self.settings.recovery.max(self.settings.liveness);
        self.joining.since().saturating_add(patience)
    }

    /// Nobody has answered for as long as anything is asked for.
    pub(super) fn give_up_joining(&mut self, now: Nanos) {
        if now >= self.joining_until() {
            (self.phase, self.life.over) = (Phase::Closed, Some(CloseReason::Died));
        }
    }

    /// Ends the session if the sender has closed it and all that can come has come.
    pub(super) fn finish_if_drained(&mut self, now: Nanos, out: &mut Vec<Delivery>) {
        let Some(end) = self.life.end else { return };
        if self.phase != Phase::Live || !self.tracker.complete_to(end) {
            self.life.drained = None;
            return;
        }
        let since = *self.life.drained.get_or_insert(now);
        let waits = now < since.saturating_add(self.life.liveness);
        if waits && self.doubt.is_some_and(|sequence| self.topics.are_in_doubt(sequence)) {
            return; // A later session frame may tell how many are lost.
        }
        self.finish(now, CloseReason::Closed, out);
    }

    /// Ends the session: delivers what there is, tells what is lost, and leaves every topic.
    pub(super) fn finish(&mut self, now: Nanos, why: CloseReason, out: &mut Vec<Delivery>) {
        let reason = match why {
            CloseReason::Closed => self.why,
            CloseReason::Died => LossReason::GaveUp,
            // `Evicted` or `Refused`; a receiver gives no other reason.
            _ => LossReason::Evicted,
        };
        let (first, head) = (self.tracker.expected(), self.tracker.head());
        self.give_up(now, first, nak::distance(first, head), reason);
        let view = (&self.tracker, self.why);
        let slots = self.topics.end(view, self.doubt, &mut self.counters, out);
        out.extend(slots.map(|slot| Delivery::Left { slot, why }));
        (self.phase, self.life.over) = (Phase::Closed, Some(why));
        self.joining.stop();
        if why == CloseReason::Closed {
            self.life.farewell = Farewell::WhenRead;
        }
    }
}
