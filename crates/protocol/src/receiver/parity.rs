//! Parity frames: rebuild missing datagrams, which then are taken as if they had come, or show that
//! they have to be requested.

use super::counters::GapEnd;
use super::delivery::{Delivery, Phase};
use super::gap_tracker::Arrival;
use super::parity_window::{ParityUse, Rebuilt};
use super::session::Session;
use crate::Nanos;
use crate::fec::FecBlock;
use crate::sequence::{before, later};
use lanecast_wire::net::{
    FEC_DATA_MAX, FEC_DATAGRAM_MAX, FEC_PARITY_MAX, Frame, Kind, ParityBody, SYMBOL_LENGTH_BYTES,
};

/// Handles a parity frame.
pub(super) fn on_parity(
    session: &mut Session,
    now: Nanos,
    frame: &Frame<'_>,
    out: &mut Vec<Delivery>,
) -> Option<()> {
    // Without a Welcome that tells of parity the receiver keeps nothing to rebuild from.
    if session.parity.is_none() {
        return Some(());
    }
    let (header, rest) = frame.data()?;
    let (body, symbol) = ParityBody::split(rest)?;
    let block = FecBlock { first: frame.sequence, members: body.members.get() };
    let is_valid = block.contains(block.first)
        && block.count() <= FEC_DATA_MAX
        && usize::from(body.row) < FEC_PARITY_MAX
        && (SYMBOL_LENGTH_BYTES..=FEC_DATAGRAM_MAX).contains(&symbol.len());
    is_valid.then_some(())?;
    let arrival = session.tracker.classify(block.first, header.skipped.get());
    // The last one, too: each may open a gap, of which there are only so many.
    let last = session.tracker.classify(block.end().wrapping_sub(1), header.skipped.get());
    if !session.accepts(arrival, now) || !session.accepts(last, now) {
        return Some(());
    }
    session.counters.parity += 1;
    notice_sent(session, now, block, header.skipped.get(), arrival);
    session.read_header(now, block.first, header);
    let parity = session.parity.as_mut()?;
    match parity.add(block, header, (body.row, symbol), &session.tracker) {
        ParityUse::None => session.counters.parity_unused += 1,
        ParityUse::Contradiction => return None,
        ParityUse::Kept => {
            rebuild(session, now, out);
            // The last that comes unasked, and it was not enough: waiting longer is of no use.
            if body.row.saturating_add(1) >= body.proactive {
                request(session, now, block);
            }
        }
    }
    session.release(out);
    session.finish_if_drained(now, out);
    Some(())
}

/// A block's datagrams were sent before its parity: those that have not come are missing.
fn notice_sent(session: &mut Session, now: Nanos, block: FecBlock, skipped: u32, arrival: Arrival) {
    if arrival == Arrival::New {
        session.notice_gap(now, block.first, skipped);
    }
    let mut sequences = block.sequences().peekable();
    // Parity may lie about any number of gaps: those beyond the most are found missing later.
    while let Some(from) = sequences.next()
        && !session.tracker.is_full()
    {
        let mut end = from.wrapping_add(1);
        while sequences.next_if_eq(&end).is_some() {
            end = end.wrapping_add(1);
        }
        // Between them nothing was sent to this receiver.
        let head = session.tracker.head();
        if before(head, from) {
            let skipped = from.wrapping_sub(head).min(u64::from(u32::MAX)) as u32;
            session.notice_gap(now, from, skipped);
        }
        session.notice_gap(now, end, 0);
    }
}

/// Rebuilds what can be, and takes it as received.
pub(super) fn rebuild(session: &mut Session, now: Nanos, out: &mut Vec<Delivery>) {
    while let Some(parity) = &mut session.parity
        && let Some(found) = parity.rebuild(&session.tracker)
    {
        let Ok(rebuilt) = found else {
            session.counters.malformed += 1;
            continue;
        };
        session.counters.rebuilt += rebuilt.len() as u64;
        for Rebuilt { sequence, header, blocks } in rebuilt {
            // The one before may have been the last of the session.
            if session.phase != Phase::Live {
                return;
            }
            let number = session.number;
            let frame = Frame { kind: Kind::Data, flags: 0, session: number, sequence, body: &[] };
            let first = out.len();
            session.take_other_data(now, &frame, &header, (&blocks, 0), GapEnd::Rebuilt, out);
            for delivery in &mut out[first..] {
                own(delivery, &blocks);
            }
        }
    }
}

/// Copies messages out of a datagram that is in no buffer of the caller's.
fn own(delivery: &mut Delivery, blocks: &[u8]) {
    if let Delivery::Borrowed { slot, first, start, end } = *delivery {
        let items = blocks[start as usize..end as usize].into();
        *delivery = Delivery::Owned { slot, first, items };
    }
}

/// Requests the missing datagrams of a block that were not requested yet.
fn request(session: &mut Session, now: Nanos, block: FecBlock) {
    let due = session.nak.first_due(now, &session.round_trip);
    let due = due.saturating_add(session.settings.reorder);
    for gap in session.tracker.gaps_mut() {
        let first = later(gap.first, block.first);
        if gap.tries == 0 && before(first, gap.end()) && before(first, block.end()) {
            gap.due = gap.due.min(due);
        }
    }
}
