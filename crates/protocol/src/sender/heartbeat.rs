//! Signs of life: a probe of the tail shortly after the last data, then ever more seldom.

use super::member::{Member, Peer};
use super::{Distribution, Sender};
use crate::round_trip::RoundTrip;
use crate::sequence::before;
use crate::{MICROSECOND, Nanos};
use lanecast_wire::net::{Kind, SessionBody, TopicHead, flag};

/// The shortest time after the last data.
const TAIL_MIN: Nanos = 50 * MICROSECOND;
/// How often the end is told at least, since any of the frames may be lost.
const FAREWELLS: u32 = 4;

/// When the next sign of life is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heartbeat {
    pub(super) due: Nanos,
    interval: Nanos,
}

impl Heartbeat {
    /// The first is due after `first`.
    pub(super) const fn new(now: Nanos, first: Nanos) -> Self {
        Self { due: now.saturating_add(first), interval: first }
    }

    /// The same, but the next is due at once.
    pub(super) const fn at_once(self, now: Nanos) -> Self {
        Self { due: now, ..self }
    }

    /// Whether it is due; the next one then comes after twice the time, `longest` at most.
    fn is_due(&mut self, now: Nanos, longest: Nanos) -> bool {
        let due = now >= self.due;
        if due {
            self.interval = self.interval.saturating_mul(2).min(longest);
            self.due = now.saturating_add(self.interval);
        }
        due
    }
}

impl Sender {
    /// How long a frame takes to the receivers and back, as far as is known.
    fn round_trip(&self) -> Nanos {
        self.round_trip.unwrap_or(RoundTrip::UNKNOWN)
    }

    /// When the tail is probed after data.
    pub(super) fn first_beat(&self, now: Nanos) -> Heartbeat {
        let wait = (2 * self.round_trip()).max(TAIL_MIN);
        Heartbeat::new(now, wait.min(self.settings.heartbeat))
    }

    /// Sends the signs of life that are due.
    pub(super) fn beat(&mut self, now: Nanos) {
        if self.is_over() {
            return;
        }
        let longest = self.settings.heartbeat;
        let quiet = |member: &Member| now.saturating_sub(member.heard) > self.settings.liveness / 2;
        let probing = self.closed
            || self.is_held()
            || self.round_trip.is_none()
            || self.members.iter().any(quiet);
        let due = match self.settings.distribution {
            Distribution::Multicast(_) => self.group_beat.is_due(now, longest),
            Distribution::Unicast | Distribution::Stream => false,
        };
        if due {
            self.session_to_group(now, probing);
        }
        let mut any = due;
        for at in 0..self.members.len() {
            if !due && !self.is_group() && self.members[at].beat.is_due(now, longest) {
                self.session_to(now, at, probing);
                any = true;
            }
        }
        if self.closed && any {
            self.farewells = self.farewells.saturating_add(1);
        }
    }

    /// Whether the end was told often enough: all have left since, or fallen silent.
    pub(super) const fn is_over(&self) -> bool {
        self.closed && self.farewells >= FAREWELLS && self.members.is_empty()
    }

    /// Asks for everybody's status, once in a round trip.
    pub fn probe(&mut self, now: Nanos) {
        let pause = (2 * self.round_trip()).max(RoundTrip::PATIENCE_MIN);
        if self.probed_at.is_some_and(|at| now.saturating_sub(at) < pause) {
            return;
        }
        if self.is_group() {
            self.session_to_group(now, true);
        } else {
            let visible = self.packer.visible();
            for at in 0..self.members.len() {
                if before(self.members[at].consumed, visible) {
                    self.session_to(now, at, true);
                }
            }
        }
    }

    pub(super) const fn is_group(&self) -> bool {
        matches!(self.settings.distribution, Distribution::Multicast(_))
    }

    fn session_to_group(&mut self, now: Nanos, probing: bool) {
        if let Distribution::Multicast(group) = self.settings.distribution {
            self.session(now, Peer::Address(group), (self.sent, 0), None, probing);
        }
    }

    fn session_to(&mut self, now: Nanos, at: usize, probing: bool) {
        let member = &self.members[at];
        let (peer, upto) = (member.peer, (member.cursor, member.skipped));
        self.session(now, peer, upto, Some(at), probing);
    }

    /// One session frame; several at the end, which tell of all topics.
    fn session(
        &mut self,
        now: Nanos,
        to: Peer,
        (sequence, skipped): (u64, u32),
        member: Option<usize>,
        probing: bool,
    ) {
        // The heads are true only of a receiver that was sent everything.
        let complete = sequence == self.packer.visible() && !self.packer.has_open();
        let closing = self.closed && complete;
        let mut flags = if closing { flag::CLOSED } else { 0 };
        if probing {
            flags |= flag::PROBE;
            self.probed_at = Some(now);
        }
        let topics: Vec<u32> = match (complete, member) {
            (false, _) => Vec::new(),
            (true, None) => (0..self.packer.topics() as u32).collect(),
            (true, Some(at)) => self.members[at].wants.iter().map(|want| want.topic).collect(),
        };
        // Without an end to tell of, one frame at a time tells of the topics in turn.
        let mut left = topics.len();
        let told = member.map_or(self.heads_told, |at| self.members[at].heads_told);
        let mut from = if closing || left == 0 { 0 } else { told % left };
        loop {
            let mut told = 0;
            let retained = sequence.wrapping_sub(self.packer.window.oldest());
            let frame = self.frame((Kind::Session, flags), sequence, |writer| {
                let body =
                    SessionBody { receivers: (self.receivers() as u32).into(), reserved: 0.into() };
                let retained = retained.min(u64::from(u32::MAX)) as u32;
                if !writer.add_data_header(skipped, retained) || !writer.add(&body) {
                    return;
                }
                while told < left {
                    let topic = topics[(from + told) % topics.len()];
                    if !writer.add(&self.topic_head(topic)) {
                        break;
                    }
                    told += 1;
                }
            });
            self.answer(to, frame);
            self.counters.sessions += 1;
            (left, from) = (left - told, from + told);
            if !closing || left == 0 || told == 0 {
                break;
            }
        }
        *member.map_or(&mut self.heads_told, |at| &mut self.members[at].heads_told) = from;
    }

    fn topic_head(&self, topic: u32) -> TopicHead {
        let numbers = self.packer.numbers(topic);
        TopicHead {
            topic: topic.into(),
            reserved: 0.into(),
            piece: numbers.piece.into(),
            message: numbers.message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_come_ever_more_seldom() {
        let mut beat = Heartbeat::new(0, 100);
        let times: Vec<Nanos> = (0..2_000).filter(|now| beat.is_due(*now, 500)).collect();
        assert_eq!(times, [100, 300, 700, 1_200, 1_700]);
    }
}
