//! What is asked of a topic.

use crate::key::Key;
use lanecast_base::budget::Budget;
use lanecast_filter::Filter;
use lanecast_filter::path::{Path, PathError};
use std::sync::Arc;

/// A question to a topic. The empty one asks for all records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// What records have to meet.
    pub filter: Option<Filter>,
    /// The only records that are looked at.
    pub keys: Option<Vec<Key>>,
    /// By what the answer is sorted: the first that tells two records apart decides.
    pub order: Vec<Order>,
    /// How many records of the answer are left out at its beginning.
    pub skip: usize,
    /// How many records the answer has at most.
    pub top: Option<usize>,
    /// What sorting may take.
    pub memory: SortMemory,
}

/// The memory that what is sorted by may take, until it is given out; any if none is named.
#[derive(Clone, Debug, Default)]
pub struct SortMemory(pub Option<Arc<Budget>>);

impl PartialEq for SortMemory {
    /// It is no part of the question.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A field by which records are sorted.
///
/// Records without the field come first, then those with numbers, as numbers, even where they are
/// written as text; then all others, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The field.
    pub path: Path,
    /// Whether the order is reversed.
    pub descending: bool,
}

impl Order {
    /// From small to great.
    ///
    /// # Errors
    ///
    /// If `path` is no path.
    pub fn ascending(path: &str) -> Result<Self, PathError> {
        Ok(Self { path: path.parse()?, descending: false })
    }

    /// From great to small.
    ///
    /// # Errors
    ///
    /// If `path` is no path.
    pub fn descending(path: &str) -> Result<Self, PathError> {
        Ok(Self { path: path.parse()?, descending: true })
    }
}

impl From<Filter> for Query {
    fn from(filter: Filter) -> Self {
        Self { filter: Some(filter), ..Self::default() }
    }
}
