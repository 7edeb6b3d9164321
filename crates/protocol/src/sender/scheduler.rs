//! Scheduler of new data: the next run for the group or for a receiver, within the data rate.

use super::config::Distribution;
use super::open_block::OpenBlock;
use super::parity::{self, Closing};
use super::plan::{ParityOf, Planned};
use super::receiver_state::Peer;
use super::session::Session;
use super::token_bucket::TokenBucket;
use super::window::Run;
use crate::Nanos;
use crate::sequence::{before, later};
use std::net::SocketAddr;

/// Limit of the data rate, and the unicast receiver that is served first next time.
#[derive(Debug)]
pub(super) struct Scheduler {
    rate: Option<TokenBucket>,
    turn: usize,
}

impl Scheduler {
    pub(super) fn new(rate: Option<u64>, now: Nanos) -> Self {
        Self { rate: rate.map(|rate| TokenBucket::new(rate, now)), turn: 0 }
    }

    /// Next run of new data.
    pub(super) fn plan(&mut self, session: &mut Session, now: Nanos) -> Option<Planned> {
        if !self.has_rate(now) {
            return None;
        }
        let full = parity::plan(session, now, Closing::Full);
        let found = full.or_else(|| self.plan_data(session));
        // Only then: a block that is not full waits for data that is there. Data whose block is to
        // end before it has been found by now.
        found
            .or_else(|| parity::plan(session, now, Closing::Full))
            .or_else(|| parity::plan(session, now, Closing::Due))
    }

    fn plan_data(&self, session: &mut Session) -> Option<Planned> {
        match session.settings.distribution {
            Distribution::Multicast(to) => plan_group(session, to),
            Distribution::Unicast => self.plan_unicast(session),
            // Connections are polled with `plan_receiver`.
            Distribution::Stream => None,
        }
    }

    /// Time at which parity is due, and the rate allows it.
    pub(super) fn parity_due(&self, session: &Session) -> Option<Nanos> {
        let due = parity::due(session)?;
        let rate = self.rate.as_ref().filter(|rate| rate.is_spent());
        Some(due.max(rate.map_or(0, TokenBucket::ready_at)))
    }

    /// Accounts for a parity frame that was sent.
    pub(super) fn sent_parity(&mut self, session: &mut Session, of: ParityOf, bytes: usize) {
        parity::sent(session, of);
        self.take(bytes);
    }

    /// Counts bytes against the data rate.
    pub(super) const fn take(&mut self, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.take(bytes);
        }
    }

    /// Whether the data rate allows sending.
    pub(super) fn has_rate(&mut self, now: Nanos) -> bool {
        self.rate.as_mut().is_none_or(|rate| rate.is_ready(now))
    }

    /// Whether the data rate allows sending, and data that follows at once, too.
    pub(super) fn has_rate_to_spare(&mut self, now: Nanos) -> bool {
        self.rate.as_mut().is_none_or(|rate| rate.is_ready(now) && rate.is_half_full())
    }

    /// Time from which the rate allows data that waits for it.
    pub(super) fn due(&self, session: &Session) -> Option<Nanos> {
        // While the rate is not spent, all data was sent that could be.
        let is_held = |rate: &&TokenBucket| rate.is_spent() && has_data_to_send(session);
        self.rate.as_ref().filter(is_held).map(TokenBucket::ready_at)
    }

    fn plan_unicast(&self, session: &mut Session) -> Option<Planned> {
        let count = session.receivers.len();
        for step in 0..count {
            // Starts after the receiver that was served last: none is starved by one with much to
            // send.
            let at = (self.turn + step) % count;
            let Peer::Address(to) = session.receivers[at].peer else { continue };
            if let Some(run) = plan_receiver(session, at) {
                return Some(Planned::Unicast { at, to, run });
            }
        }
        None
    }

    /// Accounts for a run that was sent to the group.
    pub(super) fn sent_to_group(&mut self, session: &mut Session, now: Nanos, run: &Run) {
        session.sent = run.end();
        session.data_sent_at = now;
        // Data is a heartbeat by itself; the next one asks whether the tail has arrived.
        session.group_heartbeat = session.first_heartbeat(now);
        parity::sent_to_group(session, now, run);
        self.count(session, run);
    }

    /// Accounts for a run that was sent to one receiver.
    pub(super) fn sent_to_receiver(
        &mut self,
        session: &mut Session,
        now: Nanos,
        at: usize,
        run: &Run,
    ) {
        let heartbeat = session.first_heartbeat(now);
        let has_parity = session.parity.is_some();
        if let Some(known) = session.receivers.get_mut(at) {
            if has_parity && known.has_fec {
                known.open_block.add(run, known.skipped, now);
            }
            known.advance(run.end());
            known.heartbeat = heartbeat;
        }
        // The furthest of all receivers: slower ones do not take it back.
        session.sent = later(session.sent, run.end());
        session.data_sent_at = now;
        self.count(session, run);
    }

    /// Serves the receiver after this one first next time.
    pub(super) const fn end_turn(&mut self, at: usize) {
        self.turn = at + 1;
    }

    fn count(&mut self, session: &mut Session, run: &Run) {
        session.counters.datagrams += run.count as u64;
        session.counters.bytes += run.bytes.len() as u64;
        self.take(run.bytes.len());
    }
}

fn plan_group(session: &mut Session, to: SocketAddr) -> Option<Planned> {
    let end = session.group_end();
    if !before(session.sent, end) {
        return None;
    }
    let end = match &session.parity {
        Some(parity) => parity::run_end(session, &parity.group, session.sent, end),
        None => end,
    };
    let run = session.packetizer.window.run(session.sent, end, |_| true);
    session.packetizer.window.stamp(&run, 0, 0);
    Some(Planned::Group { to, run })
}

/// Next run for a unicast receiver. Skips datagrams without its topics.
pub(super) fn plan_receiver(session: &mut Session, at: usize) -> Option<Run> {
    let visible = session.packetizer.visible();
    let window = &session.packetizer.window;
    let known = &mut session.receivers[at];
    // Datagrams overwritten before they were sent are lost; the receiver sees the gap.
    if before(known.cursor, window.oldest()) {
        known.advance(window.oldest());
        // Between the datagrams of a block none is left out but what was skipped.
        known.open_block = OpenBlock::default();
    }
    let begin = known.cursor;
    // Unicast sends only what is subscribed; the header's `skipped` tells that nothing is missing.
    while before(known.cursor, visible)
        && !window.has_topic(known.cursor, |topic| known.is_subscribed(topic))
    {
        known.skip();
    }
    if known.cursor != begin {
        // Skipped datagrams count as read, which may free room in the window.
        session.refresh_limits();
    }
    let known = &session.receivers[at];
    let end = session.receiver_end(known);
    let end = parity::run_end(session, &known.open_block, known.cursor, end);
    if !before(known.cursor, end) {
        return None;
    }
    let window = &session.packetizer.window;
    // A run ends at the first unwanted datagram: one system call sends contiguous bytes only.
    let is_needed = |sequence| window.has_topic(sequence, |topic| known.is_subscribed(topic));
    let run = window.run(known.cursor, end, is_needed);
    let skipped = known.skipped;
    session.packetizer.window.stamp(&run, 0, skipped);
    Some(run)
}

/// Whether published messages were not sent yet.
pub(super) fn has_data_to_send(session: &Session) -> bool {
    let (visible, open) = (session.packetizer.visible(), session.packetizer.has_open());
    if session.is_multicast() {
        return open || before(session.sent, visible);
    }
    let mut counted = session.receivers.iter().filter(|receiver| receiver.counts());
    counted.any(|receiver| open || before(receiver.cursor, visible))
}
