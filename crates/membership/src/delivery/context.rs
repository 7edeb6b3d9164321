//! Identity of the view for the frames and duties of delivery.

use super::link::{Envelope, Link};
use crate::Nanos;
use crate::counters::GroupCounters;
use crate::outlet::Outlet;
use crate::view::{MemberId, View};

/// Context of all frames and duties.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) envelope: Envelope,
    /// Members of the view by rank.
    pub(super) members: Vec<MemberId>,
    /// Members and their ranks, sorted by member.
    ranks: Vec<(MemberId, usize)>,
    pub(super) counters: GroupCounters,
    /// Time of the next duty.
    pub(super) due: Nanos,
}

impl Context {
    pub(super) fn new(me: MemberId, group: u32) -> Self {
        Self {
            envelope: Envelope { group, sender: me, epoch: 0 },
            members: Vec::new(),
            ranks: Vec::new(),
            counters: GroupCounters::default(),
            due: Nanos::MAX,
        }
    }

    /// Begins a view.
    pub(super) fn install(&mut self, now: Nanos, view: &View) {
        self.envelope.epoch = view.id.epoch;
        self.members.clear();
        self.members.extend(view.members.iter().map(|member| member.id));
        self.ranks.clear();
        self.ranks.extend(self.members.iter().enumerate().map(|(rank, &id)| (id, rank)));
        self.ranks.sort_unstable();
        self.due = now;
    }

    #[inline]
    pub(super) fn link<'a, O: Outlet>(&'a mut self, now: Nanos, out: &'a mut O) -> Link<'a, O> {
        let Self { envelope, members, counters, due, .. } = self;
        Link { now, envelope: *envelope, members, counters, due, out }
    }

    /// Rank of the sender of a frame of this view.
    #[inline]
    pub(super) fn rank(&mut self, from: MemberId, epoch: u64) -> Option<usize> {
        let rank = self.rank_of(from).filter(|_| epoch == self.envelope.epoch);
        self.counters.other_view += u64::from(rank.is_none());
        rank
    }

    #[inline]
    pub(super) fn rank_of(&self, member: MemberId) -> Option<usize> {
        let at = self.ranks.binary_search_by_key(&member, |&(member, _)| member).ok()?;
        Some(self.ranks[at].1)
    }
}
