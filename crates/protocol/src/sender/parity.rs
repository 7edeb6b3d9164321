//! Parity: frames that let receivers rebuild lost datagrams. Each block of datagrams is followed
//! by its parity (proactive), and in a group parity answers NAKs as well: one frame repairs
//! different losses of different receivers.
//!
//! Blocks are runs of what was sent last, to the group or to a unicast receiver; parity is computed
//! from the send window when it is sent, and nothing is copied before.

use super::config::Distribution;
use super::open_block::OpenBlock;
use super::plan::{ParityOf, Planned};
use super::receiver_state::Peer;
use super::session::Session;
use super::window::Run;
use crate::Nanos;
use crate::sequence::earlier;
use lanecast_wire::net::FEC_PARITY_MAX;

/// When a block is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// No further datagram fits.
    Full,
    /// The delay is over.
    Due,
}

/// End of the datagrams from `next` on that may be sent as one run: all are of one block.
pub(super) fn run_end(session: &Session, open: &OpenBlock, next: u64, end: u64) -> u64 {
    let Some(parity) = &session.parity else { return end };
    earlier(next.wrapping_add(open.room(next, parity.settings)), end)
}

/// Datagrams were sent to the group.
pub(super) fn sent_to_group(session: &mut Session, now: Nanos, run: &Run) {
    let Some(parity) = &mut session.parity else { return };
    // For a receiver to come there is no parity: it begins after it.
    if session.receivers.iter().any(|known| known.has_fec) {
        parity.group.add(run, 0, now);
    } else {
        parity.group = OpenBlock::default();
    }
}

/// Next parity frame of a block that is to be closed.
pub(super) fn plan(session: &mut Session, now: Nanos, closing: Closing) -> Option<Planned> {
    session.parity.as_ref()?;
    if let Distribution::Multicast(to) = session.settings.distribution {
        let next = session.sent;
        return plan_open(session, now, closing, next, ParityOf::Group)
            .then_some(Planned::Parity { to, of: ParityOf::Group });
    }
    for at in 0..session.receivers.len() {
        let known = &session.receivers[at];
        let (Peer::Address(to), next) = (known.peer, known.cursor) else { continue };
        let of = ParityOf::Receiver(at);
        if plan_open(session, now, closing, next, of) {
            return Some(Planned::Parity { to, of });
        }
    }
    None
}

/// Computes the next parity frame of an open block, if it is to be closed before `next`.
fn plan_open(session: &mut Session, now: Nanos, closing: Closing, next: u64, of: ParityOf) -> bool {
    let Some(parity) = &mut session.parity else { return false };
    let open = match of {
        ParityOf::Receiver(at) => session.receivers[at].open_block,
        _ => parity.group,
    };
    let settings = parity.settings;
    let closes = match closing {
        Closing::Full => open.is_full(next, settings),
        Closing::Due => open.due(settings).is_some_and(|due| now >= due),
    };
    if !closes {
        return false;
    }
    let source = (&session.packetizer.window, session.settings.session);
    let block = (open.block, open.skipped);
    let computed = open.row < settings.parity && parity.compute(source, block, open.row);
    if !computed {
        // Without proactive parity, or read by all receivers already.
        close(session, of);
    }
    computed
}

/// Ends an open block.
fn close(session: &mut Session, of: ParityOf) {
    let Some(parity) = &mut session.parity else { return };
    match of {
        ParityOf::Group => {
            let open = std::mem::take(&mut parity.group);
            parity.remember(open);
        }
        ParityOf::Receiver(at) => session.receivers[at].open_block = OpenBlock::default(),
        ParityOf::Answer { .. } => {}
    }
}

/// A proactive parity frame was sent.
pub(super) fn sent(session: &mut Session, of: ParityOf) {
    let Some(parity) = &mut session.parity else { return };
    session.counters.parity += 1;
    session.counters.parity_bytes += parity.frame.len() as u64;
    let last = parity.settings.parity;
    let open = match of {
        ParityOf::Group => &mut parity.group,
        ParityOf::Receiver(at) => &mut session.receivers[at].open_block,
        ParityOf::Answer { .. } => return,
    };
    open.row += 1;
    if open.row >= last {
        close(session, of);
    }
}

/// Time at which the parity of an open block is due.
pub(super) fn due(session: &Session) -> Option<Nanos> {
    let parity = session.parity.as_ref()?;
    let receivers = session.receivers.iter().map(|known| &known.open_block);
    receivers.chain([&parity.group]).filter_map(|open| open.due(parity.settings)).min()
}

/// Parity as the answer to a NAK, or the reason for another one.
#[derive(Debug)]
pub(super) enum Answer {
    Parity(Planned),
    /// Parity that was sent already answers it.
    Sent,
    /// Parity is no answer.
    No,
}

/// Answers the NAK of the receiver at `at`, which misses the datagram `first` and perhaps others of
/// its block, by parity to the group: rows that were never sent are of use to every receiver that
/// misses anything of the block. A row that was sent less than `pause` ago counts.
pub(super) fn answer(
    session: &mut Session,
    now: Nanos,
    at: usize,
    first: u64,
    pause: Nanos,
) -> Answer {
    let Distribution::Multicast(to) = session.settings.distribution else { return Answer::No };
    // Alone, or with all of it missing, a receiver is served by the datagrams themselves.
    let (missing, several) = (&session.receivers[at].missing, session.receivers.len() > 1);
    let Some(parity) = session.parity.as_mut().filter(|_| several && missing.takes_parity) else {
        return Answer::No;
    };
    let Some(sent) = parity.sent_block(first) else { return Answer::No };
    let block = sent.block;
    let needed = block.sequences().filter(|sequence| missing.contains(*sequence)).count();
    if sent.answered_at.is_some_and(|answered| now.saturating_sub(answered) >= pause) {
        sent.answered = 0;
    }
    if sent.answered >= needed {
        session.receivers[at].missing.remove_to(block.end());
        return Answer::Sent;
    }
    let row = sent.next_row;
    if needed == block.count() || usize::from(row) >= FEC_PARITY_MAX {
        return Answer::No;
    }
    let source = (&session.packetizer.window, session.settings.session);
    if parity.compute(source, (block, 0), row) {
        let of = ParityOf::Answer { at, first: block.first };
        Answer::Parity(Planned::Parity { to, of })
    } else {
        Answer::No
    }
}

/// A parity frame was sent to the group as an answer.
pub(super) fn answered(session: &mut Session, now: Nanos, first: u64) {
    let Some(parity) = &mut session.parity else { return };
    session.counters.parity_repairs += 1;
    session.counters.repair_bytes += parity.frame.len() as u64;
    if let Some(sent) = parity.sent_block(first) {
        sent.next_row += 1;
        sent.answered += 1;
        sent.answered_at = Some(now);
    }
}
