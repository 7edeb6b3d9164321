//! Deletion of many records in steps, while the topic keeps changing (AMPS: `sow_delete`).
//!
//! It has the effect of deleting all matching records at its start. A record that is about to
//! change before its turn is [checked](Deletion::is_target) first; messages published afterwards
//! are kept.

use crate::change::Change;
use crate::key::Key;
use crate::query::Query;
use crate::topic::Topic;
use lanecast_filter::fields::{FieldSet, TooManyFields};
use lanecast_filter::interpreter::Environment;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Message, Plan};

/// A deletion of the records that match a query's filter or have its keys.
///
/// The caller deletes the records that [`next`](Self::next) returns, calls
/// [`is_target`](Self::is_target) before it changes a record, and [`on_change`](Self::on_change)
/// after.
#[derive(Debug)]
pub struct Deletion {
    unix_ns: u64,
    plan: Option<Plan>,
    reader: Reader,
    row: Row,
    /// Rows to examine; all up to `end` if `None`.
    row_ids: Option<Vec<u32>>,
    end: u32,
    /// Position of the next row to examine.
    next: u32,
    /// Bitmap of positions that were examined early.
    visited: Vec<u64>,
}

impl Deletion {
    /// Starts a deletion as of now.
    ///
    /// # Errors
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

    /// Key of the next record to delete. Examines up to `steps` rows and subtracts them. `None` if
    /// the steps were used up or the deletion [is done](Self::is_done).
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

    /// Whether all rows were examined.
    pub fn is_done(&self) -> bool {
        self.next >= self.end
    }

    /// Whether a record that is about to change is to be deleted before.
    pub fn is_target(&mut self, topic: &Topic, key: Key) -> bool {
        let Some(row_id) = topic.find(key) else { return false };
        // Not marked as examined here: if the change is refused, the deletion must come back to it.
        self.unvisited(row_id).is_some() && self.matching_key(topic, row_id).is_some()
    }

    /// Must be called after each change of the topic.
    pub fn on_change(&mut self, change: &Change<'_>) {
        if let Some(position) = self.unvisited(change.row_id) {
            self.visited[position as usize / 64] |= 1 << (position % 64);
        }
    }

    /// Position of a row that is still to be examined.
    fn unvisited(&self, row_id: u32) -> Option<u32> {
        let position = match &self.row_ids {
            None => row_id,
            Some(row_ids) => row_ids.binary_search(&row_id).ok()? as u32,
        };
        let is_ahead = (self.next..self.end).contains(&position);
        (is_ahead && !self.is_visited(position)).then_some(position)
    }

    fn is_visited(&self, position: u32) -> bool {
        self.visited[position as usize / 64] >> (position % 64) & 1 == 1
    }

    /// Key of the record in a row, if it matches.
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
