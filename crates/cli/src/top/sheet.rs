//! A table as data: rows that can be sorted, filtered and found again after the next look.

use std::cmp::Ordering;

/// A column of a sheet. The first one takes the room that the others leave.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) width: u16,
    /// In a narrow terminal, columns of a higher rank go first.
    pub(crate) rank: u8,
    pub(crate) is_number: bool,
}

/// Sort key of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    /// Ascending text.
    Text,
    /// Ascending number.
    Ordinal(u64),
    /// Descending amount.
    Amount(f64),
}

/// Emphasis of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Faint,
    Warning,
    Bad,
}

/// One cell: its text is printable.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) key: Key,
    pub(crate) tone: Tone,
    /// A bar from 0 to 1, drawn instead of the text.
    pub(crate) fill: Option<f64>,
}

/// One row; its name stays the same from look to look.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cells: Vec<Cell>,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) columns: &'static [Column],
    pub(crate) rows: Vec<Row>,
}

/// Which column rows are sorted by, and whether against its natural direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) column: usize,
    pub(crate) is_reversed: bool,
}

/// The least width of the first column.
const FIRST: u16 = 10;

impl Column {
    pub(crate) const fn text(title: &'static str, width: u16, rank: u8) -> Self {
        Self { title, width, rank, is_number: false }
    }

    pub(crate) const fn number(title: &'static str, width: u16, rank: u8) -> Self {
        Self { title, width, rank, is_number: true }
    }
}

impl Cell {
    pub(crate) const fn text(text: String) -> Self {
        Self { text, key: Key::Text, tone: Tone::Plain, fill: None }
    }

    pub(crate) fn ordinal(number: u64) -> Self {
        Self { key: Key::Ordinal(number), ..Self::text(number.to_string()) }
    }

    pub(crate) fn amount(amount: f64, text: String) -> Self {
        Self { key: Key::Amount(amount), ..Self::text(text) }
    }

    pub(crate) fn bar(fill: f64) -> Self {
        let tone = match fill {
            f if f > 0.875 => Tone::Bad,
            f if f > 0.5 => Tone::Warning,
            _ => Tone::Good,
        };
        let text = format!("{:.0}%", fill * 100.0);
        Self { tone, fill: Some(fill), ..Self::amount(fill, text) }
    }

    pub(crate) const fn with_tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (&self.key, &other.key) {
            (Key::Amount(own), Key::Amount(other)) => other.total_cmp(own),
            (Key::Ordinal(own), Key::Ordinal(other)) => own.cmp(other),
            _ => self.text.cmp(&other.text),
        }
    }
}

impl Sheet {
    /// Keeps rows with a cell that contains `text`, whatever its case.
    pub(crate) fn filter(&mut self, text: &str) {
        let text = text.to_lowercase();
        self.rows
            .retain(|row| row.cells.iter().any(|cell| cell.text.to_lowercase().contains(&text)));
    }

    /// Sorts the rows; equal ones keep their order.
    pub(crate) fn sort(&mut self, sort: Sort) {
        self.rows.sort_by(|a, b| {
            let cells = a.cells.get(sort.column).zip(b.cells.get(sort.column));
            let order = cells.map_or(Ordering::Equal, |(a, b)| a.compare(b));
            if sort.is_reversed { order.reverse() } else { order }
        });
    }

    /// Index of the row with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.name == name)
    }

    /// The columns that fit into `width`, in their order, with their widths.
    pub(crate) fn fitting(&self, width: u16) -> Vec<(usize, u16)> {
        let mut ranked: Vec<usize> = (1..self.columns.len()).collect();
        ranked.sort_by_key(|&index| self.columns[index].rank);
        let mut left = width.saturating_sub(FIRST);
        let mut fitting = Vec::new();
        for index in ranked {
            // A column and the gap before it. The first that does not fit ends it: what is less
            // important does not stay when something more important goes.
            let Some(rest) = left.checked_sub(self.columns[index].width + 1) else { break };
            left = rest;
            fitting.push((index, self.columns[index].width));
        }
        fitting.push((0, FIRST.min(width) + left));
        fitting.sort_unstable();
        fitting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::text("name", 0, 0),
        Column::number("pid", 7, 3),
        Column::number("rate", 10, 1),
        Column::text("state", 7, 2),
    ];

    fn sheet() -> Sheet {
        let row = |name: &str, pid: u64, rate: f64, state: &str| Row {
            name: name.to_owned(),
            cells: vec![
                Cell::text(name.to_owned()),
                Cell::ordinal(pid),
                Cell::amount(rate, rate.to_string()),
                Cell::text(state.to_owned()),
            ],
        };
        let rows =
            vec![row("b", 10, 5.0, "Alive"), row("a", 9, 7.0, "dead"), row("c", 11, 5.0, "")];
        Sheet { columns: &COLUMNS, rows }
    }

    fn sorted(column: usize, is_reversed: bool) -> String {
        let mut sheet = sheet();
        sheet.sort(Sort { column, is_reversed });
        sheet.rows.into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn each_kind_of_cell_has_its_direction() {
        assert_eq!(sorted(0, false), "abc");
        assert_eq!(sorted(0, true), "cba");
        assert_eq!(sorted(1, false), "abc", "9 before 10 before 11");
        assert_eq!(sorted(2, false), "abc", "the most first, equal ones as they were");
        assert_eq!(sorted(2, true), "bca");
        assert_eq!(sorted(9, false), "bac", "no such column");
    }

    #[test]
    fn a_filter_ignores_case() {
        let mut sheet = sheet();
        sheet.filter("aLIVE");
        assert_eq!(
            (sheet.rows.len(), sheet.position("b"), sheet.position("a")),
            (1, Some(0), None)
        );
    }

    #[test]
    fn columns_go_by_rank_and_the_first_takes_the_rest() {
        let sheet = sheet();
        assert_eq!(sheet.fitting(80), [(0, 53), (1, 7), (2, 10), (3, 7)]);
        assert_eq!(sheet.fitting(35), [(0, 16), (2, 10), (3, 7)]);
        assert_eq!(sheet.fitting(21), [(0, 10), (2, 10)]);
        assert_eq!(sheet.fitting(20), [(0, 20)]);
        assert_eq!(sheet.fitting(1), [(0, 1)]);
        assert_eq!(sheet.fitting(0), [(0, 0)]);
    }
}
