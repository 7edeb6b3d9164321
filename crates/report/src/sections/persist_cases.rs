//! The tests with and without stores: the repetitions of each, and their figures.

use crate::cases::Cases;
use crate::line::{Kind, Line};
use crate::number::Quantity;
use crate::spread::Spread;

/// The repetitions of a case of a file.
pub(super) type Group<'a> = ((&'a str, &'a str), Vec<&'a Line>);

/// The cases in the order of their first lines.
pub(super) fn groups<'a>(cases: &Cases<'a>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for line in cases.of_kind(Kind::Persist) {
        let key = (line.text("case").unwrap_or("unknown"), line.file.as_str());
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, lines)) => lines.push(line),
            None => groups.push((key, vec![line])),
        }
    }
    groups
}

/// The figures at `path` of all repetitions.
pub(super) fn spread(lines: &[&Line], path: &str, show: fn(f64) -> Quantity) -> Option<Spread> {
    Spread::of(lines.iter().filter_map(|line| line.figure(path, show)))
}

/// Whether a test has a schedule: flat out, messages have no times.
pub(super) fn is_paced((_, lines): &Group<'_>) -> bool {
    lines.iter().any(|line| line.whole("rate_asked").is_some_and(|rate| rate > 0))
}
