//! Heartbeats: Session frames that report how far the session and its topics are, probe receivers
//! and announce the end.

use super::config::Distribution;
use super::keep_warm::KeepWarm;
use super::receiver_state::{Peer, ReceiverState};
use super::scheduler::Scheduler;
use super::session::Session;
use crate::Nanos;
use crate::round_trip::RoundTrip;
use crate::sequence::before;
use lanecast_wire::net::{Kind, SessionBody, TopicHead, flag};

/// Minimum number of announcements of the end: each may be lost.
const CLOSE_ANNOUNCEMENTS: u32 = 4;

/// State of the heartbeats.
#[derive(Debug)]
pub(super) struct Heartbeats {
    /// Time of the last request for a status.
    probed_at: Option<Nanos>,
    /// Number of rounds that announced the end.
    close_announcements: u32,
    /// Topic from which the next Session frame to the group reports positions.
    next_report: usize,
    keep_warm: KeepWarm,
}

impl Heartbeats {
    pub(super) const fn new(keep_warm: Option<Nanos>) -> Self {
        let keep_warm = KeepWarm::new(keep_warm);
        Self { probed_at: None, close_announcements: 0, next_report: 0, keep_warm }
    }

    /// Sends no frames that keep the way warm until this is taken back.
    pub(super) const fn suspend_warming(&mut self, is_suspended: bool) {
        self.keep_warm.is_suspended = is_suspended;
    }

    /// Sends the heartbeats that are due; frames that keep the way warm within the data rate.
    pub(super) fn send_due(
        &mut self,
        session: &mut Session,
        scheduler: &mut Scheduler,
        now: Nanos,
    ) {
        if self.is_over(session) {
            return;
        }
        let longest = session.settings.heartbeat;
        let liveness = session.settings.liveness;
        let quiet = |known: &ReceiverState| now.saturating_sub(known.heard_at) > liveness / 2;
        // A probe asks for a Status at once: for progress, a round trip, or a sign of life.
        let probing = session.closed
            || session.is_blocked()
            || !session.has_round_trip()
            || session.receivers.iter().any(quiet);
        let mut any = false;
        if session.is_multicast() {
            if session.group_heartbeat.is_due(now, longest) {
                self.send_to_group(session, now, probing);
                any = true;
            }
        } else {
            for at in 0..session.receivers.len() {
                if session.receivers[at].heartbeat.is_due(now, longest) {
                    self.send_to_receiver(session, now, at, probing);
                    any = true;
                }
            }
        }
        // One is left out rather than that data waits for it.
        if self.keep_warm.is_due(session, now) && scheduler.has_rate_to_spare(now) {
            scheduler.take(self.send_warming(session));
        }
        // Counted in rounds: each may be lost as a whole.
        if session.closed && any {
            self.close_announcements = self.close_announcements.saturating_add(1);
        }
    }

    /// Time of the next heartbeat.
    pub(super) fn due(&self, session: &Session) -> Option<Nanos> {
        let due = if session.is_multicast() {
            Some(session.group_heartbeat.due)
        } else {
            session.receivers.iter().map(|known| known.heartbeat.due).min()
        };
        let due = due.filter(|_| !self.is_over(session));
        due.into_iter().chain(self.keep_warm.due(session)).min()
    }

    /// Sends a Session frame that says nothing new, as short as there are; returns its length.
    fn send_warming(&mut self, session: &mut Session) -> usize {
        let (to, sequence, skipped) = match session.settings.distribution {
            Distribution::Multicast(group) => {
                if session.control.front().is_some() {
                    return 0;
                }
                (Peer::Address(group), session.sent, 0)
            }
            Distribution::Unicast | Distribution::Stream => {
                let Some(at) = self.keep_warm.next_receiver(session) else { return 0 };
                let known = &session.receivers[at];
                (known.peer, known.cursor, known.skipped)
            }
        };
        let (frame, _) = session_frame(session, 0, (sequence, skipped), std::iter::empty());
        let bytes = frame.len();
        session.send_control(to, frame);
        session.counters.session_frames += 1;
        bytes
    }

    /// Whether the end was announced often enough, all receivers have left or died, and the dead
    /// had time to come back.
    pub(super) fn is_over(&self, session: &Session) -> bool {
        // Without a group, no receivers means no addresses to announce it to.
        let is_announced =
            !session.is_multicast() || self.close_announcements >= CLOSE_ANNOUNCEMENTS;
        session.closed
            && session.receivers.is_empty()
            && is_announced
            && session.awaits_until().is_none()
    }

    /// Requests a status from receivers, at most once per two round trips.
    pub(super) fn probe(&mut self, session: &mut Session, now: Nanos) {
        // An answer needs one round trip: asking more often brings no news.
        let pause = (2 * session.round_trip()).max(RoundTrip::PATIENCE_MIN);
        if self.probed_at.is_some_and(|at| now.saturating_sub(at) < pause) {
            return;
        }
        if session.is_multicast() {
            self.send_to_group(session, now, true);
        } else {
            let visible = session.packetizer.visible();
            for at in 0..session.receivers.len() {
                // Receivers that have read everything have nothing to report.
                if before(session.receivers[at].consumed, visible) {
                    self.send_to_receiver(session, now, at, true);
                }
            }
        }
    }

    fn send_to_group(&mut self, session: &mut Session, now: Nanos, probing: bool) {
        if let Distribution::Multicast(group) = session.settings.distribution {
            let upto = (session.sent, 0);
            self.send(session, now, (Peer::Address(group), None), upto, probing);
        }
    }

    fn send_to_receiver(&mut self, session: &mut Session, now: Nanos, at: usize, probing: bool) {
        let known = &session.receivers[at];
        let (peer, upto) = (known.peer, (known.cursor, known.skipped));
        self.send(session, now, (peer, Some(at)), upto, probing);
    }

    /// Sends one Session frame; at the end as many as it takes to report all topics.
    fn send(
        &mut self,
        session: &mut Session,
        now: Nanos,
        (to, receiver): (Peer, Option<usize>),
        (sequence, skipped): (u64, u32),
        probing: bool,
    ) {
        // Positions hold only for a receiver that was sent everything.
        let complete = sequence == session.packetizer.visible() && !session.packetizer.has_open();
        // The end counts only where all data was sent: CLOSED gives the sequence after the last.
        let closing = session.closed && complete;
        let mut flags = if closing { flag::CLOSED } else { 0 };
        if probing {
            flags |= flag::PROBE;
            self.probed_at = Some(now);
        }
        let topics: Vec<u32> = match (complete, receiver) {
            (false, _) => Vec::new(),
            (true, None) => (0..session.packetizer.topics.len() as u32).collect(),
            (true, Some(at)) => {
                session.receivers[at].subscriptions.iter().map(|known| known.topic).collect()
            }
        };
        // Before the end, each frame reports as many topics as fit, and the next one goes on.
        let mut left = topics.len();
        let next = receiver.map_or(self.next_report, |at| session.receivers[at].next_report);
        let mut from = if closing || left == 0 { 0 } else { next % left };
        loop {
            let turn = (0..left).map(|step| topics[(from + step) % topics.len()]);
            let (frame, reported) = session_frame(session, flags, (sequence, skipped), turn);
            session.send_control(to, frame);
            session.counters.session_frames += 1;
            (left, from) = (left - reported, from + reported);
            if !closing || left == 0 || reported == 0 {
                break;
            }
        }
        match receiver {
            None => self.next_report = from,
            Some(at) => session.receivers[at].next_report = from,
        }
    }
}

/// A Session frame with as many of the topics as fit, and their number.
fn session_frame(
    session: &Session,
    flags: u16,
    (sequence, skipped): (u64, u32),
    topics: impl Iterator<Item = u32>,
) -> (Vec<u8>, usize) {
    let mut reported = 0;
    // Lets receivers give up what is overwritten without asking for it.
    let retained = sequence.wrapping_sub(session.packetizer.window.oldest());
    let frame = session.frame((Kind::Session, flags), sequence, |writer| {
        let receivers = (session.receiver_count() as u32).into();
        let body = SessionBody { receivers, reserved: 0.into() };
        let retained = retained.min(u64::from(u32::MAX)) as u32;
        if !writer.add_data_header(skipped, retained) || !writer.add(&body) {
            return;
        }
        for topic in topics {
            if !writer.add(&topic_head(session, topic)) {
                break;
            }
            reported += 1;
        }
    });
    (frame, reported)
}

fn topic_head(session: &Session, topic: u32) -> TopicHead {
    let position = session.packetizer.position(topic);
    TopicHead {
        topic: topic.into(),
        reserved: 0.into(),
        fragment: position.fragment.into(),
        message: position.message.into(),
    }
}
