//! [`QueryCursor`]: answers a query in steps, while the topic keeps changing.
//!
//! The answer is a snapshot of the topic at the cursor's start (its fence). Of a row that changes
//! before its turn the cursor keeps the previous record: that is cheap for the publisher, and the
//! filter runs in the cursor's own steps.

use crate::change::{Change, Version};
use crate::query::Query;
use crate::queue::Queue;
use crate::record::Record;
use crate::sort_key::SortKey;
use crate::topic::Topic;
use foldhash::fast::RandomState;
use lanecast_base::budget::{Budget, Exhausted, Reservation};
use lanecast_filter::fields::{FieldSet, Slot, TooManyFields};
use lanecast_filter::interpreter::Environment;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Message, Plan};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;

/// Records prefetched together.
const AT_ONCE: usize = 16;

/// Bytes of a cache line, and lines of a record to prefetch.
const LINE: usize = 64;
const LINES: usize = 4;

/// Memory for sorting is reserved in steps of at least this many bytes.
const SORT_BYTES: usize = 64 << 10;

/// A query in progress.
///
/// [`on_change`](Self::on_change) must be called after each change of the topic.
#[derive(Debug)]
pub struct QueryCursor {
    fence: u64,
    unix_ns: u64,
    source: Source,
    plan: Option<Plan>,
    order: Box<[(Slot, bool)]>,
    reader: Reader,
    row: Row,
    /// Sorted records, returned after the last row.
    sorted: BTreeMap<SortKey, Record>,
    /// Memory used by them.
    sorted_bytes: usize,
    memory: Option<Reservation>,
    exhausted: Option<usize>,
    skip: usize,
    left: usize,
    answer: QueryStats,
}

/// Counters of the answer so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryStats {
    /// Records of the topic at the start.
    pub records: usize,
    /// Records that match the filter, as far as they were examined.
    pub matches: usize,
    /// Records returned.
    pub returned: usize,
}

/// Rows to examine.
#[derive(Debug)]
enum Source {
    All {
        next: u32,
        end: u32,
        /// Bitmap of rows that changed before their turn.
        changed: Vec<u64>,
        /// Previous records of those rows, once each. They are examined first, so the queue stays
        /// short while the cursor advances.
        before: Queue<(u32, Record)>,
    },
    Some {
        row_ids: Vec<u32>,
        next: usize,
        /// Previous records of rows that changed before their turn; `None` if the row was empty.
        before: HashMap<u32, Option<Record>, RandomState>,
    },
}

/// Next row to examine.
enum NextRow {
    /// The current record of a row.
    Current(u32),
    /// The previous record of a row.
    Previous(u32, Record),
    /// No record: the row was examined or was empty.
    Done,
}

impl Source {
    fn all(end: u32) -> Self {
        let changed = vec![0; end as usize / 64 + 1];
        Self::All { next: 0, end, changed, before: Queue::default() }
    }

    fn take(&mut self) -> Option<NextRow> {
        match self {
            Self::All { next, end, changed, before } => {
                if let Some((row_id, record)) = before.pop_front() {
                    return Some(NextRow::Previous(row_id, record));
                }
                let row_id = *next;
                *next += u32::from(row_id < *end);
                let turn =
                    if has(changed, row_id) { NextRow::Done } else { NextRow::Current(row_id) };
                (row_id < *end).then_some(turn)
            }
            Self::Some { row_ids, next, before } => {
                *next += 1;
                let row_id = *row_ids.get(*next - 1)?;
                Some(match before.remove(&row_id) {
                    None => NextRow::Current(row_id),
                    Some(None) => NextRow::Done,
                    Some(Some(record)) => NextRow::Previous(row_id, record),
                })
            }
        }
    }
}

/// Whether the bit of `row_id` is set.
#[inline]
fn has(bits: &[u64], row_id: u32) -> bool {
    bits.get(row_id as usize / 64).is_some_and(|word| word >> (row_id % 64) & 1 == 1)
}

impl QueryCursor {
    /// Starts `query` as of now.
    ///
    /// # Errors
    /// If the query names more fields than there is room for.
    pub fn new(topic: &Topic, query: &Query, now_ns: u64) -> Result<Self, TooManyFields> {
        let mut fields = FieldSet::new(topic.definition().format);
        let filter = query.filter.as_ref();
        let plan = filter.map(|filter| Plan::new(filter, &mut fields)).transpose()?;
        let order = query.order.iter();
        let order = order.map(|order| Ok((fields.slot(&order.path)?, order.descending)));
        let order = order.collect::<Result<_, TooManyFields>>()?;
        let source = match topic.candidates(query) {
            Some(row_ids) => Source::Some { row_ids, next: 0, before: HashMap::default() },
            None => Source::all(topic.end()),
        };
        Ok(Self {
            fence: topic.sequence(),
            unix_ns: now_ns,
            source,
            plan,
            order,
            reader: Reader::new(&fields),
            row: Row::new(),
            sorted: BTreeMap::new(),
            sorted_bytes: 0,
            memory: query.memory.0.as_ref().map(Budget::reservation),
            exhausted: None,
            skip: query.skip,
            left: query.top.unwrap_or(usize::MAX),
            answer: QueryStats { records: topic.len(), ..QueryStats::default() },
        })
    }

    /// Runs `query` to its end.
    ///
    /// # Errors
    /// If the query names more fields than there is room for.
    pub fn read_all(
        topic: &Topic,
        query: &Query,
        now_ns: u64,
    ) -> Result<Vec<Record>, TooManyFields> {
        let (mut cursor, mut found) = (Self::new(topic, query, now_ns)?, Vec::new());
        cursor.advance(topic, usize::MAX, &mut found);
        Ok(found)
    }

    /// Sequence of the last change in the snapshot.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Counters of the answer so far.
    pub fn answer(&self) -> QueryStats {
        self.answer
    }

    /// The memory limit, if sorting has exceeded it: the query has failed.
    pub fn exhausted(&self) -> Option<usize> {
        self.exhausted
    }

    /// Number of candidates found by an index; `None` for a full scan.
    pub fn picked(&self) -> Option<usize> {
        match &self.source {
            Source::All { .. } => None,
            Source::Some { row_ids, .. } => Some(row_ids.len()),
        }
    }

    /// Must be called after each change of the topic.
    #[inline]
    pub fn on_change(&mut self, change: &Change<'_>) {
        let row_id = change.row_id;
        let record = change.before.map(Version::record);
        match &mut self.source {
            Source::All { next, end, changed, before } => {
                if self.left == 0 || !(*next..*end).contains(&row_id) || has(changed, row_id) {
                    return;
                }
                changed[row_id as usize / 64] |= 1 << (row_id % 64);
                if let Some(record) = record {
                    before.push_back((row_id, record.clone()));
                }
            }
            Source::Some { row_ids, next, before } => {
                if *next < row_ids.len() {
                    before.entry(row_id).or_insert_with(|| record.cloned());
                }
            }
        }
    }

    /// Examines up to `limit` rows or returns as many sorted records. Appends the matching records
    /// to `found`; returns whether there may be more.
    pub fn advance(&mut self, topic: &Topic, limit: usize, found: &mut Vec<Record>) -> bool {
        self.advance_by(topic, limit, usize::MAX, found).0
    }

    /// As [`advance`](Self::advance), but ends once `bytes_max` bytes were found. Returns whether
    /// there may be more, and the bytes found.
    pub(crate) fn advance_by(
        &mut self,
        topic: &Topic,
        limit: usize,
        bytes_max: usize,
        found: &mut Vec<Record>,
    ) -> (bool, usize) {
        let (mut steps, mut bytes) = (limit, 0);
        while steps > 0 {
            let some = steps.min(AT_ONCE);
            self.prefetch(topic, some);
            for _ in 0..some {
                let count = found.len();
                if self.left == 0 || !self.step(topic, found) {
                    return (false, bytes);
                }
                bytes += found.get(count).map_or(0, |record| record.bytes().len());
                if bytes >= bytes_max {
                    return (self.left > 0, bytes);
                }
            }
            steps -= some;
        }
        (self.left > 0, bytes)
    }

    /// Examines one row, or returns one sorted record; `false` at the end.
    fn step(&mut self, topic: &Topic, found: &mut Vec<Record>) -> bool {
        let name = &*topic.definition().name;
        match self.source.take() {
            Some(NextRow::Current(row_id)) => {
                if let Some(record) = topic.at(row_id) {
                    self.evaluate(name, row_id, record, found);
                }
            }
            Some(NextRow::Previous(row_id, record)) => self.evaluate(name, row_id, &record, found),
            Some(NextRow::Done) => {}
            None => match self.sorted.pop_first() {
                Some((key, record)) => {
                    self.sorted_bytes -= key.bytes();
                    self.output(record, found);
                }
                None => return false,
            },
        }
        true
    }

    /// Touches the next records, so that their cache misses overlap instead of following one
    /// another.
    fn prefetch(&self, topic: &Topic, count: usize) {
        let Source::All { next, end, .. } = &self.source else { return };
        let mut seen = 0;
        for row_id in (*next..*end).take(count) {
            let bytes = topic.at(row_id).map_or(&[][..], Record::bytes);
            let lines = bytes.iter().step_by(LINE).take(LINES);
            seen = lines.fold(seen, |seen, byte| seen ^ byte);
        }
        black_box(seen);
    }

    fn evaluate(&mut self, topic: &str, row_id: u32, record: &Record, found: &mut Vec<Record>) {
        let needs_row = self.plan.is_some() || !self.order.is_empty();
        if needs_row && self.reader.read(record.bytes(), &mut self.row).is_err() {
            return;
        }
        if let Some(plan) = &self.plan {
            let environment = &Environment { topic, client: "", unix_ns: self.unix_ns };
            if !plan.matches(&Message { row: &self.row, bytes: record.bytes(), environment }) {
                return;
            }
        }
        self.answer.matches += 1;
        if self.order.is_empty() {
            return self.output(record.clone(), found);
        }
        let key = SortKey::new(&self.order, &self.row, record.bytes(), row_id);
        self.sorted_bytes += key.bytes();
        self.sorted.insert(key, record.clone());
        // With a limit only the best `skip + top` records can be part of the answer.
        if self.sorted.len() > self.left.saturating_add(self.skip)
            && let Some((key, _)) = self.sorted.pop_last()
        {
            self.sorted_bytes -= key.bytes();
        }
        self.reserve_sort_memory();
    }

    /// Reserves memory for the sort keys; ends the query if the budget is exhausted.
    fn reserve_sort_memory(&mut self) {
        let Some(memory) = &mut self.memory else { return };
        if self.sorted_bytes <= memory.bytes() {
            return;
        }
        let more = self.sorted_bytes - memory.bytes();
        if let Err(Exhausted(limit)) = memory.try_grow(more.max(SORT_BYTES)) {
            self.exhausted = Some(limit);
            self.sorted.clear();
            (self.sorted_bytes, self.left, self.memory) = (0, 0, None);
        }
    }

    fn output(&mut self, record: Record, found: &mut Vec<Record>) {
        if self.skip > 0 {
            self.skip -= 1;
        } else {
            self.left -= 1;
            self.answer.returned += 1;
            found.push(record);
        }
    }
}
