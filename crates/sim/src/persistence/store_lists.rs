//! The lists of stores in a world, as its publishers and receivers start.

use super::processes::StoreProcess;
use super::scenario::StoreScenario;
use super::store_list::StoreList;
use crate::rng::SimRng;

/// The lists of the last publishers.
#[derive(Debug)]
pub(super) struct StoreLists {
    /// Publishers and receivers have lists of their own.
    are_many: bool,
    last: StoreList,
    registered: Option<StoreList>,
}

impl StoreLists {
    pub(super) fn new(scenario: &StoreScenario) -> Self {
        let (are_many, last) = (scenario.has_lists(), StoreList::of(scenario));
        Self { are_many, last, registered: None }
    }

    /// A publisher with this list is registered; returns whether the one before had another.
    pub(super) fn on_registered(&mut self, list: &StoreList) -> bool {
        let before = self.registered.replace(list.clone());
        before.is_some_and(|before| before != *list)
    }

    /// The list of a publisher that starts.
    pub(super) fn of_publisher(
        &mut self,
        stores: &[StoreProcess],
        is_quiet: bool,
        rng: &mut SimRng,
    ) -> StoreList {
        self.last = self.draw(stores, is_quiet, rng);
        self.last.clone()
    }

    /// The stores of a publisher or a receiver that starts: all in the end. Before the first run is
    /// registered there is one list, and later ones have a store that knows of the stream: others
    /// would be those of a new stream.
    pub(super) fn draw(
        &self,
        stores: &[StoreProcess],
        is_quiet: bool,
        rng: &mut SimRng,
    ) -> StoreList {
        if !self.are_many || self.registered.is_none() {
            return self.last.clone();
        }
        if is_quiet {
            return StoreList::all(stores.len());
        }
        for _ in 0..20 {
            let list = self.last.changed(stores.len(), rng);
            if list.stores().any(|store| stores[store].knows()) {
                return list;
            }
        }
        self.last.clone()
    }
}
