//! Aligned columns of text within a width.
//!
//! A table that is too wide first wraps its texts, between words and never between a number and its
//! unit. If that is not enough, it stacks its columns: the first column is repeated before each
//! group of columns that fits; rows that are empty there are left out.

mod words;

pub(crate) use words::clean;
use words::{longest_word, pad, width};

pub use words::wrap;

/// Blanks between two columns.
const GAP: usize = 2;
/// A text column keeps so much room before columns are stacked instead.
const TEXT_MIN: usize = 16;

/// A table without frames.
///
/// [`render`](Self::render) keeps every line within its width, unless the first column and one
/// other do not fit beside each other with their longest words: then that pair sets the width.
///
/// ```
/// let mut table = lanecast_report::TextTable::new(&["topic", ">rate", ">lag"]);
/// table.row(["prices", "497.12 M/s", "12 345"]);
/// assert_eq!(table.render(80), "topic         rate     lag\nprices  497.12 M/s  12 345\n");
/// let narrow = table.render(20);
/// let (rate, lag) = narrow.split_once("\n\n").unwrap();
/// assert_eq!(rate, "topic         rate\nprices  497.12 M/s");
/// assert_eq!(lag, "topic      lag\nprices  12 345\n");
/// ```
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
struct Column {
    title: String,
    is_number: bool,
    /// Width of the widest cell, and of the title if that is wider.
    natural: usize,
    /// Width below which a number or a word would be broken.
    least: usize,
}

/// A column and its width in one group.
type Placed = (usize, usize);

impl TextTable {
    /// A table without rows. A leading `>` marks a column of numbers, aligned to the right.
    #[must_use]
    pub fn new(titles: &[&str]) -> Self {
        let columns = titles.iter().map(|title| {
            let text = clean(title.trim_start_matches('>'));
            let (natural, least) = (width(&text), longest_word(&text));
            Column { is_number: title.starts_with('>'), natural, least, title: text }
        });
        Self { columns: columns.collect(), rows: Vec::new() }
    }

    /// Appends a row. Missing cells are empty, and cells without a column are left out; control
    /// characters are replaced.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) -> &mut Self {
        let cells = cells.into_iter().take(self.columns.len());
        let cells: Vec<String> = cells.map(|cell| clean(cell.as_ref())).collect();
        for (column, cell) in self.columns.iter_mut().zip(&cells) {
            let natural = width(cell);
            let least = match column.is_number {
                true => natural,
                false => longest_word(cell).max(natural.min(TEXT_MIN)),
            };
            column.natural = column.natural.max(natural);
            column.least = column.least.max(least);
        }
        self.rows.push(cells);
        self
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether every row stands on one line of at most `columns` characters.
    #[must_use]
    pub fn fits(&self, columns: usize) -> bool {
        total(self.columns.iter().map(|column| column.natural)) <= columns
    }

    /// Whether the columns stand side by side within `columns` characters, with wrapped texts.
    #[must_use]
    pub fn fits_wrapped(&self, columns: usize) -> bool {
        total(self.columns.iter().map(|column| column.least)) <= columns
    }

    /// The lines of the table, each ended, without blanks at their ends; `columns` wide at most.
    #[must_use]
    pub fn render(&self, columns: usize) -> String {
        let groups = self.groups(columns);
        let is_stacked = groups.len() > 1;
        let groups = groups.iter().map(|group| self.group(group, is_stacked));
        groups.collect::<Vec<_>>().join("\n")
    }

    /// Columns that stand side by side, each group led by the first column.
    fn groups(&self, columns: usize) -> Vec<Vec<Placed>> {
        let Some((first, others)) = self.columns.split_first() else { return Vec::new() };
        let mut groups = vec![vec![0]];
        let mut used = first.least;
        for (at, column) in others.iter().enumerate() {
            let more = GAP + column.least;
            // A group needs one column beside the first, even where that is wider than asked for.
            let last = groups.last_mut().expect("one group");
            if used + more > columns && last.len() > 1 {
                groups.push(vec![0, at + 1]);
                used = first.least + more;
            } else {
                last.push(at + 1);
                used += more;
            }
        }
        groups.into_iter().map(|group| self.placed(&group, columns)).collect()
    }

    /// Gives the columns of a group their width: what is missing, the one with most to spare lacks.
    fn placed(&self, group: &[usize], columns: usize) -> Vec<Placed> {
        let capped = |at: usize| {
            let column = &self.columns[at];
            (at, column.natural.min(columns.max(column.least)))
        };
        let mut placed: Vec<Placed> = group.iter().map(|&at| capped(at)).collect();
        let mut excess = total(placed.iter().map(|(_, width)| *width)).saturating_sub(columns);
        while excess > 0 {
            let spare = |(at, width): &Placed| width - self.columns[*at].least;
            let Some(most) = placed.iter_mut().max_by_key(|one| spare(one)) else { break };
            if spare(most) == 0 {
                break;
            }
            most.1 -= 1;
            excess -= 1;
        }
        placed
    }

    fn group(&self, placed: &[Placed], is_stacked: bool) -> String {
        let title = |at: usize| &*self.columns[at].title;
        let mut text = String::new();
        if placed.iter().any(|(at, _)| !title(*at).is_empty()) {
            self.lines(placed, title, &mut text);
        }
        for row in &self.rows {
            let cell = |at: usize| row.get(at).map_or("", String::as_str);
            // A row without anything in this group would be an empty line, as between groups.
            if !is_stacked || placed.iter().any(|(at, _)| !cell(*at).is_empty()) {
                self.lines(placed, cell, &mut text);
            }
        }
        text
    }

    /// Writes a row: as many lines as its cell with most lines has.
    fn lines<'a>(&self, placed: &[Placed], cell: impl Fn(usize) -> &'a str, text: &mut String) {
        let cells: Vec<Vec<String>> =
            placed.iter().map(|(at, width)| wrap(cell(*at), *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for number in 0..height {
            let mut line = String::new();
            for ((at, width), cell) in placed.iter().zip(&cells) {
                if !line.is_empty() {
                    line.push_str(&" ".repeat(GAP));
                }
                let part = cell.get(number).map_or("", String::as_str);
                line += &pad(part, *width, self.columns[*at].is_number);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
}

fn total(widths: impl Iterator<Item = usize>) -> usize {
    let (sum, count) = widths.fold((0, 0), |(sum, count), width| (sum + width, count + 1));
    sum + GAP * usize::saturating_sub(count, 1)
}

#[cfg(test)]
mod tests;
