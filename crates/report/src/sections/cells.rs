//! Cells of tables that have a row for each line.

use super::rate::figure;
use crate::document::{Figure, Words};
use crate::line::Line;
use crate::number::{self, Quantity};

/// Cells whose figures stand on one line.
pub(super) struct Cells<'a> {
    pub(super) line: &'a Line,
}

impl Cells<'_> {
    pub(super) fn text(&self, text: Option<impl Into<String>>) -> Words {
        let text: Option<String> = text.map(Into::into);
        text.filter(|text| !text.is_empty()).map(Words::from).unwrap_or_default()
    }

    pub(super) fn show(
        &self,
        value: Option<f64>,
        show: fn(f64) -> Quantity,
        member: &str,
    ) -> Words {
        let found = value.map(|value| Figure::new(value, show(value), self.line.id, member));
        found.map(figure).unwrap_or_default()
    }

    pub(super) fn count(&self, value: Option<u64>, member: &str) -> Words {
        let found = value
            .map(|value| Figure::new(value as f64, number::count(value), self.line.id, member));
        found.map(figure).unwrap_or_default()
    }

    pub(super) fn time(&self, value: Option<u64>, member: &str) -> Words {
        self.show(value.map(|ns| ns as f64), number::time, member)
    }
}
