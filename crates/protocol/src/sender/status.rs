//! Status reports of receivers: progress, receive window, losses and round trip.

use super::config::Distribution;
use super::receiver_state::Peer;
use super::session::Session;
use crate::Nanos;
use crate::round_trip::RoundTrip;
use crate::sequence::{ahead, before, later};
use lanecast_wire::net::{EchoBody, Frame, Kind, LeaveBody, StatusBody};

/// Largest receive window that is believed, in datagrams.
const LIMIT_MAX: u64 = 1 << 32;

/// Handles a Status frame.
pub(super) fn on_status(session: &mut Session, now: Nanos, from: Peer, frame: &Frame<'_>) {
    let Some((body, _)) = StatusBody::split(frame.body) else {
        session.counters.malformed += 1;
        return;
    };
    // Also checks the address, and tells a removed receiver to join again.
    let Some(at) = session.find(body.receiver.get(), from) else { return };
    let known = &mut session.receivers[at];
    let consumed = frame.sequence;
    // Compared with what is published, not with what the group was sent: a receiver may begin
    // after that.
    if before(session.packetizer.visible(), consumed) {
        session.counters.malformed += 1;
        return;
    }
    known.heard_at = now;
    // Everything before `received` has arrived: it needs no repair.
    known.missing.remove_to(body.received.get());
    // Only after a Welcome can it report: the start need not be repeated.
    known.confirmed = true;
    // Compared by count: the report may be older than the Welcome of its latest topics.
    known.knows_topics = body.topics.get() as usize >= known.subscriptions.len();
    known.tag = body.tag.get();
    known.has_lost |= body.lost.get() > 0;
    if before(known.consumed, consumed) {
        known.consumed = consumed;
        // Progress, however little, starts the patience anew.
        known.blocking_since = None;
    }
    let limit = body.limit.get();
    // An absurd limit is ignored, and none moves back: a delayed report knows less.
    if (0..=LIMIT_MAX as i64).contains(&ahead(limit, consumed)) {
        known.limit = later(known.limit, limit);
    }
    if !matches!(session.settings.distribution, Distribution::Multicast(_)) {
        if before(known.cursor, consumed) {
            // The receiver learned from a Session frame that the datagrams in between are gone.
            known.advance(consumed);
            session.planned = None;
        }
        known.consume_skipped();
    }
    // Zero: not measured yet.
    let reported = Nanos::from(body.round_trip.get());
    if reported > 0 {
        // Bounded: an absurd report would delay probes and repairs for all.
        known.round_trip = Some(reported.min(RoundTrip::PATIENCE_MAX));
        session.refresh_round_trip();
    }
    session.refresh_limits();
    if body.echo.get() != 0 {
        send_echo(session, from, body);
    }
}

/// Returns the receiver's clock, which measures the round trip by it.
fn send_echo(session: &mut Session, to: Peer, status: &StatusBody) {
    let body = EchoBody { receiver: status.receiver, echo: status.echo };
    let frame = session.frame((Kind::Echo, 0), session.packetizer.visible(), |writer| {
        let _fits = writer.add(&body);
    });
    session.send_control(to, frame);
}

/// Handles a Leave frame.
pub(super) fn on_leave(session: &mut Session, from: Peer, frame: &Frame<'_>) {
    let Some((body, _)) = LeaveBody::split(frame.body) else {
        session.counters.malformed += 1;
        return;
    };
    let receiver = body.receiver.get();
    let mut all = session.receivers.iter();
    // Only by its own address: a forged Leave must not remove a receiver.
    if let Some(at) = all.position(|known| known.receiver == receiver && known.peer == from) {
        let visible = session.packetizer.visible();
        let known = &mut session.receivers[at];
        // Its last progress: the publisher learns whether it has left early.
        if known.confirmed && !before(visible, frame.sequence) {
            known.consumed = later(known.consumed, frame.sequence);
        }
        session.remove_left(at);
    }
}
