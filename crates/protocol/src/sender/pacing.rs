//! Who may hold the sender up: flow control, its ends, and budgets in bytes per second.

use super::member::{Member, Peer};
use super::{Distribution, Pacing, Sender, SenderEvent};
use crate::sequence::{before, earlier, later};
use crate::{Nanos, SECOND};
use lanecast_wire::net::{EjectBody, Kind, flag};

/// Bytes per second, with room for bursts; may go into debt by one run.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: u64,
    burst: i64,
    level: i64,
    at: Nanos,
}

impl Bucket {
    /// Full at first; bursts of 2 ms, 64 KiB at least.
    pub(super) fn new(rate: u64, now: Nanos) -> Self {
        let rate = rate.clamp(1, 1 << 40);
        let burst = (rate as i64 / 500).max(1 << 16);
        Self { rate, burst, level: burst, at: now }
    }

    /// The same at another rate; a burst keeps its size.
    pub(super) fn set_rate(&mut self, rate: u64) {
        self.rate = rate.clamp(1, 1 << 40);
    }

    /// Whether something may be sent.
    pub(super) fn is_ready(&mut self, now: Nanos) -> bool {
        let passed = u128::from(now.saturating_sub(self.at));
        let added = passed * u128::from(self.rate) / u128::from(SECOND);
        if added > 0 {
            let added = added.min(1 << 50) as i64;
            self.level = self.level.saturating_add(added).min(self.burst);
            self.at = now;
        }
        self.level > 0
    }

    /// Whether something has to wait.
    pub(super) const fn is_spent(&self) -> bool {
        self.level <= 0
    }

    /// Whether nothing was taken of late.
    pub(super) const fn is_full(&self) -> bool {
        self.level >= self.burst
    }

    /// So much was sent.
    pub(super) const fn take(&mut self, bytes: usize) {
        self.level -= bytes as i64;
    }

    /// When something may be sent (again).
    pub(super) fn ready_at(&self) -> Nanos {
        let missing = (1 - self.level).max(0) as u128;
        let wait = (missing * u128::from(SECOND)).div_ceil(u128::from(self.rate));
        self.at.saturating_add(wait.min(u128::from(u64::MAX)) as u64)
    }
}

impl Pacing {
    /// Whether the receiver has a say.
    pub(super) fn heeds(self, member: &Member) -> bool {
        member.counts()
            && match self {
                Self::Slowest | Self::SlowestOrEject(_) | Self::Fastest => true,
                Self::Tagged(tag) => member.tag == tag,
                Self::None => false,
            }
    }

    /// The mark of the receiver that decides, if any has a say.
    fn decide(self, members: &[Member], mark: impl Fn(&Member) -> u64) -> Option<u64> {
        let marks = members.iter().filter(|member| self.heeds(member)).map(mark);
        if self == Self::Fastest { marks.reduce(later) } else { marks.reduce(earlier) }
    }
}

impl Sender {
    /// Works out anew what may be overwritten and how far the group may be sent to.
    pub(super) fn refresh_gates(&mut self) {
        let pacing = self.settings.pacing;
        let gate = pacing.decide(&self.members, |member| member.consumed);
        if gate != self.gate {
            self.refused = false;
        }
        self.gate = gate;
        self.group_limit = pacing.decide(&self.members, |member| member.limit);
    }

    /// Datagrams from here on must not be overwritten; none if any may.
    #[inline]
    pub(super) fn floor(&self) -> Option<u64> {
        match self.settings.distribution {
            Distribution::Multicast(_) => {
                Some(self.gate.map_or(self.sent, |gate| earlier(gate, self.sent)))
            }
            Distribution::Unicast | Distribution::Stream => self.gate,
        }
    }

    /// The group may be sent datagrams before this one.
    pub(super) fn group_end(&self) -> u64 {
        let visible = self.packer.visible();
        self.group_limit.map_or(visible, |limit| earlier(limit, visible))
    }

    /// A receiver that is sent to alone may be sent datagrams before this one.
    pub(super) fn member_end(&self, member: &Member) -> u64 {
        let visible = self.packer.visible();
        match self.settings.pacing {
            Pacing::None => visible,
            _ => earlier(member.limit, visible),
        }
    }

    /// Whether receivers keep the sender from going on.
    pub(super) fn is_held(&self) -> bool {
        let visible = self.packer.visible();
        let blocked = match self.settings.distribution {
            Distribution::Multicast(_) => {
                before(self.sent, visible) && !before(self.sent, self.group_end())
            }
            Distribution::Unicast | Distribution::Stream => self.members.iter().any(|member| {
                before(member.cursor, visible) && !before(member.cursor, self.member_end(member))
            }),
        };
        self.refused || blocked
    }

    /// If nobody has looked at the time for longer than can be, say because the process stood
    /// still, receivers are not to blame for the silence.
    pub(super) fn excuse(&mut self, now: Nanos) {
        let unseen = now.saturating_sub(self.looked);
        self.looked = self.looked.max(now);
        let absence = unseen.saturating_sub(self.settings.liveness / 2);
        if absence == 0 {
            return;
        }
        for member in &mut self.members {
            member.heard = member.heard.saturating_add(absence).min(member.heard.max(now));
            member.holds_since = member.holds_since.map(|at| at.saturating_add(absence).min(now));
        }
    }

    /// Lets go who has fallen silent, and who has held the sender up for too long.
    pub(super) fn weed(&mut self, now: Nanos) {
        let liveness = self.settings.liveness;
        let silent = |member: &Member| now.saturating_sub(member.heard) > liveness;
        while let Some(at) = self.members.iter().position(silent) {
            self.counters.died += 1;
            let receiver = self.leave_behind(at).receiver;
            self.tell(SenderEvent::Died { receiver });
        }
        let Pacing::SlowestOrEject(patience) = self.settings.pacing else { return };
        let gate = if self.is_held() { self.gate } else { None };
        let visible = self.packer.visible();
        for at in (0..self.members.len()).rev() {
            let member = &mut self.members[at];
            let stands = member.counts() && before(member.consumed, visible);
            if !stands || gate != Some(member.consumed) {
                member.holds_since = None;
            } else if now.saturating_sub(*member.holds_since.get_or_insert(now)) >= patience {
                self.eject(at);
            }
        }
    }

    fn eject(&mut self, at: usize) {
        let Member { peer, receiver, .. } = self.leave_behind(at);
        self.counters.ejected += 1;
        self.refuse(peer, receiver, flag::STALLED);
        self.tell(SenderEvent::Ejected { receiver });
    }

    /// Tells a receiver that it is not (or no longer) in.
    pub(super) fn refuse(&mut self, to: Peer, receiver: u64, why: u16) {
        let frame = self.frame((Kind::Eject, why), self.packer.visible(), |writer| {
            let _fits = writer.add(&EjectBody { receiver: receiver.into() });
        });
        self.answer(to, frame);
        if let Peer::Link(link) = to {
            self.links.part(link);
        }
    }

    /// A receiver is gone: nothing waits for it any more.
    pub(super) fn remove(&mut self, at: usize) -> Member {
        let member = self.members.remove(at);
        if let Peer::Link(link) = member.peer {
            self.links.unjoin(link, self.looked);
        }
        self.membership_changes += 1;
        // What was given out to be sent may have been for it, or for one behind it.
        self.peeked = None;
        self.share_repairs();
        self.refresh_round_trip();
        if !self.wants_all {
            for want in &member.wants {
                let wanted = self.members.iter().any(|other| other.wants(want.topic));
                self.packer.set_wanted(want.topic, wanted);
            }
        }
        self.refresh_gates();
        member
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_keeps_its_rate_and_says_when() {
        let mut bucket = Bucket::new(1_000_000, 0);
        let (mut now, mut sent) = (0, 0usize);
        while now < SECOND {
            if bucket.is_ready(now) {
                bucket.take(1_000);
                sent += 1_000;
            } else {
                assert!(bucket.ready_at() > now);
                now = bucket.ready_at();
            }
        }
        assert!((1_000_000..=1_000_000 + (1 << 16) + 2_000).contains(&sent), "{sent}");
        assert!(Bucket::new(u64::MAX, 0).is_ready(u64::MAX));
    }
}
