//! Places in a settings file, and settings in two places of it that contradict each other: the
//! error names both, as either can be the wrong one.

use lanecast_filter::message_type::MessageType;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue, Error};

/// A place in a text: line and column in characters, both from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// The place of a byte of `text`.
    pub(crate) fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Two settings of a file that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    what: String,
    /// The later place, and the earlier one.
    places: [Place; 2],
}

impl Conflict {
    /// `what` is wrong between two places of `text`.
    fn new(text: &str, what: String, places: [usize; 2]) -> Self {
        let [one, other] = places;
        Self { what, places: [one.max(other), one.min(other)].map(|at| Place::of(text, at)) }
    }

    /// The later place and the earlier one.
    pub const fn places(&self) -> [Place; 2] {
        self.places
    }

    /// The words for a conflict in that file.
    pub(crate) fn in_file(&self, path: &Path) -> String {
        let (Self { what, places: [later, earlier] }, path) = (self, path.display());
        format!("{path}:{later}: {what} (the other one: {path}:{earlier})")
    }

    /// The setting that is there twice, if that is what `error` is about: TOML's own words name the
    /// second place alone.
    pub(crate) fn of_duplicate(text: &str, error: &Error) -> Option<Self> {
        let span = error.span().filter(|_| error.message().starts_with("duplicate key"))?;
        let name = text.get(span.clone())?.trim_matches(['"', '\'']);
        // Everything before the second one is sound.
        let before = &text[..text[..span.start].rfind('\n').map_or(0, |end| end + 1)];
        let mut places = Vec::new();
        find_key(DeTable::parse(before).ok()?.get_ref(), name, &mut places);
        let first = places.into_iter().max()?;
        let what = format!("{name} is there twice: leave one out");
        Some(Self::new(text, what, [span.start, first]))
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, places: [later, earlier] } = self;
        write!(f, "{later}: {what} (the other one: {earlier})")
    }
}

/// Adds the places of all keys `name`, in tables and in those within them.
fn find_key(table: &DeTable<'_>, name: &str, places: &mut Vec<usize>) {
    for (key, value) in table {
        if key.get_ref().as_ref() == name {
            places.push(key.span().start);
        }
        match value.get_ref() {
            DeValue::Table(inner) => find_key(inner, name, places),
            DeValue::Array(values) => {
                let tables = values.iter().filter_map(|value| value.get_ref().as_table());
                tables.for_each(|inner| find_key(inner, name, places));
            }
            _ => {}
        }
    }
}

/// A topic or view by its name, and the place of that.
#[derive(Debug)]
pub(crate) struct NamedTopic<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: MessageType,
    pub(crate) span: Range<usize>,
    /// Topics that a view is over, with their places.
    pub(crate) sources: Vec<(&'a str, Range<usize>)>,
}

/// The first conflict among topics, and views over them, of the settings `text`.
pub(crate) fn find_conflict(
    text: &str,
    topics: &[NamedTopic<'_>],
    views: &[NamedTopic<'_>],
) -> Option<Conflict> {
    let conflict = |what, one: &Range<usize>, other: &Range<usize>| {
        Some(Conflict::new(text, what, [one.start, other.start]))
    };
    // Quadratic, but once and over configured topics only.
    for (at, one) in topics.iter().enumerate() {
        let is_same = |it: &&NamedTopic<'_>| (it.name, it.kind) == (one.name, one.kind);
        if let Some(other) = topics[..at].iter().find(is_same) {
            let name = one.name;
            let what =
                format!("the topic {name} is there twice with one type: give one another name");
            return conflict(what, &one.span, &other.span);
        }
    }
    for (at, view) in views.iter().enumerate() {
        let name = view.name;
        for (source, place) in &view.sources {
            let mut named = topics.iter().filter(|it| it.name == *source);
            if let (Some(one), Some(other)) = (named.next(), named.next()) {
                let what = format!(
                    "the view {name}: there are several topics {source}, of different types: \
                     rename one"
                );
                return conflict(what, &one.span, &other.span);
            }
            let is_defined = topics.iter().chain(&views[..at]).any(|it| it.name == *source);
            let later = views[at..].iter().find(|it| it.name == *source).filter(|_| !is_defined);
            if let Some(later) = later {
                let what =
                    format!("the view {name} is over {source}, which does not stand before it");
                return conflict(what, place, &later.span);
            }
        }
        let mut others = topics.iter().chain(&views[..at]);
        if let Some(other) = others.find(|it| it.name == name) {
            let what = format!("the view {name}: there is a topic {name} already: rename one");
            return conflict(what, &view.span, &other.span);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_columns_of_characters() {
        let text = "a = 'ö'\nb = 1\n";
        let place = |needle: &str| Place::of(text, text.find(needle).expect("there")).to_string();
        assert_eq!(["a", "'\n", "b", "1"].map(place), ["1:1", "1:7", "2:1", "2:5"]);
        assert_eq!(Place::of(text, 1_000).to_string(), "3:1");
    }
}
