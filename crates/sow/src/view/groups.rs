//! Groups of a view, found by their grouping values.

use super::accumulator::{Accumulator, Step};
use super::decimal::Decimal;
use super::rational::Rational;
use super::value::ViewValue;
use crate::key::Key;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;

/// Age of a row: sequences of its records, in the order of the topics. The greatest is the latest
/// row.
pub(crate) type RowAge = SmallVec<[u64; 2]>;

/// Accumulators of a group, stored inline beside its key: both are needed at once.
pub(crate) type Accumulators = SmallVec<[Accumulator; 3]>;

/// A group: rows with equal grouping values.
#[derive(Debug)]
pub(crate) struct Group {
    name: SmallVec<[u8; 32]>,
    rows: u64,
    /// For each grouping value, the number of rows in which it is not a text.
    non_text: SmallVec<[u64; 2]>,
    pub(crate) accumulators: Accumulators,
    /// Latest-value fields of each row, by age.
    lasts: BTreeMap<RowAge, Box<[ViewValue<'static>]>>,
    /// Key of its record, once published.
    pub(crate) published: Option<Key>,
    is_changed: bool,
}

/// All groups of a view, and the changed ones.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: Vec<Option<Group>>,
    free: Vec<u32>,
    table: HashTable<u32>,
    state: RandomState,
    changed: VecDeque<u32>,
    /// Group of the last row: the next row is often in it too.
    recent: u32,
}

/// Grouping values of a row, each prefixed by its length.
#[derive(Debug, Default)]
pub(crate) struct GroupKey {
    bytes: Vec<u8>,
    values: u32,
    /// Bitmap of values that are not texts.
    pub(crate) non_text: u64,
}

/// Most grouping values: `non_text` has a bit for each.
pub(crate) const VALUES_MAX: usize = u64::BITS as usize;

impl GroupKey {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        (self.values, self.non_text) = (0, 0);
    }

    /// Adds a value; returns `false` for NULL and other values without a key. Equal numbers have
    /// one spelling.
    pub(crate) fn push(&mut self, value: &ViewValue<'_>) -> bool {
        match value {
            ViewValue::Text(text) => self.push_text(text),
            ViewValue::Bool(truth) => {
                self.push_non_text(|bytes| bytes.extend_from_slice(truth.to_string().as_bytes()))
            }
            ViewValue::Number(Rational::Decimal(number)) => {
                self.push_non_text(|bytes| number.write(bytes))
            }
            ViewValue::Null | ViewValue::Nan | ViewValue::Number(Rational::Quotient(_)) => false,
        }
    }

    /// Adds a text.
    #[inline]
    pub(crate) fn push_text(&mut self, text: &[u8]) -> bool {
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text);
        self.values += 1;
        true
    }

    fn push_non_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let start = self.bytes.len() + LENGTH;
        self.bytes.extend_from_slice(&[0; LENGTH]);
        write(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start - LENGTH..start].copy_from_slice(&length.to_le_bytes());
        self.non_text |= 1 << self.values;
        self.values += 1;
        true
    }
}

const LENGTH: usize = size_of::<u32>();

impl Group {
    fn new(name: &GroupKey, accumulators: Accumulators) -> Self {
        Self {
            name: SmallVec::from_slice(&name.bytes),
            rows: 0,
            non_text: SmallVec::from_elem(0, name.values as usize),
            accumulators,
            lasts: BTreeMap::new(),
            published: None,
            is_changed: false,
        }
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// A grouping value: a text if any row has it as a text.
    pub(crate) fn shared(&self, number: usize) -> ViewValue<'_> {
        let mut rest = &*self.name;
        let mut value: &[u8] = b"";
        for _ in 0..=number {
            let Some((length, behind)) = rest.split_first_chunk() else { return ViewValue::Null };
            let length = (u32::from_le_bytes(*length) as usize).min(behind.len());
            (value, rest) = behind.split_at(length);
        }
        if self.non_text[number] < self.rows {
            return ViewValue::text(value);
        }
        match (value, Decimal::parse(value)) {
            (b"true", _) => ViewValue::Bool(true),
            (b"false", _) => ViewValue::Bool(false),
            (_, Some(decimal)) => ViewValue::Number(Rational::Decimal(decimal)),
            _ => ViewValue::text(value),
        }
    }

    /// A field of its latest row.
    pub(crate) fn last(&self, number: usize) -> ViewValue<'_> {
        let latest = self.lasts.last_key_value();
        latest.and_then(|(_, values)| values.get(number)).cloned().unwrap_or(ViewValue::Null)
    }

    /// Adds the latest-value fields of a row.
    pub(crate) fn add_last(&mut self, age: &RowAge, values: Box<[ViewValue<'static>]>) {
        self.lasts.insert(age.clone(), values);
    }

    /// Removes the latest-value fields of a row.
    pub(crate) fn remove_last(&mut self, age: &RowAge) {
        self.lasts.remove(age);
    }

    #[inline]
    fn count(&mut self, non_text: u64, step: Step) {
        step.apply(&mut self.rows);
        let mut left = non_text;
        while left != 0 {
            step.apply(&mut self.non_text[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
    }
}

impl Groups {
    /// Number of groups, including empty ones that were not refreshed yet.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Counts a row that joins or leaves the group `group_id`.
    #[inline]
    pub(crate) fn take(&mut self, group_id: u32, non_text: u64, step: Step) -> &mut Group {
        let group = self.touch(group_id);
        group.count(non_text, step);
        group
    }

    /// Marks the group `group_id` as changed and returns it.
    #[inline]
    pub(crate) fn touch(&mut self, group_id: u32) -> &mut Group {
        self.recent = group_id;
        let group = self.groups[group_id as usize].as_mut().expect("rows are in groups");
        if !group.is_changed {
            group.is_changed = true;
            self.changed.push_back(group_id);
        }
        group
    }

    /// Id of the group with this key; creates the group if there is none.
    #[inline]
    pub(crate) fn group_id(
        &mut self,
        name: &GroupKey,
        accumulators: impl FnOnce() -> Accumulators,
    ) -> u32 {
        let is_it = |group_id: u32| {
            let group = self.groups.get(group_id as usize).and_then(Option::as_ref);
            group.is_some_and(|group| *group.name == *name.bytes)
        };
        if is_it(self.recent) {
            return self.recent;
        }
        let hash = self.state.hash_one(&*name.bytes);
        match self.table.find(hash, |group_id| is_it(*group_id)) {
            Some(group_id) => *group_id,
            None => self.insert(hash, Group::new(name, accumulators())),
        }
    }

    fn insert(&mut self, hash: u64, group: Group) -> u32 {
        let group_id = self.free.pop().unwrap_or_else(|| {
            self.groups.push(None);
            (self.groups.len() - 1) as u32
        });
        self.groups[group_id as usize] = Some(group);
        let (groups, state) = (&self.groups, &self.state);
        self.table.insert_unique(hash, group_id, |group_id| {
            let group = groups[*group_id as usize].as_ref();
            group.map_or(0, |group| state.hash_one(&*group.name))
        });
        group_id
    }

    /// Number of changed groups.
    pub(crate) fn waiting(&self) -> usize {
        self.changed.len()
    }

    /// The group that has been waiting longest for a refresh.
    pub(crate) fn next_changed(&mut self) -> Option<u32> {
        let group_id = self.changed.pop_front()?;
        if let Some(group) = &mut self.groups[group_id as usize] {
            group.is_changed = false;
        }
        Some(group_id)
    }

    pub(crate) fn get(&self, group_id: u32) -> Option<&Group> {
        self.groups.get(group_id as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, group_id: u32) -> Option<&mut Group> {
        self.groups.get_mut(group_id as usize)?.as_mut()
    }

    /// Removes a group.
    pub(crate) fn remove(&mut self, group_id: u32) {
        let Some(group) = self.groups[group_id as usize].take() else { return };
        let hash = self.state.hash_one(&*group.name);
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == group_id) {
            entry.remove();
        }
        self.free.push(group_id);
    }
}
