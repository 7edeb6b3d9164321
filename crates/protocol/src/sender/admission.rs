//! Who gets in: a receiver shows that its address is its own, and learns where its stream begins.

use super::heartbeat::Heartbeat;
use super::member::{Hopes, Member, Peer, Want};
use super::packer::Numbers;
use super::repair::Missing;
use super::{Sender, SenderEvent};
use crate::sequence::{before, later};
use crate::{Nanos, SECOND, rng};
use lanecast_wire::net::{
    ChallengeBody, Frame, JoinBody, Kind, TopicEntry, WelcomeBody, flag, names,
};
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

/// A cookie is good for this long, and up to twice as long.
const COOKIE_LIFE: Nanos = 10 * SECOND;
/// So many datagrams a second are searched for the beginnings of topics; a Join that would have
/// more of them searched is ignored, and comes again.
pub(super) const SCAN_RATE: u64 = 2_000_000;
/// The most names that are looked at in one Join; a receiver sends more in further ones.
const NAMES_MAX: usize = 2_048;

/// Makes and knows again the cookies of challenges, without remembering anything.
#[derive(Debug)]
pub(super) struct Cookies {
    keys: (u64, u64),
}

impl Cookies {
    pub(super) const fn new(seed: u64) -> Self {
        Self { keys: (rng::mix(seed), rng::mix(seed ^ 0x5bd1_e995_9e37_79b9)) }
    }

    fn make(&self, now: Nanos, from: SocketAddr, receiver: u64, age: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.keys.0, self.keys.1);
        (from, receiver, (now / COOKIE_LIFE).wrapping_sub(age)).hash(&mut hasher);
        // 0 means that there is none.
        hasher.finish().max(1)
    }

    fn is_good(&self, now: Nanos, from: SocketAddr, receiver: u64, cookie: u64) -> bool {
        (0..2).any(|age| self.make(now, from, receiver, age) == cookie)
    }
}

impl Sender {
    /// A receiver wants in, or wants further topics.
    pub(super) fn on_join(&mut self, now: Nanos, from: Peer, frame: &Frame<'_>) {
        let Some((body, rest)) = JoinBody::split(frame.body) else {
            self.counters.malformed += 1;
            return;
        };
        let receiver = body.receiver.get();
        if let Peer::Address(address) = from
            && !self.cookies.is_good(now, address, receiver, body.cookie.get())
        {
            self.challenge(now, address, body);
            return;
        }
        let searches = frame.flags & (flag::RESUME | flag::LATE) != 0;
        if searches && !self.scans.is_ready(now) {
            self.counters.searches_refused += 1;
            return;
        }
        // Where its stream begins can only be said between two datagrams; it will ask again.
        if !self.packer.flush() {
            return;
        }
        let Some((at, moved)) = self.seat(now, from, frame, body) else { return };
        let mut wanted = Vec::new();
        let member = &mut self.members[at];
        member.echo = body.echo.get();
        for name in names(rest).take(NAMES_MAX) {
            match self.numbers_of.get(name) {
                Some(number) => wanted.push(*number),
                None => member.hopes.add(name),
            }
        }
        let all = [&wanted[..], &moved[..]].concat();
        // What it is sent alone passes over what it does not want: others begin after that.
        let member = &self.members[at];
        let passed = member.cursor != member.start && !self.is_group();
        let (begins, searched) = self.begins(at, frame.flags, if passed { &moved } else { &all });
        self.scans.take(searched);
        let member = &mut self.members[at];
        for topic in &all {
            let begin = begins.get(topic).copied();
            let begin = begin.unwrap_or_else(|| self.packer.numbers(*topic));
            member.add_want(Want { topic: *topic, begin });
            self.packer.set_wanted(*topic, true);
        }
        self.peeked = None;
        self.refresh_gates();
        self.welcome(at, body.echo.get(), &wanted);
    }

    fn challenge(&mut self, now: Nanos, to: SocketAddr, join: &JoinBody) {
        let cookie = self.cookies.make(now, to, join.receiver.get(), 0);
        let body =
            ChallengeBody { receiver: join.receiver, cookie: cookie.into(), echo: join.echo };
        let frame = self.frame((Kind::Challenge, 0), self.packer.visible(), |writer| {
            let _fits = writer.add(&body);
        });
        self.answer(Peer::Address(to), frame);
    }

    /// The receiver's place among the members: the one it has, or a new one. With it the topics
    /// that it wants already, but that begin elsewhere now.
    fn seat(
        &mut self,
        now: Nanos,
        from: Peer,
        frame: &Frame<'_>,
        join: &JoinBody,
    ) -> Option<(usize, Vec<u32>)> {
        let receiver = join.receiver.get();
        if let Some(at) = self.members.iter().position(|member| member.receiver == receiver) {
            return self.resume(now, at, from, frame).map(|moved| (at, moved));
        }
        if frame.flags & flag::FURTHER != 0 {
            // It has been forgotten, and wants more than it names here.
            self.counters.strangers += 1;
            self.refuse(from, receiver, flag::STRANGER);
            return None;
        }
        // Frames of data do not say whom they are for: who was at this address is gone.
        if let Some(at) = self.members.iter().position(|member| member.peer == from) {
            self.leaves(at);
        }
        if self.members.len() >= self.settings.receivers_max {
            self.counters.crowded += 1;
            self.refuse(from, receiver, flag::CROWDED);
            return None;
        }
        let start = self.start(frame);
        let resumes = frame.flags & flag::RESUME != 0 && start == frame.sequence;
        let is_whole = self.behind.returns(receiver, resumes, self.counters.unwanted);
        let window = join.window.get().clamp(1, 1 << 24);
        let share = self.repair_rate();
        self.members.push(Member {
            receiver,
            peer: from,
            tag: join.tag.get(),
            window,
            wants: Vec::new(),
            hopes: Hopes::default(),
            echo: 0,
            start,
            confirmed: false,
            is_told: false,
            has_lost: !is_whole,
            consumed: start,
            limit: start.wrapping_add(u64::from(window)),
            cursor: start,
            skipped: 0,
            heard: now,
            round_trip: None,
            holds_since: None,
            missing: Missing::new(share, now),
            heads_told: 0,
            beat: Heartbeat::new(now, self.settings.heartbeat),
        });
        if let Peer::Link(link) = from {
            self.links.join(link);
        }
        self.membership_changes += 1;
        self.share_repairs();
        self.counters.joined += 1;
        self.tell(SenderEvent::Joined { receiver });
        Some((self.members.len() - 1, Vec::new()))
    }

    /// A member asks again: perhaps where to go on, or by a new connection, so that its topics
    /// begin elsewhere: these. `None` if it is not the same.
    fn resume(&mut self, now: Nanos, at: usize, from: Peer, frame: &Frame<'_>) -> Option<Vec<u32>> {
        let start = self.start(frame);
        let member = &mut self.members[at];
        let start = later(start, member.consumed);
        let reconnects = match (member.peer, from) {
            (old, new) if old == new => false,
            (Peer::Link(_), Peer::Link(_)) => true,
            _ => {
                self.counters.strangers += 1;
                return None;
            }
        };
        member.heard = now;
        if let (Peer::Link(old), Peer::Link(new)) = (member.peer, from)
            && reconnects
        {
            self.links.unjoin(old, now);
            self.links.join(new);
        }
        if !reconnects && frame.flags & flag::RESUME == 0 {
            return Some(Vec::new());
        }
        (member.peer, member.start, member.confirmed) = (from, start, false);
        if reconnects {
            // What the old connection did not deliver is sent again.
            (member.cursor, member.skipped) = (start, 0);
            member.limit = later(member.limit, start.wrapping_add(member.window.into()));
        }
        Some(member.wants.drain(..).map(|want| want.topic).collect())
    }

    /// Where the stream of a receiver begins that joins now.
    fn start(&self, frame: &Frame<'_>) -> u64 {
        let (oldest, live) = (self.packer.window.oldest(), self.packer.visible());
        if frame.flags & flag::RESUME != 0 {
            let asked = frame.sequence;
            if before(live, asked) { live } else { later(asked, oldest) }
        } else if frame.flags & flag::LATE != 0 && self.settings.late_join {
            oldest
        } else {
            live
        }
    }

    /// The numbers that topics have at the member's start, where they are not those of now.
    /// And how many datagrams were searched for them.
    fn begins(&self, at: usize, flags: u16, topics: &[u32]) -> (BTreeMap<u32, Numbers>, usize) {
        let mut begins = BTreeMap::new();
        let mut searched = 0;
        let member = &self.members[at];
        if member.confirmed || flags & (flag::RESUME | flag::LATE) == 0 {
            return (begins, searched);
        }
        let mut missing: Vec<u32> =
            topics.iter().copied().filter(|topic| member.want(*topic).is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        let mut sequence = member.start;
        while before(sequence, self.packer.visible()) && begins.len() < missing.len() {
            if !self.packer.window.holds(sequence) {
                break;
            }
            searched += 1;
            for (block, _) in self.packer.window.blocks(sequence) {
                let topic = block.topic.get();
                if missing.binary_search(&topic).is_ok() {
                    let (piece, message) = (block.piece.get(), block.message.get());
                    begins.entry(topic).or_insert(Numbers { piece, message });
                }
            }
            sequence = sequence.wrapping_add(1);
        }
        (begins, searched)
    }

    /// There is a new topic: lets those in who had asked for it.
    pub(super) fn fulfil(&mut self, topic: u32) {
        let name = Box::clone(&self.names[topic as usize]);
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            if member.hopes.take(&name) {
                let echo = member.echo;
                member.add_want(Want { topic, begin: Numbers::default() });
                self.packer.set_wanted(topic, true);
                self.welcome(at, echo, &[topic]);
            }
        }
        self.refresh_gates();
    }

    /// Tells a member where its topics begin, in as many frames as that takes.
    fn welcome(&mut self, at: usize, echo: u64, topics: &[u32]) {
        let member = &self.members[at];
        let (peer, receiver) = (member.peer, member.receiver);
        let sequence = if member.confirmed { self.packer.visible() } else { member.start };
        let body = WelcomeBody {
            receiver: receiver.into(),
            echo: echo.into(),
            longest: (self.packer.longest() as u32).into(),
            window: ((self.settings.window_bytes / self.settings.datagram_bytes) as u32).into(),
            receivers: (self.receivers() as u32).into(),
            pid: self.settings.pid.into(),
            liveness_ms: ((self.settings.liveness / 1_000_000) as u32).into(),
            reserved: 0.into(),
        };
        let mut told = 0;
        loop {
            let from = told;
            let member = &self.members[at];
            let frame = self.frame((Kind::Welcome, 0), sequence, |writer| {
                let mut fits = writer.add(&body);
                while fits && told < topics.len() {
                    let topic = topics[told];
                    // What was told before holds only where it was said to hold.
                    let told_before = member.want(topic).filter(|_| !member.confirmed);
                    let begin = told_before.map(|want| want.begin);
                    let begin = begin.unwrap_or_else(|| self.packer.numbers(topic));
                    let entry = TopicEntry {
                        topic: topic.into(),
                        name: 0.into(),
                        reserved: 0.into(),
                        piece: begin.piece.into(),
                        message: begin.message.into(),
                    };
                    fits = writer.add_topic(entry, &self.names[topic as usize]);
                    told += usize::from(fits);
                }
            });
            self.answer(peer, frame);
            if told == topics.len() || told == from {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_one_address_and_a_while() {
        let cookies = Cookies::new(7);
        let here = SocketAddr::from(([127, 0, 0, 1], 1));
        let there = SocketAddr::from(([127, 0, 0, 1], 2));
        let cookie = cookies.make(SECOND, here, 5, 0);
        assert!(cookies.is_good(SECOND + COOKIE_LIFE, here, 5, cookie));
        assert!(!cookies.is_good(SECOND + 2 * COOKIE_LIFE, here, 5, cookie));
        assert!(!cookies.is_good(SECOND, there, 5, cookie));
        assert!(!cookies.is_good(SECOND, here, 6, cookie));
        assert!(!cookies.is_good(SECOND, here, 5, 0));
        assert!(!Cookies::new(8).is_good(SECOND, here, 5, cookie));
    }
}
