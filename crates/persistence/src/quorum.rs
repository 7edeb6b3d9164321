//! Stores of a stream, in groups, and the sets of them that decide.

use lanecast_wire::store::{GroupRule, Grouping, Members, STORE_NAME_MAX, STORES_MAX};

/// The stores that a publisher works with, in groups. A group holds a message if more than half of
/// its stores have it on disk.
///
/// ```
/// use lanecast_persistence::{GroupRule, StoreGroups};
///
/// let stores = StoreGroups::new(vec![vec!["a", "b", "c"]], GroupRule::Any)?;
/// assert!(stores.is_write_quorum(|store| store != 1));
/// assert!(!stores.is_write_quorum(|store| store == 1));
/// # Ok::<(), lanecast_persistence::GroupsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreGroups {
    names: Vec<String>,
    grouping: Grouping,
}

/// Groups of stores that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupsError {
    /// No store, or a group without one.
    #[error("a group without a store: name at least one in each")]
    Empty,
    /// A name twice, without a letter, or too long.
    #[error("store name {0:?}: each name stands once and has 1 to {STORE_NAME_MAX} bytes")]
    Name(String),
    /// Too many stores.
    #[error("{0} stores: at most {STORES_MAX}")]
    TooMany(usize),
}

impl StoreGroups {
    /// The stores of `groups`.
    ///
    /// # Errors
    /// See [`GroupsError`].
    pub fn new<S: Into<String>>(groups: Vec<Vec<S>>, rule: GroupRule) -> Result<Self, GroupsError> {
        let groups: Vec<Vec<String>> =
            groups.into_iter().map(|group| group.into_iter().map(Into::into).collect()).collect();
        if groups.is_empty() || groups.iter().any(Vec::is_empty) {
            return Err(GroupsError::Empty);
        }
        let count = groups.iter().map(Vec::len).sum();
        if count > STORES_MAX {
            return Err(GroupsError::TooMany(count));
        }
        // Fewer groups than stores, which were counted.
        let numbers = (0_u8..).zip(&groups);
        let numbers = numbers.flat_map(|(number, group)| group.iter().map(move |_| Some(number)));
        let grouping = Grouping { rule, groups: numbers.collect() };
        let names: Vec<String> = groups.into_iter().flatten().collect();
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() || name.len() > STORE_NAME_MAX || names[..index].contains(name) {
                return Err(GroupsError::Name(name.clone()));
            }
        }
        Ok(Self { names, grouping })
    }

    /// The names of the stores; a store's index is its place here.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().map(String::as_str)
    }

    /// The index of the store with this name.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|it| it == name)
    }

    /// The groups of the stores.
    pub(crate) const fn grouping(&self) -> &Grouping {
        &self.grouping
    }

    /// Whether a message that exactly these stores have on disk is stable.
    pub fn is_write_quorum(&self, has: impl Fn(usize) -> bool) -> bool {
        self.grouping.is_write_quorum(has)
    }

    /// Whether these stores together know every stable message: the others alone could not have
    /// made one stable.
    pub fn is_recovery_quorum(&self, answered: impl Fn(usize) -> bool) -> bool {
        self.grouping.is_recovery_quorum(answered)
    }

    /// The largest number that a write quorum has reached.
    pub fn reached(&self, next: impl Fn(usize) -> u64) -> u64 {
        self.grouping.reached(next)
    }

    /// The groups that these stores give to `members`, which have a part in them or none.
    pub(crate) fn grouping_of(&self, members: &[(String, u64)]) -> Grouping {
        let group = |(name, _): &(String, u64)| self.grouping.groups[self.index(name)?];
        let groups = members.iter().map(group).collect();
        Grouping { rule: self.grouping.rule, groups }
    }

    /// Gives groups to members that an earlier build has recorded without them: these groups if
    /// they name the same stores. Otherwise the groups of then are not known, and any one member
    /// may have decided: all have to be asked.
    pub fn complete(&self, members: &mut Members) {
        if members.stores.is_empty() || !members.groupings.is_empty() {
            return;
        }
        let mut grouping = self.grouping_of(&members.stores);
        let is_same =
            members.stores.len() == self.names.len() && grouping.groups.iter().all(Option::is_some);
        if !is_same {
            let groups = (0_u8..).zip(&members.stores).map(|(number, _)| Some(number));
            grouping = Grouping { rule: GroupRule::Any, groups: groups.collect() };
        }
        members.groupings.push(grouping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(sizes: &[usize], rule: GroupRule) -> StoreGroups {
        let mut number = 0;
        let names = sizes.iter().map(|size| {
            number += size;
            (number - size..number).map(|store| format!("s{store}")).collect()
        });
        StoreGroups::new(names.collect(), rule).unwrap()
    }

    #[test]
    fn every_write_quorum_meets_every_recovery_quorum() {
        for rule in [GroupRule::Any, GroupRule::Majority, GroupRule::All] {
            for sizes in [&[1][..], &[3], &[4], &[5], &[3, 3], &[1, 3, 2], &[1, 1, 1, 1]] {
                let stores = groups(sizes, rule);
                let count: usize = sizes.iter().sum();
                let sets = 0..1_u32 << count;
                let has = |set: u32| move |store: usize| set >> store & 1 == 1;
                let all = (1 << count) - 1;
                assert!(stores.is_write_quorum(has(all)) && stores.is_recovery_quorum(has(all)));
                assert!(!stores.is_write_quorum(has(0)) && !stores.is_recovery_quorum(has(0)));
                for write in sets.clone().filter(|set| stores.is_write_quorum(has(*set))) {
                    for read in sets.clone().filter(|set| stores.is_recovery_quorum(has(*set))) {
                        assert_ne!(write & read, 0, "{rule:?} {sizes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_message_is_stable_when_a_majority_has_it() {
        let stores = groups(&[3], GroupRule::Any);
        assert_eq!(stores.reached(|store| [7, 9, 3][store]), 7);
        let both = groups(&[3, 3], GroupRule::All);
        assert_eq!(both.reached(|store| [7, 9, 3, 1, 5, 6][store]), 5);
        let any = groups(&[3, 3], GroupRule::Any);
        assert_eq!(any.reached(|store| [7, 9, 3, 1, 5, 6][store]), 7);
    }

    #[test]
    fn groups_that_cannot_work_are_refused() {
        let none: Vec<Vec<&str>> = Vec::new();
        assert_eq!(StoreGroups::new(none, GroupRule::Any), Err(GroupsError::Empty));
        let empty = vec![vec!["a"], vec![]];
        assert_eq!(StoreGroups::new(empty, GroupRule::Any), Err(GroupsError::Empty));
        let twice = vec![vec!["a"], vec!["a"]];
        assert!(matches!(StoreGroups::new(twice, GroupRule::Any), Err(GroupsError::Name(_))));
        let many = vec![(0..65).map(|store| store.to_string()).collect::<Vec<_>>()];
        assert_eq!(StoreGroups::new(many, GroupRule::Any), Err(GroupsError::TooMany(65)));
    }
}
