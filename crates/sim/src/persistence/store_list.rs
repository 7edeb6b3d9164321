//! The stores that a publisher or a receiver names, among all of a world.

use super::scenario::StoreScenario;
use crate::rng::SimRng;
use lanecast_persistence::{GroupRule, StoreGroups};

/// Stores of a world in the groups of one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoreList {
    groups: Vec<Vec<usize>>,
    rule: GroupRule,
}

impl StoreList {
    /// The list that the scenario begins with.
    pub(super) fn of(scenario: &StoreScenario) -> Self {
        let mut next = 0;
        let group = |size: &usize| {
            next += size;
            (next - size..next).collect()
        };
        Self { groups: scenario.groups.iter().map(group).collect(), rule: scenario.rule }
    }

    /// All stores in one group.
    pub(super) fn all(count: usize) -> Self {
        Self { groups: vec![(0..count).collect()], rule: GroupRule::Any }
    }

    /// Another list, which leaves out a few stores of this one, and names others of `count`.
    pub(super) fn changed(&self, count: usize, rng: &mut SimRng) -> Self {
        let mut stores: Vec<usize> = self.stores().collect();
        for _ in 0..rng.within(0..=2) {
            if stores.len() > 1 {
                stores.remove(rng.within(0..=stores.len() as u64 - 1) as usize);
            }
        }
        for _ in 0..rng.within(0..=2) {
            let other = rng.within(0..=count as u64 - 1) as usize;
            if !stores.contains(&other) {
                stores.insert(rng.within(0..=stores.len() as u64) as usize, other);
            }
        }
        let rule = rng.pick(&[GroupRule::Any, GroupRule::Majority, GroupRule::All]);
        if rng.percent(60) || stores.len() < 2 {
            return Self { groups: vec![stores], rule };
        }
        let behind = stores.split_off(rng.within(1..=stores.len() as u64 - 1) as usize);
        Self { groups: vec![stores, behind], rule }
    }

    /// The stores, in the order of the list.
    pub(super) fn stores(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().flatten().copied()
    }

    /// The place of a store in the list.
    pub(super) fn place(&self, store: usize) -> Option<usize> {
        self.stores().position(|it| it == store)
    }

    /// The store at a place of the list.
    pub(super) fn store(&self, place: usize) -> usize {
        self.stores().nth(place).expect("a place of the list")
    }

    /// The groups by their stores' names.
    pub(super) fn groups(&self) -> StoreGroups {
        let name = |store: &usize| StoreScenario::store_name(*store);
        let groups = self.groups.iter().map(|group| group.iter().map(name).collect());
        StoreGroups::new(groups.collect::<Vec<Vec<String>>>(), self.rule)
            .expect("names that differ")
    }
}
