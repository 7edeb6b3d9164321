//! A participant's side of a round.

use crate::Nanos;
use crate::ballot::Ballot;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::views::{NextMember, OldView, ViewEntry};

/// A round that this member takes part in.
#[derive(Clone, Debug)]
pub(crate) struct Participation {
    pub(crate) ballot: Ballot,
    pub(crate) began: Nanos,
    /// The leader counts as gone if this passes without a sign of it.
    pub(crate) deadline: Nanos,
    /// The round ends here, signs or not.
    pub(crate) end: Nanos,
    /// The Cut, while messages before it are missing.
    pub(crate) cut: Option<NextView>,
}

/// The view of a Cut, and the way to it.
#[derive(Clone, Debug)]
pub(crate) struct NextView {
    pub(crate) ballot: Ballot,
    pub(crate) view: View,
    /// Each member's first sequence, by rank.
    pub(crate) firsts: Vec<u64>,
    /// Whether each member comes from this member's own view, by rank.
    pub(crate) stayed: Vec<bool>,
    /// Whether no member has been in a view before: the view founds the group.
    pub(crate) is_founding: bool,
    /// Whether members of another established view come along.
    pub(crate) is_merged: bool,
    /// The end of each stream of this member's own view, by rank.
    pub(crate) targets: Vec<u64>,
    /// Members that have everything up to there, by rank.
    pub(crate) holders: Vec<MemberId>,
}

impl NextView {
    /// A view of one member, whose own next sequence is `first`.
    pub(crate) fn alone(me: MemberInfo, epoch: u64, ballot: Ballot, first: u64) -> Self {
        Self {
            ballot,
            view: View { id: ViewId { epoch, coordinator: me.id }, members: vec![me] },
            firsts: vec![first],
            stayed: vec![true],
            is_founding: true,
            is_merged: false,
            targets: Vec::new(),
            holders: Vec::new(),
        }
    }

    /// The view of a Cut for a member of the view `own`; none if the Cut contradicts itself or says
    /// nothing about that view.
    pub(crate) fn read(
        own: ViewId,
        ballot: Ballot,
        view: ViewEntry,
        members: &[NextMember<'_>],
        views: &[OldView<'_>],
    ) -> Option<Self> {
        let own_index = views.iter().position(|old| ViewId::from(old.view) == own)?;
        let old = |member: &NextMember<'_>| usize::from(member.old_view);
        let id = ViewId::from(view);
        let is_whole = members.iter().all(|member| old(member) < views.len())
            && members.first().is_some_and(|first| first.id == id.coordinator.0)
            && id.coordinator == ballot.leader;
        let mut ids: Vec<_> = members.iter().map(|member| member.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if !is_whole || ids.len() != members.len() {
            return None;
        }
        let is_established = |member: &NextMember<'_>| views[old(member)].view.epoch.get() > 0;
        let is_other = |member: &&NextMember<'_>| old(member) != own_index;
        let info = |member: &NextMember<'_>| MemberInfo {
            id: MemberId(member.id),
            incarnation: member.incarnation,
            port: member.port,
            name: member.name.to_owned(),
        };
        let targets = views[own_index].targets;
        Some(Self {
            ballot,
            view: View { id, members: members.iter().map(info).collect() },
            firsts: members.iter().map(|member| member.first).collect(),
            stayed: members.iter().map(|member| old(member) == own_index).collect(),
            is_founding: !members.iter().any(is_established),
            is_merged: own.epoch > 0 && members.iter().filter(is_other).any(is_established),
            targets: targets.iter().map(|target| target.end.get()).collect(),
            holders: targets.iter().map(|target| MemberId(target.holder.get())).collect(),
        })
    }
}
