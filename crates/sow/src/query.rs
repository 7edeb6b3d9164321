//! Queries.

use crate::key::Key;
use lanecast_base::budget::Budget;
use lanecast_filter::Filter;
use lanecast_filter::path::{Path, PathError};
use std::sync::Arc;

/// A query of a topic. The default query returns all records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Filter that records must match.
    pub filter: Option<Filter>,
    /// Keys of the only records to consider.
    pub keys: Option<Vec<Key>>,
    /// Sort order: later fields decide among records equal in the earlier ones.
    pub order: Vec<Order>,
    /// Number of records to skip.
    pub skip: usize,
    /// Maximum number of records.
    pub top: Option<usize>,
    /// Memory limit of sorting.
    pub memory: SortMemory,
}

/// Budget for the sort keys, until their records are returned; unlimited if `None`.
#[derive(Clone, Debug, Default)]
pub struct SortMemory(pub Option<Arc<Budget>>);

impl PartialEq for SortMemory {
    /// Queries are equal whatever memory they may use.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A sort field.
///
/// Records without the field come first, then numbers (also those written as text) in numeric
/// order, then texts in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The field.
    pub path: Path,
    /// Whether the order is descending.
    pub descending: bool,
}

impl Order {
    /// Ascending order.
    ///
    /// # Errors
    /// If `path` is not a valid path.
    pub fn ascending(path: &str) -> Result<Self, PathError> {
        Ok(Self { path: path.parse()?, descending: false })
    }

    /// Descending order.
    ///
    /// # Errors
    /// If `path` is not a valid path.
    pub fn descending(path: &str) -> Result<Self, PathError> {
        Ok(Self { path: path.parse()?, descending: true })
    }
}

impl From<Filter> for Query {
    fn from(filter: Filter) -> Self {
        Self { filter: Some(filter), ..Self::default() }
    }
}
