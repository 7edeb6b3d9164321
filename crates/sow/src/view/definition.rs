//! Definition of a view, as configured.

use super::decimal::Rounding;
use lanecast_filter::FilterError;
use lanecast_filter::fields::TooManyFields;
use lanecast_filter::message_type::Format;
use std::fmt::{self, Display, Formatter};
use thiserror::Error;

/// Definition of a view over one topic, or over several that are joined.
///
/// `docs/guide/views.md` describes the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewDefinition {
    /// Name of the view's topic.
    pub name: Box<str>,
    /// Format of its records.
    pub format: Format,
    /// The (first) source topic.
    pub topic: Box<str>,
    /// Joins of other topics.
    pub joins: Vec<Join>,
    /// Fields: `expression AS /path, ...`.
    pub projection: String,
    /// Grouping fields: `/path, ...`. If there are none, the view has one record.
    pub grouping: String,
    /// Filter of the rows.
    pub filter: Option<String>,
    /// Rounding of quotients.
    pub rounding: Rounding,
    /// The most bytes of a record.
    pub record_bytes_max: usize,
}

/// A left outer join with a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// Joined topic.
    pub topic: Box<str>,
    /// Condition: `/topic/path = /topic/path AND ...`.
    pub on: String,
}

impl ViewDefinition {
    /// A view of `topic` without fields.
    pub fn new(name: &str, format: impl Into<Format>, topic: &str) -> Self {
        Self {
            name: name.into(),
            format: format.into(),
            topic: topic.into(),
            joins: Vec::new(),
            projection: String::new(),
            grouping: String::new(),
            filter: None,
            rounding: Rounding::DEFAULT,
            record_bytes_max: usize::MAX,
        }
    }

    /// Sets the fields.
    #[must_use]
    pub fn project(self, projection: &str) -> Self {
        Self { projection: projection.into(), ..self }
    }

    /// Sets the grouping fields.
    #[must_use]
    pub fn group_by(self, grouping: &str) -> Self {
        Self { grouping: grouping.into(), ..self }
    }

    /// Sets the filter.
    #[must_use]
    pub fn filter(self, filter: &str) -> Self {
        Self { filter: Some(filter.into()), ..self }
    }

    /// Adds a join.
    #[must_use]
    pub fn join(mut self, topic: &str, on: &str) -> Self {
        self.joins.push(Join { topic: topic.into(), on: on.into() });
        self
    }

    /// Sets the rounding.
    #[must_use]
    pub fn rounding(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// Limits the bytes of a record: joins and expressions could make one longer than any message
    /// may be.
    #[must_use]
    pub fn record_bytes_max(self, bytes: usize) -> Self {
        Self { record_bytes_max: bytes, ..self }
    }

    /// Source topics.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.topic).chain(self.joins.iter().map(|join| &*join.topic))
    }
}

/// Part of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// Source topics.
    Topics,
    /// Fields.
    Projection,
    /// Grouping fields.
    Grouping,
    /// Filter.
    Filter,
    /// Join condition, counted from 0.
    Join(usize),
}

/// Error in a view's definition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ViewError {
    /// Part with the error.
    pub clause: Clause,
    /// Byte offset in the text of that part.
    pub at: usize,
    /// Description.
    pub what: String,
    /// Suggested correction, if any.
    pub hint: Option<String>,
}

impl ViewError {
    pub(crate) fn new(clause: Clause, at: usize, what: impl Display) -> Self {
        Self { clause, at, what: what.to_string(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Converts an error of an expression.
    pub(crate) fn of(clause: Clause) -> impl FnOnce(FilterError) -> Self {
        move |error| Self { hint: error.hint, ..Self::new(clause, error.offset, error.kind) }
    }
}

impl Display for ViewError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}: {}", self.clause, self.at, self.what)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl From<TooManyFields> for ViewError {
    fn from(error: TooManyFields) -> Self {
        Self::new(Clause::Topics, 0, error)
    }
}

impl Display for Clause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topics => f.write_str("in the topics"),
            Self::Projection => f.write_str("in the projection"),
            Self::Grouping => f.write_str("in the grouping"),
            Self::Filter => f.write_str("in the filter"),
            Self::Join(number) => write!(f, "in join {}", number + 1),
        }
    }
}
