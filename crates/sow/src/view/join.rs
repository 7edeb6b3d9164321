//! Joins: records of several topics, indexed by the joined fields.
//!
//! A join row has one record of the first topic and one matching record of each other topic, or
//! none (left outer join). When a record changes, the rows of all records of the first topic that
//! reach it are retracted and added again.

use super::accumulator::Step;
use super::aggregation::{Aggregation, NO_ENVIRONMENT};
use super::groups::RowAge;
use super::plan::Link;
use crate::key::Key;
use crate::record::Record;
use foldhash::fast::RandomState;
use lanecast_filter::Message;
use lanecast_filter::fields::Slot;
use lanecast_filter::row::Row;
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};

/// Joined topics.
#[derive(Debug)]
pub(crate) struct JoinTables {
    /// Records of each topic, by key.
    records: Vec<HashMap<Key, JoinedRecord, RandomState>>,
    /// Join index of each topic but the first.
    join_indexes: Vec<JoinIndex>,
}

/// A record with its parsed fields.
#[derive(Debug)]
pub(crate) struct JoinedRecord {
    pub(crate) record: Record,
    pub(crate) row: Row,
}

/// Index of a join: records of both sides by the joined fields.
#[derive(Debug)]
struct JoinIndex {
    left: usize,
    left_slots: Vec<Slot>,
    right_slots: Vec<Slot>,
    left_keys: Keys,
    right_keys: Keys,
}

type Keys = HashMap<Box<[u8]>, BTreeSet<Key>, RandomState>;

/// The record of each topic in a join row.
type JoinRow<'a> = SmallVec<[Option<&'a JoinedRecord>; 4]>;

impl JoinTables {
    /// Tables for these joins; `slots` are those of the inputs.
    pub(crate) fn new(links: &[Link], slots: &[(usize, Slot)]) -> Self {
        let bound = |inputs: &[usize]| inputs.iter().map(|input| slots[*input].1).collect();
        let join_indexes = links.iter().map(|link| JoinIndex {
            left: link.left,
            left_slots: bound(&link.left_inputs),
            right_slots: bound(&link.right_inputs),
            left_keys: Keys::default(),
            right_keys: Keys::default(),
        });
        let join_indexes: Vec<JoinIndex> = join_indexes.collect();
        Self {
            records: (0..=join_indexes.len()).map(|_| HashMap::default()).collect(),
            join_indexes,
        }
    }

    /// Replaces record `key` of topic `topic`.
    pub(crate) fn change(
        &mut self,
        topic: usize,
        key: Key,
        joined: Option<JoinedRecord>,
        aggregation: &mut Aggregation,
    ) {
        let mut roots = BTreeSet::new();
        if topic == 0 {
            roots.insert(key);
        } else {
            let before = self.records[topic].get(&key);
            for joined in before.into_iter().chain(&joined) {
                self.find_roots(topic, joined, &mut roots);
            }
        }
        self.take(&roots, Step::Retract, aggregation);
        self.replace(topic, key, joined);
        self.take(&roots, Step::Add, aggregation);
    }

    /// Collects the records of the first topic whose rows contain `joined` of topic `topic`.
    fn find_roots(&self, topic: usize, joined: &JoinedRecord, roots: &mut BTreeSet<Key>) {
        let join_index = &self.join_indexes[topic - 1];
        let Some(name) = joined.name(&join_index.right_slots) else { return };
        let Some(keys) = join_index.left_keys.get(&name) else { return };
        if join_index.left == 0 {
            return roots.extend(keys);
        }
        for left in keys.iter().filter_map(|key| self.records[join_index.left].get(key)) {
            self.find_roots(join_index.left, left, roots);
        }
    }

    /// Adds or retracts all rows of these records of the first topic.
    fn take(&self, roots: &BTreeSet<Key>, step: Step, aggregation: &mut Aggregation) {
        for root in roots.iter().filter_map(|key| self.records[0].get(key)) {
            let mut join_row = JoinRow::new();
            join_row.push(Some(root));
            self.extend(&mut join_row, step, aggregation);
        }
    }

    /// Adds or retracts all rows that start with `join_row`.
    fn extend<'a>(&'a self, join_row: &mut JoinRow<'a>, step: Step, aggregation: &mut Aggregation) {
        let topic = join_row.len();
        let Some(join_index) = self.join_indexes.get(topic - 1) else {
            return show(join_row, step, aggregation);
        };
        let name = join_row[join_index.left].and_then(|left| left.name(&join_index.left_slots));
        let keys = name.and_then(|name| join_index.right_keys.get(&name));
        let mut found = keys.into_iter().flatten().peekable();
        // Left outer join: a row without a match remains.
        if found.peek().is_none() {
            join_row.push(None);
            self.extend(join_row, step, aggregation);
            join_row.pop();
        }
        for key in found {
            join_row.push(self.records[topic].get(key));
            self.extend(join_row, step, aggregation);
            join_row.pop();
        }
    }

    /// Replaces a record in the tables.
    fn replace(&mut self, topic: usize, key: Key, joined: Option<JoinedRecord>) {
        if let Some(before) = self.records[topic].remove(&key) {
            self.file(topic, key, &before, Step::Retract);
        }
        if let Some(joined) = joined {
            self.file(topic, key, &joined, Step::Add);
            self.records[topic].insert(key, joined);
        }
    }

    /// Adds a record to the join indexes of its topic, or removes it.
    fn file(&mut self, topic: usize, key: Key, joined: &JoinedRecord, step: Step) {
        for (number, join_index) in self.join_indexes.iter_mut().enumerate() {
            if topic == join_index.left {
                file(&mut join_index.left_keys, joined.name(&join_index.left_slots), key, step);
            }
            if topic == number + 1 {
                file(&mut join_index.right_keys, joined.name(&join_index.right_slots), key, step);
            }
        }
    }
}

/// Adds or retracts the row `join_row`.
fn show(join_row: &JoinRow<'_>, step: Step, aggregation: &mut Aggregation) {
    let parts: SmallVec<[Option<Message<'_>>; 4]> =
        join_row.iter().map(|joined| joined.map(JoinedRecord::message)).collect();
    let age: RowAge =
        join_row.iter().map(|joined| joined.map_or(0, |joined| joined.record.sequence())).collect();
    match step {
        Step::Add => {
            aggregation.add(&parts, &age);
        }
        Step::Retract => {
            if let Some(contribution) = aggregation.contribution(&parts) {
                aggregation.remove(&contribution, &age);
            }
        }
    }
}

impl JoinedRecord {
    fn message(&self) -> Message<'_> {
        Message { row: &self.row, bytes: self.record.bytes(), environment: &NO_ENVIRONMENT }
    }

    /// The values of these fields, each prefixed by its length; `None` if one is NULL.
    fn name(&self, slots: &[Slot]) -> Option<Box<[u8]>> {
        let mut name = Vec::new();
        for slot in slots {
            let text = self.row.text(*slot, self.record.bytes())?;
            name.extend_from_slice(&(text.len() as u64).to_le_bytes());
            name.extend_from_slice(text);
        }
        Some(name.into())
    }
}

fn file(keys: &mut Keys, name: Option<Box<[u8]>>, key: Key, step: Step) {
    let Some(name) = name else { return };
    match step {
        Step::Add => {
            keys.entry(name).or_default().insert(key);
        }
        Step::Retract => {
            if let Some(filed) = keys.get_mut(&name) {
                filed.remove(&key);
                if filed.is_empty() {
                    keys.remove(&name);
                }
            }
        }
    }
}
