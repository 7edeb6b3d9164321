//! Sort keys of query answers.

use crate::record::Record;
use lanecast_filter::fields::Slot;
use lanecast_filter::number::Number;
use lanecast_filter::row::Row;
use std::cmp::Ordering;

/// Overhead of an allocation, in bytes.
const ALLOCATION: usize = 16;

/// Sort key of a record: its values, then its row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortKey {
    values: Box<[Directed]>,
    row_id: u32,
}

#[derive(Clone, Debug)]
struct Directed {
    value: SortValue,
    descending: bool,
}

#[derive(Clone, Debug)]
enum SortValue {
    Missing,
    Number(Number),
    Text(Box<[u8]>),
}

impl SortKey {
    pub(crate) fn new(order: &[(Slot, bool)], row: &Row, bytes: &[u8], row_id: u32) -> Self {
        let values = order.iter().map(|(slot, descending)| {
            let number = row.value(*slot, bytes).number().filter(|number| !number.is_nan());
            let value = match (number, row.text(*slot, bytes)) {
                (Some(number), _) => SortValue::Number(number),
                (None, Some(text)) => SortValue::Text(text.into()),
                (None, None) => SortValue::Missing,
            };
            Directed { value, descending: *descending }
        });
        Self { values: values.collect(), row_id }
    }

    /// Memory of the key and its record's entry in a tree.
    pub(crate) fn bytes(&self) -> usize {
        let text = |value: &Directed| match &value.value {
            SortValue::Text(text) => text.len() + ALLOCATION,
            SortValue::Missing | SortValue::Number(_) => 0,
        };
        let entry = size_of::<Self>() + size_of::<Record>();
        // B-tree nodes are about two thirds full.
        let values = size_of_val(&*self.values) + ALLOCATION;
        entry * 3 / 2 + values + self.values.iter().map(text).sum::<usize>()
    }
}

impl Ord for Directed {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.value.cmp(&other.value);
        if self.descending { order.reverse() } else { order }
    }
}

impl Ord for SortValue {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |value: &Self| match value {
            Self::Missing => 0,
            Self::Number(_) => 1,
            Self::Text(_) => 2,
        };
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => one.order(*two).unwrap_or(Ordering::Equal),
            (Self::Text(one), Self::Text(two)) => one.cmp(two),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl PartialOrd for Directed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Directed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Directed {}

impl PartialOrd for SortValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SortValue {}
