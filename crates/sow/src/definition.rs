//! Definition of a topic.

use lanecast_filter::message_type::Format;
use lanecast_filter::path::{Path, PathError};
use std::time::Duration;

/// Definition of a topic: message type, key fields, lifetime, indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDefinition {
    /// Name.
    pub name: Box<str>,
    /// Format of its messages.
    pub format: Format,
    /// Key fields. If there are none, publishers supply keys.
    pub keys: Vec<Path>,
    /// Default lifetime of records; unlimited if `None`.
    pub lifetime: Option<Duration>,
    /// Fields with a hash index, for queries with `=` or `IN`.
    pub indexes: Vec<Path>,
    /// The most bytes of a record that a delta is merged into.
    pub merged_bytes_max: usize,
    /// Whether records survive a restart: see [`SowStore`](crate::durable::SowStore).
    pub durable: bool,
}

impl TopicDefinition {
    /// A topic without key fields: publishers supply keys.
    pub fn new(name: &str, format: impl Into<Format>) -> Self {
        let (keys, indexes) = (Vec::new(), Vec::new());
        Self {
            name: name.into(),
            format: format.into(),
            keys,
            lifetime: None,
            indexes,
            merged_bytes_max: usize::MAX,
            durable: false,
        }
    }

    /// Limits the bytes of records that deltas are merged into: deltas could make a record longer
    /// than any message may be.
    #[must_use]
    pub fn merged_bytes_max(mut self, bytes: usize) -> Self {
        self.merged_bytes_max = bytes;
        self
    }

    /// Adds a key field.
    ///
    /// # Errors
    /// If `path` is not a valid path.
    pub fn key(mut self, path: &str) -> Result<Self, PathError> {
        self.keys.push(path.parse()?);
        Ok(self)
    }

    /// Adds an indexed field.
    ///
    /// # Errors
    /// If `path` is not a valid path.
    pub fn index(mut self, path: &str) -> Result<Self, PathError> {
        self.indexes.push(path.parse()?);
        Ok(self)
    }

    /// Makes the topic durable.
    #[must_use]
    pub fn durable(self) -> Self {
        Self { durable: true, ..self }
    }

    /// Sets the default lifetime of records.
    #[must_use]
    pub fn lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime: Some(lifetime), ..self }
    }
}
