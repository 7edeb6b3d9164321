//! Text in columns, each as wide as its widest entry.

use std::fmt;

/// Columns with a head; text to the right edge.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table that has only its head.
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self::of(&head)
    }

    /// The same, where the number of columns is not constant.
    pub fn of(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|entry| (*entry).to_owned()).collect()] }
    }

    /// Whether it has only its head.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Adds a row with as many entries as the head.
    pub fn add(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.rows[0].len());
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let entries = self.rows.iter().filter_map(|row| row.get(column));
            entries.map(|entry| entry.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for row in &self.rows {
            for (entry, width) in row.iter().zip(&widths) {
                write!(f, "  {entry:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["size", "side"]);
        table.add(vec!["100".into(), "lanecast".into()]);
        assert_eq!(table.to_string(), "  size      side\n   100  lanecast\n");
    }
}
