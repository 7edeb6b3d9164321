//! Repairs: retransmission of datagrams that receivers request with NAKs, within a budget of which
//! each receiver has a share.

use super::config::Distribution;
use super::missing::RANGES_MAX;
use super::parity::{self, Answer};
use super::plan::Planned;
use super::receiver_state::Peer;
use super::session::Session;
use super::token_bucket::TokenBucket;
use super::window::Run;
use crate::Nanos;
use crate::round_trip::RoundTrip;
use crate::sequence::{before, earlier, later};
use lanecast_wire::net::{Frame, Kind, NakBody, Range, flag, list};
use std::net::SocketAddr;

/// Budget of all repairs, and the receiver that is served first next time.
#[derive(Debug)]
pub(super) struct Repairs {
    pub(super) budget: TokenBucket,
    turn: usize,
}

impl Repairs {
    pub(super) fn new(session: &Session, now: Nanos) -> Self {
        Self { budget: TokenBucket::new(session.repair_rate(), now), turn: 0 }
    }

    /// Next repair within the budget. Serves the receivers in turn.
    pub(super) fn plan(&mut self, session: &mut Session, now: Nanos) -> Option<Planned> {
        let count = session.receivers.len();
        for step in 0..count {
            // Starts after the receiver that was served last.
            let at = (self.turn + step) % count;
            // A range may turn out to be void: then the next one is tried.
            while let Some(range) = next_missing(session, now, at) {
                if !self.is_within_budget(session, now, at, range) {
                    break;
                }
                if let Some(plan) = plan_range(session, now, at, range) {
                    return Some(plan);
                }
            }
        }
        None
    }

    /// Whether the receiver may be served now. Tells it once if it has to wait.
    fn is_within_budget(
        &mut self,
        session: &mut Session,
        now: Nanos,
        at: usize,
        range: (u64, u64),
    ) -> bool {
        let missing = &mut session.receivers[at].missing;
        let has_share = missing.share.is_ready(now);
        // With hysteresis: a receiver at its limit must not flip between group and unicast.
        missing.over_share = !has_share || (missing.over_share && !missing.share.is_full());
        let ready = has_share && self.budget.is_ready(now);
        // Once for each wait: the receiver then postpones its NAKs.
        if !ready && !std::mem::replace(&mut missing.told_to_wait, true) {
            let peer = session.receivers[at].peer;
            session.counters.over_budget += 1;
            send_ranges(session, peer, (Kind::Confirm, flag::BUDGET), &[range]);
        }
        ready
    }

    /// Accounts for a repair that was sent.
    pub(super) fn sent(
        &mut self,
        session: &mut Session,
        now: Nanos,
        (at, alone): (usize, bool),
        run: &Run,
    ) {
        let bytes = run.bytes.len();
        self.budget.take(bytes);
        session.counters.repairs += run.count as u64;
        session.counters.repair_bytes += bytes as u64;
        self.turn = at + 1;
        // Always there, as a removal clears the plan.
        let Some(known) = session.receivers.get_mut(at) else { return };
        known.missing.share.take(bytes);
        known.missing.remove_to(run.end());
        // Zero: the group has received it, which serves every receiver that misses it.
        let receiver = if alone { known.receiver } else { 0 };
        session.packetizer.window.mark_repaired(run, receiver, now);
    }

    /// Accounts for parity that was sent to the group for the receiver at `at`.
    pub(super) fn sent_parity(
        &mut self,
        session: &mut Session,
        now: Nanos,
        (at, first): (usize, u64),
        bytes: usize,
    ) {
        self.budget.take(bytes);
        self.turn = at + 1;
        if let Some(known) = session.receivers.get_mut(at) {
            known.missing.share.take(bytes);
        }
        parity::answered(session, now, first);
    }

    /// Earliest time at which the budget allows the next repair.
    pub(super) fn due(&self, session: &Session) -> Option<Nanos> {
        let waiting = session.receivers.iter().filter(|known| !known.missing.is_empty());
        let due = waiting.map(|known| known.missing.share.ready_at()).min()?;
        Some(due.max(self.budget.ready_at()))
    }
}

/// Handles a NAK: adds the requested ranges, and reports as void what is no longer retained.
pub(super) fn on_nak(session: &mut Session, now: Nanos, from: SocketAddr, frame: &Frame<'_>) {
    let Some((body, rest)) = NakBody::split(frame.body) else {
        session.counters.malformed += 1;
        return;
    };
    let Some(at) = session.find(body.receiver.get(), Peer::Address(from)) else { return };
    session.counters.naks += 1;
    let is_multicast = session.is_multicast();
    let oldest = session.packetizer.window.oldest();
    let known = &mut session.receivers[at];
    // A request beyond that is malformed or forged: unsent data will come by itself.
    let sent = if is_multicast { session.sent } else { known.cursor };
    known.heard_at = now;
    known.missing.alone = frame.flags & flag::ALONE != 0;
    known.missing.takes_parity = frame.flags & flag::PARITY != 0;
    // The NAK's sequence acknowledges everything before it.
    known.missing.remove_to(frame.sequence);
    let (mut gone, mut taken) = (Vec::new(), Vec::new());
    for range in list::<Range>(rest).iter().take(RANGES_MAX) {
        let first = range.first.get();
        let end = earlier(first.wrapping_add(u64::from(range.count.get())), sent);
        if before(first, oldest) && before(first, end) {
            // Answered with Void: the receiver gives up at once rather than after its recovery
            // time.
            gone.push((first, earlier(oldest, end)));
        }
        let first = later(first, oldest);
        // Without room in the list the receiver gets no Confirm, and asks again.
        if before(first, end) && known.missing.add(first, end) {
            taken.push((first, end));
        }
    }
    known.missing.told_to_wait &= taken.is_empty();
    let lost = gone.iter().map(|(first, end)| end.wrapping_sub(*first));
    session.counters.gone = lost.fold(session.counters.gone, u64::saturating_add);
    send_ranges(session, Peer::Address(from), (Kind::Void, flag::GONE), &gone);
    // A Confirm to the group keeps other receivers from requesting the same datagrams.
    if let Distribution::Multicast(group) = session.settings.distribution
        && session.receivers.len() > 1
    {
        send_ranges(session, Peer::Address(group), (Kind::Confirm, 0), &taken);
    }
}

/// Sends a Confirm or a Void of these ranges, if there are any.
fn send_ranges(session: &mut Session, to: Peer, kind: (Kind, u16), ranges: &[(u64, u64)]) {
    let Some((first, _)) = ranges.first() else { return };
    let frame = session.frame(kind, *first, |writer| {
        for (first, end) in ranges {
            let count = end.wrapping_sub(*first).min(u64::from(u32::MAX)) as u32;
            let reserved = 0.into();
            let range = Range { first: (*first).into(), count: count.into(), reserved };
            // Ranges beyond a frame are left out: their receiver asks again.
            if !writer.add(&range) {
                break;
            }
        }
    });
    session.send_control(to, frame);
}

/// Minimum time between two repairs of the same datagram to a receiver: half of its round trip, as
/// the repair may still be on its way. The receiver waits longer than that before it asks again.
fn repair_pause(session: &Session, at: usize) -> Nanos {
    session.receivers[at].round_trip.unwrap_or(RoundTrip::UNKNOWN) / 2
}

/// First missing range of a receiver, without what is overwritten or was repaired a moment ago.
fn next_missing(session: &mut Session, now: Nanos, at: usize) -> Option<(u64, u64)> {
    let pause = repair_pause(session, at);
    loop {
        let known = &mut session.receivers[at];
        let (first, end) = known.missing.first()?;
        let oldest = session.packetizer.window.oldest();
        if before(first, oldest) {
            // Overwritten since the NAK came.
            let upto = earlier(oldest, end);
            known.missing.remove_to(upto);
            let peer = known.peer;
            session.counters.gone += upto.wrapping_sub(first);
            send_ranges(session, peer, (Kind::Void, flag::GONE), &[(first, upto)]);
        } else if session.packetizer.window.is_repaired(first, known.receiver, now, pause) {
            // On its way already, for this receiver or for the group.
            known.missing.remove_to(first.wrapping_add(1));
        } else {
            return Some((first, end));
        }
    }
}

/// Plans a run of a missing range. Reports datagrams without the receiver's topics as void instead.
fn plan_range(
    session: &mut Session,
    now: Nanos,
    at: usize,
    (first, end): (u64, u64),
) -> Option<Planned> {
    let pause = repair_pause(session, at);
    let is_multicast = session.is_multicast();
    let known = &session.receivers[at];
    let Peer::Address(own) = known.peer else {
        // Connections lose nothing, and send no NAKs: there is nothing to repair.
        session.receivers[at].missing.remove_to(end);
        return None;
    };
    let window = &session.packetizer.window;
    let is_needed =
        |sequence| is_multicast || window.has_topic(sequence, |topic| known.is_subscribed(topic));
    let mut upto = first;
    while before(upto, end) && !is_needed(upto) {
        upto = upto.wrapping_add(1);
    }
    if upto != first {
        session.receivers[at].missing.remove_to(upto);
        // Nothing in it for this receiver: a Void costs less than the datagrams.
        let void = [(first, upto)];
        send_ranges(session, Peer::Address(own), (Kind::Void, flag::UNWANTED), &void);
        return None;
    }
    // A receiver over its share must not make the whole group receive its repairs.
    let alone = !is_multicast || known.missing.alone || known.missing.over_share;
    if session.parity.is_some() && !alone {
        match parity::answer(session, now, at, first, pause) {
            Answer::Parity(planned) => return Some(planned),
            Answer::Sent => return None,
            Answer::No => {}
        }
    }
    let (window, known) = (&session.packetizer.window, &session.receivers[at]);
    let run = window.run(first, end, |sequence| {
        let is_repaired = window.is_repaired(sequence, known.receiver, now, pause);
        !is_repaired
            && (is_multicast || window.has_topic(sequence, |topic| known.is_subscribed(topic)))
    });
    let to = match session.settings.distribution {
        Distribution::Multicast(group) if !alone => group,
        _ => own,
    };
    // AGAIN marks a repair, which says nothing about skipped datagrams.
    session.packetizer.window.stamp(&run, flag::AGAIN, 0);
    Some(Planned::Repair { at, alone, to, run })
}
