//! Log of one member: its view, and its deliveries.

use crate::ensure;
use crate::group::truth::SenderTruth;
use crate::payload::{Payloads, Sizes};
use crate::violation::Verdict;
use lanecast_membership::{MemberId, MemberInfo, View, ViewChange, ViewId};
use std::collections::{BTreeMap, BTreeSet};

/// Deliveries of one view, at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Next number by sender; senders without messages are left out.
    pub delivered: BTreeMap<MemberId, u64>,
    /// Messages in total order.
    pub total: Vec<(MemberId, u64)>,
}

/// A state that a member's application gave.
#[derive(Clone, Debug)]
pub struct Provided {
    /// New member that it is for.
    pub to: MemberId,
    bytes: Vec<u8>,
    view: ViewId,
    delivered: BTreeMap<MemberId, u64>,
    total: Vec<(MemberId, u64)>,
}

impl Provided {
    /// Whether `bytes` are this state.
    pub fn is(&self, bytes: &[u8]) -> bool {
        self.bytes == bytes
    }
}

/// One incarnation of a member.
#[derive(Clone, Debug)]
pub struct Log {
    /// The name and id.
    pub info: MemberInfo,
    /// The messages.
    pub truth: SenderTruth,
    /// The view, once it has one.
    pub view: Option<View>,
    /// View before.
    pub former: Option<ViewId>,
    first_view: Option<ViewId>,
    /// Next number by sender, in this view.
    pub delivered: BTreeMap<MemberId, u64>,
    /// Messages in total order, in this view.
    pub total: Vec<(MemberId, u64)>,
    /// Next direct message by sender.
    pub direct: BTreeMap<MemberId, u64>,
    /// Next numbers in former views.
    pub past: BTreeMap<ViewId, BTreeMap<MemberId, u64>>,
    /// Former views in which the state never came.
    pub stateless: BTreeSet<ViewId>,
    /// States that it gave.
    pub provided: Vec<Provided>,
    /// Messages that were checked to be stable.
    pub stable_checked: u64,
    /// Nothing may follow.
    pub has_left: bool,
    wants_state: bool,
}

impl Log {
    /// Creates the log of a member without a view.
    pub fn new(info: MemberInfo, sizes: Sizes, wants_state: bool) -> Self {
        Self {
            truth: SenderTruth::new(info.id, sizes),
            info,
            view: None,
            former: None,
            first_view: None,
            delivered: BTreeMap::new(),
            total: Vec::new(),
            direct: BTreeMap::new(),
            past: BTreeMap::new(),
            stateless: BTreeSet::new(),
            provided: Vec::new(),
            stable_checked: 0,
            has_left: false,
            wants_state,
        }
    }

    /// Whether the group's state is still to come.
    pub fn awaits_state(&self) -> bool {
        self.wants_state && self.view.is_some()
    }

    /// The group begins anew with this member.
    pub const fn begin_anew(&mut self) {
        self.wants_state = false;
    }

    /// Whether the state has not come yet, in a view or not.
    pub const fn wants_state(&self) -> bool {
        self.wants_state
    }

    /// Checks a change of the view against the former one.
    pub fn check_change(&self, view: &View, change: &ViewChange) -> Verdict {
        let (id, next) = (self.info.id, view.id);
        let former: BTreeSet<_> = match &self.view {
            Some(former) => {
                ensure!(
                    former.id.epoch < next.epoch,
                    "{id} installed {next} after {}: its epochs must grow",
                    former.id
                );
                former.members.iter().map(|member| member.id).collect()
            }
            None => BTreeSet::new(),
        };
        let now: BTreeSet<_> = view.members.iter().map(|member| member.id).collect();
        let joined: BTreeSet<_> = change.joined.iter().map(|member| member.id).collect();
        let left: BTreeSet<_> = change.left.iter().map(|(member, _)| member.id).collect();
        let came: BTreeSet<_> = now.difference(&former).copied().collect();
        let went: BTreeSet<_> = former.difference(&now).copied().collect();
        ensure!(joined == came, "{id} was told in {next} that {joined:?} joined, not {came:?}");
        ensure!(left == went, "{id} was told in {next} that {left:?} left, not {went:?}");
        let first = view.members.first().map(|member| member.id);
        ensure!(first == Some(next.coordinator), "{next} is led by {first:?}");
        Ok(())
    }

    /// Whether the member was in no view before it agreed to `view`. It may have given that up and
    /// begun alone: in a later epoch.
    pub fn begins_with(&self, view: ViewId) -> bool {
        self.first_view.is_none_or(|first| first.epoch >= view.epoch)
    }

    /// Installs a view; `is_founding`: no member was in a view before.
    pub fn install(&mut self, view: &View, is_founding: bool) {
        self.first_view.get_or_insert(view.id);
        // The first member of a group has its state; all others get it.
        if is_founding && view.id.coordinator == self.info.id {
            self.wants_state = false;
        }
        if let Some(former) = self.view.replace(view.clone()) {
            self.former = Some(former.id);
            if self.wants_state {
                self.stateless.insert(former.id);
            }
            self.past.insert(former.id, std::mem::take(&mut self.delivered));
        }
        self.total.clear();
        self.truth.starts.insert(view.id, self.truth.to_all.count());
    }

    /// Deliveries in the current view.
    pub fn passage(&self) -> Passage {
        Passage { delivered: self.delivered.clone(), total: self.total.clone() }
    }

    /// The application gives its state of `length` bytes.
    pub fn provide(&mut self, to: MemberId, token: u64, length: usize) -> Vec<u8> {
        let id = self.info.id;
        let mut bytes = vec![0; length.max(24)];
        Payloads::new(id.0 ^ to.0, 3, Sizes::Even(0)).write(token, &mut bytes);
        bytes[..8].copy_from_slice(&id.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&(self.provided.len() as u64).to_le_bytes());
        let view = self.view.as_ref().expect("a member with a state has a view").id;
        let (delivered, total) = (self.delivered.clone(), self.total.clone());
        self.provided.push(Provided { to, bytes: bytes.clone(), view, delivered, total });
        bytes
    }

    /// The state arrives: it contains the messages that its provider had delivered.
    pub fn take_state(&mut self, state: Provided) -> Verdict {
        let id = self.info.id;
        ensure!(self.awaits_state(), "{id} got a state that it did not need");
        let view = self.view.as_ref().map(|view| view.id);
        ensure!(view == Some(state.view), "{id} got a state of {} in {view:?}", state.view);
        self.wants_state = false;
        (self.delivered, self.total) = (state.delivered, state.total);
        Ok(())
    }
}
