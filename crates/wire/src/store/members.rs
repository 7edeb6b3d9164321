//! The stores that hold a stream, and the groups in which they decide.

use super::lists::{add_name, bounded, name};
use super::{STORE_NAME_MAX, STORES_MAX};
use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

/// Bit of the count that tells that groups follow the stores. Builds before version 3 of the frames
/// have recorded members without them.
const HAS_GROUPS: u8 = 0x80;
/// Group of a store that has no part in a grouping.
const NO_GROUP: u8 = 0xff;

/// The number of groups that have to hold a message before it is stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupRule {
    /// One group.
    #[default]
    Any,
    /// More than half of the groups.
    Majority,
    /// Every group.
    All,
}

impl GroupRule {
    const fn byte(self) -> u8 {
        match self {
            Self::Any => 1,
            Self::Majority => 2,
            Self::All => 3,
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Any),
            2 => Some(Self::Majority),
            3 => Some(Self::All),
            _ => None,
        }
    }
}

/// Groups of stores, and the number of them that decides. A group decides by more than half of its
/// stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// The number of groups that decides.
    pub rule: GroupRule,
    /// The group of each store, below [`STORES_MAX`], in the order of the stores; `None` for one
    /// that has no part.
    pub groups: Vec<Option<u8>>,
}

impl Grouping {
    /// Whether a message that exactly these stores have on disk is stable; a store is named by its
    /// place.
    pub fn is_write_quorum(&self, has: impl Fn(usize) -> bool) -> bool {
        let (mut sizes, mut holders) = ([0_u8; STORES_MAX], [0_u8; STORES_MAX]);
        for (store, group) in self.groups.iter().enumerate() {
            let group = group.map(usize::from).filter(|group| *group < STORES_MAX);
            if let Some(group) = group {
                sizes[group] += 1;
                holders[group] += u8::from(has(store));
            }
        }
        let groups = sizes.iter().filter(|size| **size > 0).count();
        let holding = sizes.iter().zip(&holders).filter(|(size, holders)| 2 * **holders > **size);
        let holding = holding.count();
        match self.rule {
            GroupRule::Any => holding > 0,
            GroupRule::Majority => 2 * holding > groups,
            GroupRule::All => holding > 0 && holding == groups,
        }
    }

    /// Whether these stores together know every stable message: the others alone could not have
    /// made one stable.
    pub fn is_recovery_quorum(&self, answered: impl Fn(usize) -> bool) -> bool {
        !self.is_write_quorum(|store| !answered(store))
    }

    /// The largest number that a write quorum has reached.
    pub fn reached(&self, next: impl Fn(usize) -> u64) -> u64 {
        let numbers: Vec<u64> = (0..self.groups.len()).map(next).collect();
        let mut descending = numbers.clone();
        descending.sort_unstable_by(|a, b| b.cmp(a));
        let is_reached = |number: &u64| self.is_write_quorum(|store| numbers[store] >= *number);
        descending.into_iter().find(is_reached).unwrap_or(0)
    }

    /// The same groups with numbers in the order in which the stores name them, and one rule for a
    /// single group: two groupings of the same stores are equal then if they decide alike.
    #[must_use]
    pub fn normal(&self) -> Self {
        let mut numbers: Vec<u8> = Vec::new();
        let number = |group: &Option<u8>| {
            let group = (*group)?;
            let known = numbers.iter().position(|it| *it == group);
            let place = known.unwrap_or_else(|| {
                numbers.push(group);
                numbers.len() - 1
            });
            u8::try_from(place).ok()
        };
        let groups = self.groups.iter().map(number).collect();
        let rule = if numbers.len() > 1 { self.rule } else { GroupRule::Any };
        Self { rule, groups }
    }
}

/// The stores that hold a stream: each by its name and its incarnation, which is the identity of
/// its data. A store that lost its data comes back with another incarnation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Grows by one with each change; 0: the stream does not exist yet.
    pub version: u64,
    /// Names and incarnations. Those that join later stand behind those that were there.
    pub stores: Vec<(String, u64)>,
    /// Members since the first version: so many at the beginning of the list.
    pub founders: usize,
    /// The groups in which the members decide. Two while the members change: a decision needs
    /// both. None if an earlier build has recorded the members.
    pub groupings: Vec<Grouping>,
}

impl Members {
    /// The first members of a stream.
    pub const fn first(stores: Vec<(String, u64)>, grouping: Vec<Grouping>) -> Self {
        let founders = stores.len();
        Self { version: 1, stores, founders, groupings: grouping }
    }

    /// Members as an earlier build has recorded them. Each version added one store, at the end.
    pub fn without_groups(version: u64, stores: Vec<(String, u64)>) -> Self {
        let joined = usize::try_from(version.saturating_sub(1)).unwrap_or(usize::MAX);
        let founders = stores.len().saturating_sub(joined);
        Self { version, stores, founders, groupings: Vec::new() }
    }

    /// The incarnation of the member with this name.
    pub fn incarnation(&self, name: &str) -> Option<u64> {
        self.stores.iter().find(|(it, _)| it == name).map(|(_, incarnation)| *incarnation)
    }

    /// Whether the member with this name may have joined after the first version.
    pub fn may_have_joined_late(&self, name: &str) -> bool {
        self.stores.iter().skip(self.founders).any(|(it, _)| it == name)
    }

    /// Whether a decision needs the members of before and those that follow.
    pub const fn is_joint(&self) -> bool {
        self.groupings.len() > 1
    }

    /// Whether the members change, and the one with this name has no part in them before.
    pub fn is_joining(&self, name: &str) -> bool {
        self.is_joint() && !self.has_part(0, name)
    }

    /// Whether the members change, and the one with this name has no part in them afterwards.
    pub fn is_leaving(&self, name: &str) -> bool {
        self.is_joint() && !self.has_part(1, name)
    }

    fn has_part(&self, grouping: usize, name: &str) -> bool {
        let place = self.stores.iter().position(|(it, _)| it == name);
        let groups = self.groupings.get(grouping).map(|it| &it.groups);
        let group = place.zip(groups).and_then(|(place, groups)| groups.get(place));
        group.is_some_and(Option::is_some)
    }

    /// Whether a message that exactly these members have on disk is stable, by their names and
    /// incarnations. Without groups none is.
    pub fn is_write_quorum(&self, has: impl Fn(&str, u64) -> bool) -> bool {
        let has = |store: usize| self.stores.get(store).is_some_and(|(name, it)| has(name, *it));
        !self.groupings.is_empty() && self.groupings.iter().all(|it| it.is_write_quorum(has))
    }

    /// Whether these members together know every stable message. Without groups none do.
    pub fn is_recovery_quorum(&self, answered: impl Fn(&str, u64) -> bool) -> bool {
        let has =
            |store: usize| self.stores.get(store).is_some_and(|(name, it)| answered(name, *it));
        !self.groupings.is_empty() && self.groupings.iter().all(|it| it.is_recovery_quorum(has))
    }

    /// The largest number that a write quorum has reached.
    pub fn reached(&self, next: impl Fn(&str, u64) -> u64) -> u64 {
        let next = |store: usize| self.stores.get(store).map_or(0, |(name, it)| next(name, *it));
        self.groupings.iter().map(|it| it.reached(next)).min().unwrap_or(0)
    }

    /// Bytes of the members in a frame.
    pub(super) fn length(&self) -> usize {
        let stores: usize = self.stores.iter().map(|(name, _)| 9 + name.len()).sum();
        let groups: usize = self.groupings.iter().map(|it| 1 + it.groups.len()).sum();
        9 + stores + if self.groupings.is_empty() { 0 } else { 2 + groups }
    }

    /// Appends the members to a frame or a record.
    ///
    /// # Panics
    /// If there are too many, or a name is too long: lists are checked before.
    pub(super) fn write(&self, frame: &mut Vec<u8>) {
        assert!(self.stores.len() <= STORES_MAX, "a list that was checked");
        let has_groups = !self.groupings.is_empty();
        frame.extend(self.version.to_le_bytes());
        frame.push(self.stores.len() as u8 | if has_groups { HAS_GROUPS } else { 0 });
        for (name, incarnation) in &self.stores {
            frame.extend(incarnation.to_le_bytes());
            add_name(name, frame);
        }
        if has_groups {
            frame.extend([self.founders as u8, self.groupings.len() as u8]);
        }
        for grouping in &self.groupings {
            frame.push(grouping.rule.byte());
            frame.extend(grouping.groups.iter().map(|group| group.unwrap_or(NO_GROUP)));
        }
    }

    /// Reads members; returns them and the bytes behind.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (version, rest) = U64::read_from_prefix(bytes).ok()?;
        let (count, mut rest) = rest.split_first()?;
        let (count, has_groups) = (usize::from(count & !HAS_GROUPS), count & HAS_GROUPS != 0);
        if count > STORES_MAX {
            return None;
        }
        let mut stores: Vec<(String, u64)> = Vec::new();
        for _ in 0..count {
            let (incarnation, behind) = U64::read_from_prefix(rest).ok()?;
            let (name, behind) = name(behind)?;
            if name.is_empty() || stores.iter().any(|(it, _)| it == name) {
                return None;
            }
            stores.push((name.to_owned(), incarnation.get()));
            rest = behind;
        }
        let version = bounded(version)?;
        if !has_groups {
            return Some((Self::without_groups(version, stores), rest));
        }
        let ([founders, changes], mut rest) = rest.split_first_chunk()?;
        let founders = usize::from(*founders);
        if founders > count || !(1..=2).contains(changes) {
            return None;
        }
        let mut groupings = Vec::new();
        for _ in 0..*changes {
            let (grouping, behind) = read_grouping(rest, count)?;
            groupings.push(grouping);
            rest = behind;
        }
        Some((Self { version, stores, founders, groupings }, rest))
    }
}

/// Reads the groups of `count` stores: at least one of them has a group.
fn read_grouping(bytes: &[u8], count: usize) -> Option<(Grouping, &[u8])> {
    let (rule, rest) = bytes.split_first()?;
    let rule = GroupRule::from_byte(*rule)?;
    let (groups, rest) = rest.split_at_checked(count)?;
    let group = |group: &u8| match *group {
        NO_GROUP => Some(None),
        group if usize::from(group) < STORES_MAX => Some(Some(group)),
        _ => None,
    };
    let groups = groups.iter().map(group).collect::<Option<Vec<_>>>()?;
    let has_some = groups.iter().any(Option::is_some);
    has_some.then_some((Grouping { rule, groups }, rest))
}

const _: () = assert!(STORES_MAX < HAS_GROUPS as usize && STORE_NAME_MAX <= u8::MAX as usize);
