//! A deletion on its way through a topic that goes on changing.
//!
//! It covers the records that the topic had when it began, and as they were then: as if all were
//! deleted at once. It looks at some records at a time. A record that is about to change before its
//! turn is [looked at](Deletion::is_target) first; what is published after that is none of the
//! deletion's.

use crate::change::Change;
use crate::key::Key;
use crate::query::Query;
use crate::topic::Topic;
use lanecast_filter::fields::{FieldSet, TooManyFields};
use lanecast_filter::interpreter::Environment;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Message, Plan};

/// A deletion of the records that meet a query's filter, or have its keys.
///
/// Whoever runs it deletes the records that it [names](Self::next), asks it before other changes of
/// the topic whether it [claims](Self::is_target) the record, and [tells](Self::on_change) it of them.
#[derive(Debug)]
pub struct Deletion {
    unix_ns: u64,
    plan: Option<Plan>,
    reader: Reader,
    row: Row,
    /// The places that are looked at; all up to `end` if none.
    row_ids: Option<Vec<u32>>,
    end: u32,
    /// How many had their turn.
    next: u32,
    /// A bit for each that is settled before its turn.
    visited: Vec<u64>,
}

impl Deletion {
    /// Begins to delete as of now.
    ///
    /// # Errors
    ///
    /// If the filter names more fields than there is room for.
    pub fn new(topic: &Topic, query: &Query, now_ns: u64) -> Result<Self, TooManyFields> {
        let mut fields = FieldSet::new(topic.definition().format);
        let filter = query.filter.as_ref();
        let plan = filter.map(|filter| Plan::new(filter, &mut fields)).transpose()?;
        let row_ids = topic.candidates(query).map(|mut row_ids| {
            row_ids.sort_unstable();
            row_ids.dedup();
            row_ids
        });
        let end = row_ids.as_ref().map_or(topic.end(), |row_ids| row_ids.len() as u32);
        Ok(Self {
            unix_ns: now_ns,
            plan,
            reader: Reader::new(&fields),
            row: Row::new(),
            row_ids,
            end,
            next: 0,
            visited: vec![0; end as usize / 64 + 1],
        })
    }

    /// The next record to delete; looks at up to `steps` records, and takes those off. None if the
    /// steps did not suffice, or [all is done](Self::is_over).
    pub fn next(&mut self, topic: &Topic, steps: &mut usize) -> Option<Key> {
        while *steps > 0 && self.next < self.end {
            *steps -= 1;
            let position = self.next;
            self.next += 1;
            if self.is_visited(position) {
                continue;
            }
            let row_id =
                self.row_ids.as_ref().map_or(position, |row_ids| row_ids[position as usize]);
            if let Some(key) = self.matching_key(topic, row_id) {
                return Some(key);
            }
        }
        None
    }

    /// Whether nothing is left to look at.
    pub fn is_done(&self) -> bool {
        self.next >= self.end
    }

    /// The record is about to change. Whether it is to be deleted before: it is looked at now, and
    /// not later.
    pub fn is_target(&mut self, topic: &Topic, key: Key) -> bool {
        let Some(row_id) = topic.find(key) else { return false };
        self.visit(row_id) && self.matching_key(topic, row_id).is_some()
    }

    /// The topic has changed.
    pub fn on_change(&mut self, change: &Change<'_>) {
        self.visit(change.row_id);
    }

    /// Looks at that place no more; whether it was to be.
    fn visit(&mut self, row_id: u32) -> bool {
        let position = match &self.row_ids {
            None => row_id,
            Some(row_ids) => match row_ids.binary_search(&row_id) {
                Ok(position) => position as u32,
                Err(_) => return false,
            },
        };
        if !(self.next..self.end).contains(&position) || self.is_visited(position) {
            return false;
        }
        self.visited[position as usize / 64] |= 1 << (position % 64);
        true
    }

    fn is_visited(&self, position: u32) -> bool {
        self.visited[position as usize / 64] >> (position % 64) & 1 == 1
    }

    /// The record at a place, if it meets the filter.
    fn matching_key(&mut self, topic: &Topic, row_id: u32) -> Option<Key> {
        let record = topic.at(row_id)?;
        if let Some(plan) = &self.plan {
            self.reader.read(record.bytes(), &mut self.row).ok()?;
            let name = &*topic.definition().name;
            let environment = &Environment { topic: name, client: "", unix_ns: self.unix_ns };
            let message = Message { row: &self.row, bytes: record.bytes(), environment };
            if !plan.matches(&message) {
                return None;
            }
        }
        Some(record.key())
    }
}
