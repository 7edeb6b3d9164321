//! Handshake: a receiver proves its address with a cookie, is admitted, and learns from a Welcome
//! where its stream and its topics begin.

use super::heartbeat_timer::HeartbeatTimer;
use super::layout::Position;
use super::missing::MissingRanges;
use super::open_block::OpenBlock;
use super::receiver_state::{AwaitedNames, Peer, ReceiverState, Subscription};
use super::session::Session;
use super::subscribers;
use super::token_bucket::TokenBucket;
use crate::sequence::{before, later};
use crate::{MICROSECOND, Nanos, SECOND};
use lanecast_transport::DepartureReason;
use lanecast_wire::net::{
    ChallengeBody, Frame, JoinBody, Kind, TopicEntry, WelcomeBody, flag, names,
};
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

/// Minimum lifetime of a cookie; the maximum is twice that.
const COOKIE_LIFE: Nanos = 10 * SECOND;
/// Datagrams per second searched for the beginnings of topics. A Join beyond that is ignored; the
/// receiver repeats it.
const SEARCH_RATE: u64 = 2_000_000;
/// Most names read from one Join; a receiver sends the others in further ones.
const NAMES_MAX: usize = 2_048;

/// Stateless cookies: a keyed hash of the address, the receiver and the time.
#[derive(Debug)]
struct Cookies {
    key: [u64; 2],
}

impl Cookies {
    const fn new(key: [u64; 2]) -> Self {
        Self { key }
    }

    fn make(&self, now: Nanos, from: SocketAddr, receiver: u64, age: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key[0], self.key[1]);
        // The period is part of the hash, so that cookies expire without being stored.
        (from, receiver, (now / COOKIE_LIFE).wrapping_sub(age)).hash(&mut hasher);
        // 0 stands for no cookie.
        hasher.finish().max(1)
    }

    fn is_valid(&self, now: Nanos, from: SocketAddr, receiver: u64, cookie: u64) -> bool {
        // The former period is good too: a cookie may be made just before the period ends.
        (0..2).any(|age| self.make(now, from, receiver, age) == cookie)
    }
}

/// State of the handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    cookies: Cookies,
    /// Budget for searching the window, in datagrams.
    searches: TokenBucket,
}

impl Handshake {
    pub(super) fn new(cookie_key: [u64; 2], now: Nanos) -> Self {
        Self { cookies: Cookies::new(cookie_key), searches: TokenBucket::new(SEARCH_RATE, now) }
    }

    /// Handles a Join: of a new receiver, of one that resumes, or for further topics.
    pub(super) fn on_join(
        &mut self,
        session: &mut Session,
        now: Nanos,
        from: Peer,
        frame: &Frame<'_>,
    ) {
        let Some((body, rest)) = JoinBody::split(frame.body) else {
            session.counters.malformed += 1;
            return;
        };
        let receiver = body.receiver.get();
        // A connection has proved its address; a datagram's may be forged.
        if let Peer::Address(address) = from
            && !self.cookies.is_valid(now, address, receiver, body.cookie.get())
        {
            self.challenge(session, now, address, body);
            return;
        }
        // Only these two begin in the past, which has to be searched.
        let searches = frame.flags & (flag::RESUME | flag::LATE) != 0;
        if searches && !self.searches.is_ready(now) {
            session.counters.joins_deferred += 1;
            return;
        }
        // A stream can begin only between two datagrams. Otherwise the receiver asks again.
        if !session.packetizer.flush() {
            return;
        }
        let Some((at, moved)) = admit(session, now, from, frame, body) else { return };
        let mut named = Vec::new();
        let known = &mut session.receivers[at];
        // Kept for topics that are added later: their Welcome answers this Join.
        known.echo = body.echo.get();
        for name in names(rest).take(NAMES_MAX) {
            match session.numbers.get(name) {
                Some(number) => named.push(*number),
                // Announced by a Welcome as soon as the session has the topic.
                None => known.awaited.add(name),
            }
        }
        let all = [&named[..], &moved[..]].concat();
        // The cursor may have skipped datagrams of topics that were not subscribed until now:
        // once it has moved, new topics begin at the present.
        let known = &session.receivers[at];
        let has_moved = known.cursor != known.start && !session.is_multicast();
        let topics = if has_moved { &moved } else { &all };
        let (begins, searched) = find_begins(session, at, frame.flags, topics);
        self.searches.take(searched);
        let known = &mut session.receivers[at];
        for topic in &all {
            let begin = begins.get(topic).copied();
            let begin = begin.unwrap_or_else(|| session.packetizer.position(*topic));
            known.subscribe(Subscription { topic: *topic, begin });
            session.packetizer.set_subscribed(*topic, true);
        }
        subscribers::note(session, at);
        // The plan may have skipped datagrams of the new topics.
        session.planned = None;
        session.refresh_limits();
        welcome(session, at, body.echo.get(), &named);
    }

    fn challenge(&self, session: &mut Session, now: Nanos, to: SocketAddr, join: &JoinBody) {
        // Nothing is stored for an unproved address: forged Joins cost no memory, and the answer is
        // not longer than the Join.
        let cookie = self.cookies.make(now, to, join.receiver.get(), 0);
        let body =
            ChallengeBody { receiver: join.receiver, cookie: cookie.into(), echo: join.echo };
        let frame = session.frame((Kind::Challenge, 0), session.packetizer.visible(), |writer| {
            let _fits = writer.add(&body);
        });
        session.send_control(Peer::Address(to), frame);
    }
}

/// Finds or adds the receiver. Returns its index and the subscribed topics whose begin has moved.
fn admit(
    session: &mut Session,
    now: Nanos,
    from: Peer,
    frame: &Frame<'_>,
    join: &JoinBody,
) -> Option<(usize, Vec<u32>)> {
    let receiver = join.receiver.get();
    if let Some(at) = session.receivers.iter().position(|known| known.receiver == receiver) {
        // Joined already: a repeated Join must not count twice.
        return resume(session, now, at, from, frame).map(|moved| (at, moved));
    }
    if frame.flags & flag::FURTHER != 0 {
        // The sender has removed it, and this Join names only some of its topics.
        session.counters.unknown_receivers += 1;
        session.reject(from, receiver, flag::STRANGER);
        return None;
    }
    // Data frames name no receiver, so an address has one: the former one is gone.
    if let Some(at) = session.receivers.iter().position(|known| known.peer == from) {
        session.counters.died += 1;
        session.remove(at, DepartureReason::Died);
    }
    if session.receivers.len() >= session.settings.receivers_max {
        session.counters.rejected += 1;
        session.reject(from, receiver, flag::CROWDED);
        return None;
    }
    let start = stream_start(session, frame);
    // Any other start than the one asked for counts as a loss.
    let resumes = frame.flags & flag::RESUME != 0 && start == frame.sequence;
    let has_lost = subscribers::has_lost_before(session, receiver, resumes);
    // A number from the network: bounded before it is added to sequences.
    let window = join.window.get().clamp(1, 1 << 24);
    let share = session.repair_rate();
    session.receivers.push(ReceiverState {
        receiver,
        subscriber: None,
        peer: from,
        tag: join.tag.get(),
        window,
        subscriptions: Vec::new(),
        awaited: AwaitedNames::default(),
        echo: 0,
        start,
        confirmed: false,
        knows_topics: false,
        has_lost,
        consumed: start,
        limit: start.wrapping_add(u64::from(window)),
        cursor: start,
        skipped: 0,
        heard_at: now,
        round_trip: None,
        blocking_since: None,
        missing: MissingRanges::new(share, now),
        next_report: 0,
        heartbeat: HeartbeatTimer::new(now, session.settings.heartbeat),
        has_fec: frame.flags & flag::FEC != 0,
        open_block: OpenBlock::default(),
    });
    if let Peer::Connection(number) = from {
        session.connections.join(number);
    }
    session.membership_changes += 1;
    session.share_repair_budget();
    session.counters.joined += 1;
    Some((session.receivers.len() - 1, Vec::new()))
}

/// Handles the Join of a joined receiver: a repeated one, or one that resumes its stream, perhaps
/// by a new connection. Returns the topics that begin anew; `None` if the address is another one.
fn resume(
    session: &mut Session,
    now: Nanos,
    at: usize,
    from: Peer,
    frame: &Frame<'_>,
) -> Option<Vec<u32>> {
    let start = stream_start(session, frame);
    let known = &mut session.receivers[at];
    // Never back before its own report: those datagrams may be overwritten already.
    let start = later(start, known.consumed);
    let reconnects = match (known.peer, from) {
        (old, new) if old == new => false,
        // The receiver has lost its connection, and has made another.
        (Peer::Connection(_), Peer::Connection(_)) => true,
        _ => {
            session.counters.unknown_receivers += 1;
            return None;
        }
    };
    known.heard_at = now;
    if let (Peer::Connection(old), Peer::Connection(new)) = (known.peer, from)
        && reconnects
    {
        session.connections.unjoin(old, now);
        session.connections.join(new);
    }
    // A repeated Join, or one for further topics: the stream goes on.
    if !reconnects && frame.flags & flag::RESUME == 0 {
        return Some(Vec::new());
    }
    (known.peer, known.start, known.confirmed) = (from, start, false);
    if reconnects {
        // Bytes in flight on the old connection are lost with it: send them again.
        (known.cursor, known.skipped) = (start, 0);
        // Room for a whole window from the start on, as for a new receiver.
        known.limit = later(known.limit, start.wrapping_add(known.window.into()));
    }
    Some(known.subscriptions.drain(..).map(|known| known.topic).collect())
}

/// Sequence at which the stream of a receiver that joins now begins.
fn stream_start(session: &Session, frame: &Frame<'_>) -> u64 {
    let (oldest, live) = (session.packetizer.window.oldest(), session.packetizer.visible());
    if frame.flags & flag::RESUME != 0 {
        let asked = frame.sequence;
        // Nothing ahead of the stream, nothing that is overwritten.
        if before(live, asked) { live } else { later(asked, oldest) }
    } else if frame.flags & flag::LATE != 0 && session.settings.late_join {
        oldest
    } else {
        live
    }
}

/// Positions of topics at the receiver's start, as far as they differ from the present ones, and
/// the number of datagrams searched for them.
fn find_begins(
    session: &Session,
    at: usize,
    flags: u16,
    topics: &[u32],
) -> (BTreeMap<u32, Position>, usize) {
    let mut begins = BTreeMap::new();
    let mut searched = 0;
    let known = &session.receivers[at];
    // A receiver that runs takes new topics from the present on.
    if known.confirmed || flags & (flag::RESUME | flag::LATE) == 0 {
        return (begins, searched);
    }
    let mut missing: Vec<u32> =
        topics.iter().copied().filter(|topic| known.subscription(*topic).is_none()).collect();
    missing.sort_unstable();
    // Sorted for the binary search below; a Join may name a topic twice.
    missing.dedup();
    let mut sequence = known.start;
    while before(sequence, session.packetizer.visible()) && begins.len() < missing.len() {
        // The start may lie before the oldest datagram by the time of a repeated Join.
        if !session.packetizer.window.holds(sequence) {
            break;
        }
        searched += 1;
        for (block, _) in session.packetizer.window.blocks(sequence) {
            let topic = block.topic.get();
            if missing.binary_search(&topic).is_ok() {
                let (fragment, message) = (block.fragment.get(), block.message.get());
                begins.entry(topic).or_insert(Position { fragment, message });
            }
        }
        sequence = sequence.wrapping_add(1);
    }
    (begins, searched)
}

/// Subscribes receivers that have asked for a topic before it was added.
pub(super) fn on_topic_added(session: &mut Session, topic: u32) {
    let name = Box::clone(&session.names[topic as usize]);
    for at in 0..session.receivers.len() {
        let known = &mut session.receivers[at];
        // A topic without any message yet: its begin is zero for all.
        if known.awaited.take(&name) {
            let echo = known.echo;
            known.subscribe(Subscription { topic, begin: Position::default() });
            session.packetizer.set_subscribed(topic, true);
            subscribers::note(session, at);
            welcome(session, at, echo, &[topic]);
        }
    }
    session.refresh_limits();
}

/// Sends Welcome frames: as many as it takes to tell where the topics begin.
fn welcome(session: &mut Session, at: usize, echo: u64, topics: &[u32]) {
    let known = &session.receivers[at];
    let (peer, receiver) = (known.peer, known.receiver);
    // Until a Status confirms the start, each Welcome repeats it: any of them may be lost.
    let sequence = if known.confirmed { session.packetizer.visible() } else { known.start };
    let settings = &session.settings;
    let fec = session.parity.as_ref().map(|parity| parity.settings);
    let body = WelcomeBody {
        receiver: receiver.into(),
        echo: echo.into(),
        longest: (session.packetizer.longest() as u32).into(),
        window: ((settings.window_bytes / settings.datagram_bytes) as u32).into(),
        receivers: (session.receiver_count() as u32).into(),
        pid: settings.pid.into(),
        liveness_ms: ((settings.liveness / 1_000_000) as u32).into(),
        fec_data: fec.map_or(0, |fec| fec.data),
        fec_parity: fec.map_or(0, |fec| fec.parity),
        fec_delay_us: fec.map_or(0, |fec| (fec.delay / MICROSECOND) as u16).into(),
    };
    let mut told = 0;
    loop {
        let from = told;
        let known = &session.receivers[at];
        let frame = session.frame((Kind::Welcome, 0), sequence, |writer| {
            let mut fits = writer.add(&body);
            while fits && told < topics.len() {
                let topic = topics[told];
                // A recorded begin belongs to the start; after that, the present one counts.
                let recorded = known.subscription(topic).filter(|_| !known.confirmed);
                let begin = recorded.map(|known| known.begin);
                let begin = begin.unwrap_or_else(|| session.packetizer.position(topic));
                let entry = TopicEntry {
                    topic: topic.into(),
                    name: 0.into(),
                    reserved: 0.into(),
                    fragment: begin.fragment.into(),
                    message: begin.message.into(),
                };
                fits = writer.add_topic(entry, &session.names[topic as usize]);
                told += usize::from(fits);
            }
        });
        session.send_control(peer, frame);
        // The second case is a name that fits into no frame: better left out than repeated without
        // end.
        if told == topics.len() || told == from {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_valid_for_one_address_and_a_while() {
        let cookies = Cookies::new([7, 8]);
        let here = SocketAddr::from(([127, 0, 0, 1], 1));
        let there = SocketAddr::from(([127, 0, 0, 1], 2));
        let cookie = cookies.make(SECOND, here, 5, 0);
        assert!(cookies.is_valid(SECOND + COOKIE_LIFE, here, 5, cookie));
        assert!(!cookies.is_valid(SECOND + 2 * COOKIE_LIFE, here, 5, cookie));
        assert!(!cookies.is_valid(SECOND, there, 5, cookie));
        assert!(!cookies.is_valid(SECOND, here, 6, cookie));
        assert!(!cookies.is_valid(SECOND, here, 5, 0));
        // All of the key counts.
        for other in [[8, 8], [7, 7], [7, 8 | 1 << 63], [7 | 1 << 63, 8]] {
            assert!(!Cookies::new(other).is_valid(SECOND, here, 5, cookie));
        }
    }
}
