//! What a view is, as people write it.

use super::decimal::Rounding;
use lanecast_filter::FilterError;
use lanecast_filter::fields::TooManyFields;
use lanecast_filter::message_type::Format;
use std::fmt::{self, Display, Formatter};
use thiserror::Error;

/// What a view shows of one topic, or of several that are joined.
///
/// `docs/guide/views.md` says what the texts may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewDefinition {
    /// Its name, as a topic.
    pub name: Box<str>,
    /// What its records are written in.
    pub format: Format,
    /// The topic that it shows.
    pub topic: Box<str>,
    /// What is added from other topics.
    pub joins: Vec<Join>,
    /// The fields of its records: `expression AS /path, ...`.
    pub projection: String,
    /// The fields whose values tell its records apart: `/path, ...`. If there are none, the view
    /// has one record.
    pub grouping: String,
    /// Which messages it is about, if not about all.
    pub filter: Option<String>,
    /// How many digits of quotients it shows.
    pub rounding: Rounding,
}

/// Another topic, whose records are found by what stands in those of a topic before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The topic.
    pub topic: Box<str>,
    /// Which fields are equal: `/topic/path = /topic/path AND ...`.
    pub on: String,
}

impl ViewDefinition {
    /// A view of `topic` that shows nothing yet.
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
        }
    }

    /// The same with these fields.
    #[must_use]
    pub fn project(self, projection: &str) -> Self {
        Self { projection: projection.into(), ..self }
    }

    /// The same with a record for each of these fields' values.
    #[must_use]
    pub fn group_by(self, grouping: &str) -> Self {
        Self { grouping: grouping.into(), ..self }
    }

    /// The same, about messages that meet this condition only.
    #[must_use]
    pub fn filter(self, filter: &str) -> Self {
        Self { filter: Some(filter.into()), ..self }
    }

    /// The same with one more topic.
    #[must_use]
    pub fn join(mut self, topic: &str, on: &str) -> Self {
        self.joins.push(Join { topic: topic.into(), on: on.into() });
        self
    }

    /// The same with other digits.
    #[must_use]
    pub fn rounding(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// The topics that it looks at.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.topic).chain(self.joins.iter().map(|join| &*join.topic))
    }
}

/// A part of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The list of topics.
    Topics,
    /// The fields to show.
    Projection,
    /// The fields to group by.
    Grouping,
    /// The condition.
    Filter,
    /// One of the joins, counted from 0.
    Join(usize),
}

/// Why there is no such view.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ViewError {
    /// Where.
    pub clause: Clause,
    /// The byte of that text, or that of the projection in it which is wrong.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
    /// What to write instead, where that can be guessed.
    pub hint: Option<String>,
}

impl ViewError {
    pub(crate) fn new(clause: Clause, at: usize, what: impl Display) -> Self {
        Self { clause, at, what: what.to_string(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Makes an error of that of an expression.
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
