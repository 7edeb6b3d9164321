//! Joined topics: the records of each, found by what they are joined by.
//!
//! A row of a join is made of one record of the first topic, and of one record of each other topic
//! that matches, or none. When a record changes, all rows of those records of the first topic go
//! that it has or may have a part in, and come back as they are then.

use super::accumulator::Step;
use super::blueprint::Link;
use super::fold::{Fold, NOWHERE};
use super::groups::Age;
use crate::key::Key;
use crate::record::Record;
use foldhash::fast::RandomState;
use lanecast_filter::Message;
use lanecast_filter::fields::Slot;
use lanecast_filter::row::Row;
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};

/// The topics of a join.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Of each topic, the records by key.
    records: Vec<HashMap<Key, Held, RandomState>>,
    /// How records of each topic but the first are found.
    ties: Vec<Tie>,
}

/// A record that may be part of rows.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) record: Record,
    pub(crate) row: Row,
}

/// A link, and the records on both of its sides by the texts that have to be equal.
#[derive(Debug)]
struct Tie {
    left: usize,
    left_slots: Vec<Slot>,
    right_slots: Vec<Slot>,
    left_keys: Keys,
    right_keys: Keys,
}

type Keys = HashMap<Box<[u8]>, BTreeSet<Key>, RandomState>;

/// The record that stands at each topic in a row that is being made.
type Line<'a> = SmallVec<[Option<&'a Held>; 4]>;

impl Tables {
    /// Tables for these links, whose inputs have these slots.
    pub(crate) fn new(links: &[Link], slots: &[(usize, Slot)]) -> Self {
        let bound = |inputs: &[usize]| inputs.iter().map(|input| slots[*input].1).collect();
        let ties = links.iter().map(|link| Tie {
            left: link.left,
            left_slots: bound(&link.left_inputs),
            right_slots: bound(&link.right_inputs),
            left_keys: Keys::default(),
            right_keys: Keys::default(),
        });
        let ties: Vec<Tie> = ties.collect();
        Self { records: (0..=ties.len()).map(|_| HashMap::default()).collect(), ties }
    }

    /// The record `key` of topic `topic` is now `held`.
    pub(crate) fn change(&mut self, topic: usize, key: Key, held: Option<Held>, fold: &mut Fold) {
        let mut roots = BTreeSet::new();
        if topic == 0 {
            roots.insert(key);
        } else {
            let before = self.records[topic].get(&key);
            for held in before.into_iter().chain(&held) {
                self.find_roots(topic, held, &mut roots);
            }
        }
        self.take(&roots, Step::Retract, fold);
        self.replace(topic, key, held);
        self.take(&roots, Step::Add, fold);
    }

    /// Adds the records of the first topic whose rows `held` of topic `topic` has a part in.
    fn find_roots(&self, topic: usize, held: &Held, roots: &mut BTreeSet<Key>) {
        let tie = &self.ties[topic - 1];
        let Some(name) = held.name(&tie.right_slots) else { return };
        let Some(keys) = tie.left_keys.get(&name) else { return };
        if tie.left == 0 {
            return roots.extend(keys);
        }
        for left in keys.iter().filter_map(|key| self.records[tie.left].get(key)) {
            self.find_roots(tie.left, left, roots);
        }
    }

    /// Shows `fold` the rows of these records of the first topic.
    fn take(&self, roots: &BTreeSet<Key>, step: Step, fold: &mut Fold) {
        for root in roots.iter().filter_map(|key| self.records[0].get(key)) {
            let mut line = Line::new();
            line.push(Some(root));
            self.extend(&mut line, step, fold);
        }
    }

    /// Shows `fold` all rows that start with `line`.
    fn extend<'a>(&'a self, line: &mut Line<'a>, step: Step, fold: &mut Fold) {
        let topic = line.len();
        let Some(tie) = self.ties.get(topic - 1) else {
            return show(line, step, fold);
        };
        let name = line[tie.left].and_then(|left| left.name(&tie.left_slots));
        let keys = name.and_then(|name| tie.right_keys.get(&name));
        let mut found = keys.into_iter().flatten().peekable();
        if found.peek().is_none() {
            line.push(None);
            self.extend(line, step, fold);
            line.pop();
        }
        for key in found {
            line.push(self.records[topic].get(key));
            self.extend(line, step, fold);
            line.pop();
        }
    }

    /// Puts `held` in the place of what was there.
    fn replace(&mut self, topic: usize, key: Key, held: Option<Held>) {
        if let Some(before) = self.records[topic].remove(&key) {
            self.file(topic, key, &before, Step::Retract);
        }
        if let Some(held) = held {
            self.file(topic, key, &held, Step::Add);
            self.records[topic].insert(key, held);
        }
    }

    /// Files a record on each side of a tie that its topic stands on, or takes it out.
    fn file(&mut self, topic: usize, key: Key, held: &Held, step: Step) {
        for (number, tie) in self.ties.iter_mut().enumerate() {
            if topic == tie.left {
                file(&mut tie.left_keys, held.name(&tie.left_slots), key, step);
            }
            if topic == number + 1 {
                file(&mut tie.right_keys, held.name(&tie.right_slots), key, step);
            }
        }
    }
}

/// Shows `fold` the row that is made of `line`.
fn show(line: &Line<'_>, step: Step, fold: &mut Fold) {
    let parts: SmallVec<[Option<Message<'_>>; 4]> =
        line.iter().map(|held| held.map(Held::message)).collect();
    let age: Age = line.iter().map(|held| held.map_or(0, |held| held.record.sequence())).collect();
    match step {
        Step::Add => {
            fold.add(&parts, &age);
        }
        Step::Retract => {
            if let Some(share) = fold.share(&parts) {
                fold.remove(&share, &age);
            }
        }
    }
}

impl Held {
    fn message(&self) -> Message<'_> {
        Message { row: &self.row, bytes: self.record.bytes(), environment: &NOWHERE }
    }

    /// The texts in these fields, each behind its length; nothing if one is NULL.
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
