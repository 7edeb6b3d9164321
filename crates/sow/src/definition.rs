//! What a topic is.

use lanecast_filter::message_type::Format;
use lanecast_filter::path::{Path, PathError};
use std::time::Duration;

/// What a topic's messages are, and by which fields they are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDefinition {
    /// Its name.
    pub name: Box<str>,
    /// What messages are written in.
    pub format: Format,
    /// The fields whose values make the key. If there are none, publishers supply keys.
    pub keys: Vec<Path>,
    /// How long records live that are published without a lifetime of their own; else for ever.
    pub lifetime: Option<Duration>,
    /// The fields by which queries with `=` or `IN` find records without looking at all of them.
    pub indexes: Vec<Path>,
    /// Whether its records are to be there after a restart: an [`SowStore`](crate::durable::Archive)
    /// sees to that.
    pub durable: bool,
}

impl TopicDefinition {
    /// A topic whose publishers supply the keys.
    pub fn new(name: &str, format: impl Into<Format>) -> Self {
        let (keys, indexes) = (Vec::new(), Vec::new());
        Self {
            name: name.into(),
            format: format.into(),
            keys,
            lifetime: None,
            indexes,
            durable: false,
        }
    }

    /// The same with one more field in the key.
    ///
    /// # Errors
    ///
    /// If `path` is no path.
    pub fn key(mut self, path: &str) -> Result<Self, PathError> {
        self.keys.push(path.parse()?);
        Ok(self)
    }

    /// The same with one more field that queries can look up.
    ///
    /// # Errors
    ///
    /// If `path` is no path.
    pub fn index(mut self, path: &str) -> Result<Self, PathError> {
        self.indexes.push(path.parse()?);
        Ok(self)
    }

    /// The same with records that are there after a restart.
    #[must_use]
    pub fn durable(self) -> Self {
        Self { durable: true, ..self }
    }

    /// The same with records that live so long, if their publisher does not say otherwise.
    #[must_use]
    pub fn lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime: Some(lifetime), ..self }
    }
}
