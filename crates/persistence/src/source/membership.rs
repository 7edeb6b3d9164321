//! The members of a stream as its stores have recorded them: their quorums decide, whatever the
//! publisher's settings name.
//!
//! Settings that differ lead to a change of the members, which every step of can be survived: from
//! the old members to both together, and on to the new ones, each when enough stores have recorded
//! it. A store that the settings add counts when it has everything that is stable; one that they
//! leave out counts until the new members decide.

use super::known_store::KnownStore;
use crate::quorum::StoreGroups;
use lanecast_wire::store::{Ballot, Grouping, Members, STORES_MAX, StoreState};

/// Members of a stream, and those that are to follow.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// The stores that the settings name.
    listed: StoreGroups,
    /// Version 0 as long as none are known.
    members: Members,
    /// The last run of a store that has told these members.
    told_by: Ballot,
    /// Members that take over when enough stores know of them.
    next: Option<Members>,
    /// The members are the stores that the settings name, in the same groups.
    is_as_listed: bool,
}

impl Membership {
    pub(super) fn new(listed: StoreGroups) -> Self {
        let members = Members::default();
        Self { listed, members, told_by: Ballot::ZERO, next: None, is_as_listed: false }
    }

    pub(super) const fn members(&self) -> &Members {
        &self.members
    }

    /// The members that stores are to record.
    pub(super) fn latest(&self) -> &Members {
        self.next.as_ref().unwrap_or(&self.members)
    }

    /// Takes the latest members that a store has recorded: those of the latest run, since a run
    /// begins with all that was decided before. A stream that no store knows is new: all of the
    /// stores have to answer and become its members, or two that lost their data could forget it.
    pub(super) fn adopt(&mut self, stores: &[KnownStore]) {
        let states = || stores.iter().filter_map(|store| store.state.as_ref());
        let is_recorded = |members: &Members| members.version > 0 && !members.stores.is_empty();
        let recorded = states().filter(|state| is_recorded(&state.members));
        let latest = recorded.max_by_key(|state| (state.log, state.members.version));
        match latest {
            Some(latest) => {
                let known = (self.told_by, self.members.version);
                if (latest.log, latest.members.version) > known {
                    let mut members = latest.members.clone();
                    self.listed.complete(&mut members);
                    self.enter(members);
                    self.told_by = latest.log;
                }
            }
            None if self.members.version == 0 && states().count() == stores.len() => {
                let member = |store: &KnownStore| {
                    Some((store.name.clone(), store.state.as_ref()?.incarnation))
                };
                let stores = stores.iter().filter_map(member).collect();
                self.enter(Members::first(stores, vec![self.listed.grouping().clone()]));
            }
            None => {}
        }
    }

    /// Another run begins: it goes on with the members that stores have recorded.
    pub(super) fn begin_anew(&mut self) {
        self.next = None;
    }

    fn enter(&mut self, members: Members) {
        let are_named = members.stores.len() == self.listed.names().count() && !members.is_joint();
        let grouping = self.listed.grouping_of(&members.stores).normal();
        self.is_as_listed = are_named && members.groupings.iter().all(|it| it.normal() == grouping);
        self.members = members;
    }

    /// Whether the members that answer so know every stable message.
    pub(super) fn is_recovery_quorum(
        &self,
        stores: &[KnownStore],
        answers: impl Fn(&KnownStore, &StoreState) -> bool,
    ) -> bool {
        self.members.is_recovery_quorum(|name, incarnation| {
            let member = member(stores, name, incarnation);
            member.is_some_and(|(store, state)| answers(store, state))
        })
    }

    /// Whether enough stores have begun a run: of the members, and of those that the settings name.
    pub(super) fn has_begun(&self, stores: &[KnownStore], ballot: Ballot) -> bool {
        let has_begun = |name: &str, incarnation| {
            member(stores, name, incarnation).is_some_and(|(_, state)| state.log == ballot)
        };
        self.members.is_write_quorum(has_begun)
            && self.listed.is_write_quorum(|store| stores[store].has_begun(ballot))
    }

    /// Sequence of the first message that too few stores have on disk: of the members, of those
    /// that are to follow, and of those that the settings name.
    pub(super) fn stable(&self, stores: &[KnownStore], ballot: Ballot) -> u64 {
        // A quorum of members is one of the stores that the settings name if these are the same.
        let listed = match self.is_as_listed {
            true => u64::MAX,
            false => self.listed.reached(|store| stores[store].durable(ballot)),
        };
        let next = self.next.as_ref().map_or(u64::MAX, |next| durable(next, stores, ballot));
        durable(&self.members, stores, ballot).min(next).min(listed)
    }

    /// Sequence of the first message that a registered receiver has not consumed, as enough members
    /// know.
    pub(super) fn consumed(&self, stores: &[KnownStore], ballot: Ballot) -> u64 {
        self.members.reached(|name, incarnation| {
            let state = member(stores, name, incarnation).map(|(_, state)| state);
            state.filter(|state| state.log == ballot).map_or(0, |state| state.consumed)
        })
    }

    /// Sequence of the oldest message that a member keeps, if all have answered.
    pub(super) fn oldest(&self, stores: &[KnownStore], ballot: Ballot) -> Option<u64> {
        let first = |(name, incarnation): &(String, u64)| {
            let (_, state) = member(stores, name, *incarnation)?;
            (state.log == ballot).then_some(state.first)
        };
        let firsts = self.members.stores.iter().map(first).collect::<Option<Vec<u64>>>()?;
        firsts.into_iter().min()
    }

    /// Goes on with a change of the members, when everything before `stable` is stable; returns
    /// whether stores have to be told.
    pub(super) fn advance(&mut self, stores: &[KnownStore], ballot: Ballot, stable: u64) -> bool {
        let is_wiped = |store: &KnownStore| store.is_wiped(&self.members);
        if self.next.is_none() && self.is_as_listed && !stores.iter().any(is_wiped) {
            return false;
        }
        if let Some(next) = self.next.take() {
            let is_known = |of: &Members| is_recorded(of, next.version, stores, ballot);
            if !(is_known(&self.members) && is_known(&next)) {
                self.next = Some(next);
                return false;
            }
            self.enter(next);
        }
        // A later run has to find them before others follow.
        if !is_recorded(&self.members, self.members.version, stores, ballot) {
            return false;
        }
        let is_whole =
            |store: &KnownStore| store.has_begun(ballot) && store.durable(ballot) >= stable;
        let has_all = |members: &Members| {
            let member = |name: &str, incarnation| member(stores, name, incarnation);
            members.is_write_quorum(|name, it| member(name, it).is_some_and(|it| is_whole(it.0)))
        };
        let whole = || stores.iter().filter(|store| is_whole(store));
        self.next = changed(&self.members)
            .filter(has_all)
            .or_else(|| self.replaced(whole()))
            .or_else(|| self.joint(whole(), has_all));
        self.next.is_some()
    }

    /// The members with a store that has other data than the member of its name: one at a time.
    fn replaced<'a>(&self, mut joiners: impl Iterator<Item = &'a KnownStore>) -> Option<Members> {
        let joiner = joiners.find(|store| store.is_wiped(&self.members))?;
        let incarnation = joiner.state.as_ref()?.incarnation;
        let mut members = self.members.clone();
        let place = members.stores.iter().position(|(name, _)| *name == joiner.name)?;
        members.version += 1;
        members.stores.remove(place);
        members.stores.push((joiner.name.clone(), incarnation));
        members.founders -= usize::from(place < members.founders);
        for grouping in &mut members.groupings {
            let group = grouping.groups.remove(place);
            grouping.groups.push(group);
        }
        Some(members)
    }

    /// The members together with those that the settings name: members among them as they are, and
    /// others that have everything; if those have a quorum.
    fn joint<'a>(
        &self,
        joiners: impl Iterator<Item = &'a KnownStore>,
        has_all: impl Fn(&Members) -> bool,
    ) -> Option<Members> {
        if self.members.is_joint() {
            return None;
        }
        let mut members = self.members.clone();
        let old = members.groupings.first_mut()?;
        let room = STORES_MAX.saturating_sub(members.stores.len());
        let newcomers = joiners.filter(|it| self.members.incarnation(&it.name).is_none());
        for newcomer in newcomers.take(room) {
            members.stores.push((newcomer.name.clone(), newcomer.state.as_ref()?.incarnation));
            old.groups.push(None);
        }
        let new = self.listed.grouping_of(&members.stores);
        if old.normal() == new.normal() {
            return None;
        }
        members.groupings.push(new);
        members.version += 1;
        changed(&members).is_some_and(|new| has_all(&new)).then_some(members)
    }

    /// Members that the settings do not name.
    pub(super) fn unlisted(&self) -> Vec<String> {
        let names = self.members.stores.iter().map(|(name, _)| name);
        names.filter(|name| self.listed.index(name).is_none()).cloned().collect()
    }

    /// Stores that have answered, and are no members.
    pub(super) fn newcomers(&self, stores: &[KnownStore]) -> Vec<String> {
        let is_new = |store: &&KnownStore| {
            store.state.is_some() && self.members.incarnation(&store.name).is_none()
        };
        let newcomers = stores.iter().filter(|_| self.members.version > 0).filter(is_new);
        newcomers.map(|store| store.name.clone()).collect()
    }
}

/// A member's store, with its last answer.
fn member<'a>(
    stores: &'a [KnownStore],
    name: &str,
    incarnation: u64,
) -> Option<(&'a KnownStore, &'a StoreState)> {
    let store = stores.iter().find(|store| store.name == name)?;
    let state = store.state.as_ref().filter(|state| state.incarnation == incarnation)?;
    Some((store, state))
}

/// Sequence of the first message that too few of `members` have on disk.
fn durable(members: &Members, stores: &[KnownStore], ballot: Ballot) -> u64 {
    members.reached(|name, incarnation| {
        member(stores, name, incarnation).map_or(0, |(store, _)| store.durable(ballot))
    })
}

/// Whether enough of the members `of` have recorded those of `version` in this run.
fn is_recorded(of: &Members, version: u64, stores: &[KnownStore], ballot: Ballot) -> bool {
    of.is_write_quorum(|name, incarnation| {
        let state = member(stores, name, incarnation).map(|(_, state)| state);
        state.is_some_and(|state| state.log == ballot && state.members.version >= version)
    })
}

/// The members that follow joint ones: those that have a part in the new groups.
fn changed(members: &Members) -> Option<Members> {
    let [_, Grouping { rule, groups }] = members.groupings.as_slice() else { return None };
    let stays = |place: &usize| groups.get(*place).is_some_and(Option::is_some);
    let places: Vec<usize> = (0..members.stores.len()).filter(stays).collect();
    let stores = places.iter().map(|place| members.stores[*place].clone()).collect();
    let founders = places.iter().filter(|place| **place < members.founders).count();
    let grouping = places.iter().map(|place| groups[*place]).collect();
    let groupings = vec![Grouping { rule: *rule, groups: grouping }];
    Some(Members { version: members.version + 1, stores, founders, groupings })
}
