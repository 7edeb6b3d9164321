//! Which of the publishers that are advertised are joined, and when: anybody may advertise any
//! number of them.

use super::Inbound;
use crate::Kind;
use crate::session::{Session, Source};
use lanecast_protocol::{Nanos, SECOND};

/// The most sessions that are being joined at a time, and the most of them at one address.
const JOINS_MAX: usize = 64;
const JOINS_EACH: usize = 32;
/// The most sessions at one address that take no descriptor each, but memory.
const SESSIONS_EACH: usize = 4_096;
/// The most groups: each takes a descriptor.
const GROUPS_MAX: usize = 64;
/// So many joins are begun in a second, and so many at once.
const JOINS_RATE: u64 = 500;
const JOINS_BURST: u64 = 128;

/// What becomes of a publisher that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is joined.
    Joined,
    /// There is no place now, but soon.
    Later,
    /// There are too many like it.
    Refused,
}

/// Joins that may be begun.
#[derive(Debug)]
pub(super) struct JoinBudget {
    left: u64,
    at: Nanos,
}

impl JoinBudget {
    pub(super) const fn new() -> Self {
        Self { left: JOINS_BURST, at: 0 }
    }

    /// Takes one, if there is one.
    fn take(&mut self, now: Nanos) -> bool {
        const STEP: Nanos = SECOND / JOINS_RATE;
        let steps = now.saturating_sub(self.at) / STEP;
        if steps > 0 {
            self.left = self.left.saturating_add(steps).min(JOINS_BURST);
            self.at = self.at.saturating_add(steps * STEP);
        }
        let taken = self.left > 0;
        self.left -= u64::from(taken);
        taken
    }
}

impl Inbound {
    /// Whether another session may be joined.
    pub(super) fn admit(&mut self, source: &Source, now: Nanos) -> Admission {
        let address = source.address.ip();
        let is_there = |session: &&Session| session.source().address.ip() == address;
        let same = |session: &&Session| is_there(session) && session.source().kind == source.kind;
        let streams_each = self.place.settings.streams_each;
        let most = if source.kind == Kind::Tcp { streams_each } else { SESSIONS_EACH };
        let is_new_group =
            source.group.is_some_and(|group| self.groups.iter().all(|(known, _)| *known != group));
        if self.sessions.iter().filter(same).count() >= most
            || is_new_group && self.groups.len() >= GROUPS_MAX
        {
            self.note_error(&format!(
                "not every publisher at {address} is joined: at most {most} of one address by {}, \
                 and {GROUPS_MAX} groups; for tcp, net.streams_each sets it",
                source.kind
            ));
            return Admission::Refused;
        }
        let joining = self.sessions.iter().filter(|session| session.is_joining());
        let (all, there) = joining.fold((0, 0), |(all, there), session| {
            (all + 1, there + usize::from(is_there(&session)))
        });
        if all >= JOINS_MAX || there >= JOINS_EACH || !self.joins.take(now) {
            return Admission::Later;
        }
        Admission::Joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_begun_at_their_rate() {
        let mut budget = JoinBudget::new();
        let taken = (0..1_000).filter(|_| budget.take(SECOND)).count();
        assert_eq!(taken as u64, JOINS_BURST);
        let mut taken = 0;
        for step in 0..2_000 {
            taken += u64::from(budget.take(SECOND + step * SECOND / 1_000));
        }
        assert!((2 * JOINS_RATE - 2..=2 * JOINS_RATE).contains(&taken), "{taken}");
    }
}
