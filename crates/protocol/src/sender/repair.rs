//! Repairs: what receivers miss is sent again, within a budget that no single one can use up.

use super::member::Peer;
use super::pacing::Bucket;
use super::transmit::Planned;
use super::window::Run;
use super::{Distribution, Sender};
use crate::Nanos;
use crate::round_trip::RoundTrip;
use crate::sequence::{ahead, before, earlier, later};
use lanecast_wire::net::{Frame, Kind, NakBody, Range, flag, list};
use std::net::SocketAddr;

/// The most ranges that a receiver may miss at a time.
const RANGES_MAX: usize = 256;

/// What a receiver misses and was not sent again yet.
#[derive(Debug)]
pub(super) struct Missing {
    /// From the first up to the second, in order.
    ranges: Vec<(u64, u64)>,
    /// It wants the answers for itself.
    alone: bool,
    /// What its share of the budget allows.
    share: Bucket,
    /// It asked for more than its share, and is served from that alone.
    greedy: bool,
    /// It knows that it has to wait.
    told: bool,
}

impl Missing {
    pub(super) fn new(rate: u64, now: Nanos) -> Self {
        let share = Bucket::new(rate, now);
        Self { ranges: Vec::new(), alone: false, share, greedy: false, told: false }
    }

    /// Adds a range; false if there is no room for it.
    fn add(&mut self, mut first: u64, mut end: u64) -> bool {
        let met = |range: &(u64, u64)| ahead(range.0, end) <= 0 && ahead(first, range.1) <= 0;
        if let Some(from) = self.ranges.iter().position(met) {
            let count = self.ranges[from..].iter().take_while(|range| met(range)).count();
            for (a, b) in self.ranges.drain(from..from + count) {
                (first, end) = (earlier(first, a), later(end, b));
            }
        } else if self.ranges.len() >= RANGES_MAX {
            return false;
        }
        let at = self.ranges.iter().position(|range| before(first, range.0));
        self.ranges.insert(at.unwrap_or(self.ranges.len()), (first, end));
        true
    }

    /// Everything before `end` is dealt with.
    pub(super) fn done(&mut self, end: u64) {
        self.ranges.retain_mut(|range| {
            range.0 = later(range.0, end);
            before(range.0, range.1)
        });
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

impl Sender {
    /// Bytes per second for all repairs.
    pub(super) fn repair_rate(&self) -> u64 {
        let link = self.settings.data_rate.unwrap_or(self.settings.link_rate);
        (u128::from(link) * u128::from(self.settings.repair_share) / 100) as u64
    }

    /// Gives each receiver an equal share of the budget.
    pub(super) fn share_repairs(&mut self) {
        let share = self.repair_rate() / self.members.len().max(1) as u64;
        self.members.iter_mut().for_each(|member| member.missing.share.set_rate(share));
    }

    /// A receiver misses datagrams.
    pub(super) fn on_nak(&mut self, now: Nanos, from: SocketAddr, frame: &Frame<'_>) {
        let Some((body, rest)) = NakBody::split(frame.body) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(at) = self.member(body.receiver.get(), Peer::Address(from)) else { return };
        self.counters.naks += 1;
        let sent = if self.is_group() { self.sent } else { self.members[at].cursor };
        let oldest = self.packer.window.oldest();
        let member = &mut self.members[at];
        member.heard = now;
        member.missing.alone = frame.flags & flag::ALONE != 0;
        member.missing.done(frame.sequence);
        let (mut gone, mut taken) = (Vec::new(), Vec::new());
        for range in list::<Range>(rest).iter().take(RANGES_MAX) {
            let first = range.first.get();
            let end = earlier(first.wrapping_add(u64::from(range.count.get())), sent);
            if before(first, oldest) && before(first, end) {
                gone.push((first, earlier(oldest, end)));
            }
            let first = later(first, oldest);
            if before(first, end) && member.missing.add(first, end) {
                taken.push((first, end));
            }
        }
        member.missing.told &= taken.is_empty();
        let lost = gone.iter().map(|(first, end)| end.wrapping_sub(*first));
        self.counters.gone = lost.fold(self.counters.gone, u64::saturating_add);
        self.send_ranges(Peer::Address(from), (Kind::Void, flag::GONE), &gone);
        if let Distribution::Multicast(group) = self.settings.distribution
            && self.members.len() > 1
        {
            self.send_ranges(Peer::Address(group), (Kind::Confirm, 0), &taken);
        }
    }

    /// A Confirm or a Void of these ranges, if there are any.
    fn send_ranges(&mut self, to: Peer, kind: (Kind, u16), ranges: &[(u64, u64)]) {
        let Some((first, _)) = ranges.first() else { return };
        let frame = self.frame(kind, *first, |writer| {
            for (first, end) in ranges {
                let count = end.wrapping_sub(*first).min(u64::from(u32::MAX)) as u32;
                let reserved = 0.into();
                let range = Range { first: (*first).into(), count: count.into(), reserved };
                if !writer.add(&range) {
                    break;
                }
            }
        });
        self.answer(to, frame);
    }

    /// The next run to be sent again, if there is one within the budget.
    pub(super) fn plan_repair(&mut self, now: Nanos) -> Option<Planned> {
        let count = self.members.len();
        for step in 0..count {
            let at = (self.repair_turn + step) % count;
            while let Some((first, end)) = self.next_missing(now, at) {
                if !self.is_within_budget(now, at, (first, end)) {
                    break;
                }
                if let Some(plan) = self.plan_missing(now, at, (first, end)) {
                    return Some(plan);
                }
            }
        }
        None
    }

    /// For how long what was sent again is not once more: it may just not have arrived. By what
    /// the receiver itself says, so that it waits longer before it asks again.
    fn repair_pause(&self, at: usize) -> Nanos {
        self.members[at].round_trip.unwrap_or(RoundTrip::UNKNOWN) / 2
    }

    /// The receiver's first range, without what is overwritten or was just sent again.
    fn next_missing(&mut self, now: Nanos, at: usize) -> Option<(u64, u64)> {
        let pause = self.repair_pause(at);
        loop {
            let member = &mut self.members[at];
            let (first, end) = *member.missing.ranges.first()?;
            let oldest = self.packer.window.oldest();
            if before(first, oldest) {
                let upto = earlier(oldest, end);
                member.missing.done(upto);
                let peer = member.peer;
                self.counters.gone += upto.wrapping_sub(first);
                self.send_ranges(peer, (Kind::Void, flag::GONE), &[(first, upto)]);
            } else if self.packer.window.is_repaired(first, member.receiver, now, pause) {
                member.missing.done(first.wrapping_add(1));
            } else {
                return Some((first, end));
            }
        }
    }

    /// Whether the receiver may be served now; if not, it is told once.
    fn is_within_budget(&mut self, now: Nanos, at: usize, range: (u64, u64)) -> bool {
        let missing = &mut self.members[at].missing;
        let has_share = missing.share.is_ready(now);
        missing.greedy = !has_share || (missing.greedy && !missing.share.is_full());
        let ready = has_share && self.repair_budget.is_ready(now);
        if !ready && !std::mem::replace(&mut missing.told, true) {
            let peer = self.members[at].peer;
            self.counters.over_budget += 1;
            self.send_ranges(peer, (Kind::Confirm, flag::BUDGET), &[range]);
        }
        ready
    }

    /// A run of what the receiver misses; what it does not want is said to be void.
    fn plan_missing(&mut self, now: Nanos, at: usize, (first, end): (u64, u64)) -> Option<Planned> {
        let pause = self.repair_pause(at);
        let is_group = self.is_group();
        let member = &self.members[at];
        let Peer::Address(own) = member.peer else {
            self.members[at].missing.done(end);
            return None;
        };
        let window = &self.packer.window;
        let wanted = |sequence| is_group || window.is_wanted(sequence, |topic| member.wants(topic));
        let mut upto = first;
        while before(upto, end) && !wanted(upto) {
            upto = upto.wrapping_add(1);
        }
        if upto != first {
            self.members[at].missing.done(upto);
            self.send_ranges(Peer::Address(own), (Kind::Void, flag::UNWANTED), &[(first, upto)]);
            return None;
        }
        let run = window.run(first, end, |sequence| {
            wanted(sequence) && !window.is_repaired(sequence, member.receiver, now, pause)
        });
        let alone = !is_group || member.missing.alone || member.missing.greedy;
        let to = match self.settings.distribution {
            Distribution::Multicast(group) if !alone => group,
            _ => own,
        };
        self.packer.window.stamp(&run, flag::AGAIN, 0);
        Some(Planned::Repair { at, alone, to, run })
    }

    /// A planned repair went out.
    pub(super) fn repaired(&mut self, now: Nanos, at: usize, alone: bool, run: &Run) {
        let bytes = run.bytes.len();
        self.repair_budget.take(bytes);
        self.counters.repairs += run.count as u64;
        self.counters.repair_bytes += bytes as u64;
        self.repair_turn = at + 1;
        let Some(member) = self.members.get_mut(at) else { return };
        member.missing.share.take(bytes);
        member.missing.done(run.end());
        let receiver = if alone { member.receiver } else { 0 };
        self.packer.window.note_repair(run, receiver, now);
    }

    /// When repairs that wait for their budget can go on.
    pub(super) fn repairs_due(&self) -> Option<Nanos> {
        let waiting = self.members.iter().filter(|member| !member.missing.is_empty());
        let due = waiting.map(|member| member.missing.share.ready_at()).min()?;
        Some(due.max(self.repair_budget.ready_at()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_kept_in_order_and_merged() {
        let mut missing = Missing::new(1, 0);
        let at = |offset: u64| (u64::MAX - 10).wrapping_add(offset);
        for (first, end) in [(20, 22), (0, 4), (10, 12)] {
            assert!(missing.add(at(first), at(end)));
        }
        assert_eq!(missing.ranges, [(at(0), at(4)), (at(10), at(12)), (at(20), at(22))]);
        assert!(missing.add(at(3), at(15)));
        assert_eq!(missing.ranges, [(at(0), at(15)), (at(20), at(22))]);
        missing.done(at(6));
        assert_eq!(missing.ranges[0], (at(6), at(15)));
        missing.done(at(30));
        assert!(missing.is_empty());
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let mut missing = Missing::new(1, 0);
        let added = (0..1_000u64).filter(|n| missing.add(n * 10, n * 10 + 1)).count();
        assert_eq!((added, missing.ranges.len()), (RANGES_MAX, RANGES_MAX));
        assert!(missing.add(5, 10_000), "merges into what is there");
        assert_eq!(missing.ranges.len(), 2);
    }
}
