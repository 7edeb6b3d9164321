//! The records of a query as they are now, and what has happened to them.

use crate::content::grid::{Column, Grid};
use crate::content::kind::KindArgs;
use crate::content::order::Order;
use crate::content::sorter::{SortKey, Sorter};
use lanecast_filter::path::Path;
use std::collections::HashMap;
use std::time::Duration;

/// Records that are kept to be shown.
const ROWS_MAX: usize = 100_000;
/// Records that the columns are made of, unless the user chose columns.
const SAMPLE: usize = 50;

/// Counts of changes, and their rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) added: u64,
    pub(super) changed: u64,
    pub(super) removed: u64,
}

/// A record.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) body: Vec<u8>,
    /// When it came, by number.
    number: u64,
    /// When it was last changed, in ticks.
    changed: u64,
    /// Values of the sort fields; empty until rows are sorted.
    keys: Vec<SortKey>,
}

/// The records.
#[derive(Debug)]
pub(super) struct LiveTable {
    kind: KindArgs,
    chosen: Vec<Path>,
    grid: Option<Grid>,
    orders: Vec<Order>,
    /// Sorts by `orders`.
    sorter: Option<Sorter>,
    rows: HashMap<u64, Shown>,
    /// All keys, in the order of the rows as they were when they were last sorted.
    sorted: Vec<u64>,
    is_sorted: bool,
    arrivals: u64,
    tick: u64,
    pub(super) counts: Counts,
    before: Counts,
    /// Changes per second, since the tick before.
    pub(super) rate: f64,
    /// Records for which there was no room.
    pub(super) passed_over: u64,
}

impl LiveTable {
    pub(super) fn new(kind: KindArgs, columns: Vec<Path>, orders: Vec<Order>) -> Self {
        Self {
            kind,
            chosen: columns,
            grid: None,
            orders,
            sorter: None,
            rows: HashMap::new(),
            sorted: Vec::new(),
            is_sorted: true,
            arrivals: 0,
            tick: 1,
            counts: Counts::default(),
            before: Counts::default(),
            rate: 0.0,
            passed_over: 0,
        }
    }

    /// Has a record be this now.
    pub(super) fn put(&mut self, key: u64, body: Vec<u8>) {
        self.is_sorted = false;
        self.arrivals += 1;
        if let Some(grid) = &mut self.grid {
            grid.widen(&body);
        }
        if let Some(row) = self.rows.get_mut(&key) {
            (row.body, row.changed) = (body, self.tick);
            row.keys.clear();
            self.counts.changed += 1;
            return;
        }
        self.counts.added += 1;
        if self.rows.len() >= ROWS_MAX {
            self.passed_over += 1;
        } else {
            let (number, changed) = (self.arrivals, self.tick);
            self.rows.insert(key, Shown { body, number, changed, keys: Vec::new() });
        }
    }

    /// Has a record be gone.
    pub(super) fn remove(&mut self, key: u64) {
        self.is_sorted = false;
        self.rows.remove(&key);
        self.counts.removed += 1;
    }

    /// Forgets all records: they are told anew.
    pub(super) fn restart(&mut self) {
        self.rows.clear();
        (self.is_sorted, self.passed_over) = (false, 0);
    }

    /// All records are there: what is new comes from now on.
    pub(super) fn mark_current(&mut self) {
        (self.counts, self.before) = (Counts::default(), Counts::default());
        self.tick += 2;
    }

    /// Updates the rate; `elapsed` is the time since the tick before.
    pub(super) fn tick(&mut self, elapsed: Duration) {
        let changes = self.counts.total() - self.before.total();
        self.rate = changes as f64 / elapsed.as_secs_f64().max(1e-9);
        self.before = self.counts;
        self.tick += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Sorts by these fields from now on.
    pub(super) fn sort_by(&mut self, orders: Vec<Order>) {
        self.orders = orders;
        self.sorter = None;
        self.rows.values_mut().for_each(|row| row.keys.clear());
        self.is_sorted = false;
    }

    pub(super) fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// The columns, once there is a record to make them of.
    pub(super) fn columns(&self) -> &[Column] {
        self.grid.as_ref().map_or(&[], |grid| &grid.columns)
    }

    /// Puts the rows in order, and makes the columns if there are none yet.
    pub(super) fn arrange(&mut self) -> anyhow::Result<()> {
        if self.grid.is_none() && !(self.rows.is_empty() && self.chosen.is_empty()) {
            let mut first: Vec<&Shown> = self.rows.values().collect();
            first.sort_unstable_by_key(|row| row.number);
            let sample = first.iter().take(SAMPLE).map(|row| &*row.body);
            let mut grid = Grid::new(self.kind, &self.chosen, sample)?;
            first.iter().skip(SAMPLE).for_each(|row| grid.widen(&row.body));
            self.grid = Some(grid);
        }
        if self.is_sorted {
            return Ok(());
        }
        let sorter = match &mut self.sorter {
            Some(sorter) => sorter,
            none => none.insert(Sorter::new(self.kind, self.orders.clone())?),
        };
        for row in self.rows.values_mut().filter(|row| row.keys.is_empty()) {
            row.keys = sorter.keys(&row.body);
        }
        self.sorted = self.rows.keys().copied().collect();
        let rows = &self.rows;
        self.sorted.sort_unstable_by(|a, b| {
            let (a, b) = (&rows[a], &rows[b]);
            sorter.compare(&a.keys, &b.keys).then(a.number.cmp(&b.number))
        });
        self.is_sorted = true;
        Ok(())
    }

    /// The keys of rows, in their order.
    pub(super) fn sorted(&self) -> &[u64] {
        &self.sorted
    }

    /// The cells of a row, and whether it has changed since the tick before the last.
    pub(super) fn row(&mut self, key: u64) -> (Vec<String>, bool) {
        let (Some(grid), Some(row)) = (&mut self.grid, self.rows.get(&key)) else {
            return (Vec::new(), false);
        };
        let cells = match grid.cells(&row.body) {
            Ok(cells) if !cells.is_empty() => cells,
            Ok(_) => vec![grid.whole(&row.body)],
            Err(error) => vec![error.to_string()],
        };
        (cells, row.changed + 1 >= self.tick)
    }

    /// A record on a line.
    pub(super) fn whole(&self, key: u64) -> String {
        let row = self.rows.get(&key).zip(self.grid.as_ref());
        row.map_or_else(String::new, |(row, grid)| grid.whole(&row.body))
    }
}

impl Counts {
    fn total(self) -> u64 {
        self.added + self.changed + self.removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(orders: &[(&str, bool)]) -> LiveTable {
        let orders = orders.iter().map(|(path, is_descending)| Order {
            path: path.parse().expect("a path"),
            is_descending: *is_descending,
        });
        LiveTable::new(KindArgs::json(), Vec::new(), orders.collect())
    }

    fn rows(table: &mut LiveTable) -> Vec<String> {
        table.arrange().expect("room");
        table.sorted().to_vec().into_iter().map(|key| table.row(key).0.join(" ")).collect()
    }

    fn put(table: &mut LiveTable, key: u64, price: &str) {
        table.put(key, format!("{{\"id\":{key},\"price\":{price}}}").into_bytes());
    }

    #[test]
    fn rows_keep_their_order_while_records_change() {
        let mut table = table(&[("/price", true)]);
        for (key, price) in [(1, "5"), (2, "10"), (3, "\"none\""), (4, "null")] {
            put(&mut table, key, price);
        }
        assert_eq!(rows(&mut table), ["3 none", "2 10", "1 5", "4 "]);
        put(&mut table, 1, "10.5");
        table.remove(3);
        assert_eq!(rows(&mut table), ["1 10.5", "2 10", "4 "]);
        table.sort_by(Vec::new());
        assert_eq!(rows(&mut table), ["1 10.5", "2 10", "4 "], "as they came");
        assert_eq!(table.counts, Counts { added: 4, changed: 1, removed: 1 });
        table.restart();
        assert_eq!(rows(&mut table), [""; 0]);
    }

    #[test]
    fn a_changed_cell_is_fresh_until_the_next_tick_but_one() {
        let mut table = table(&[]);
        put(&mut table, 1, "1");
        put(&mut table, 2, "2");
        table.mark_current();
        let fresh = |table: &mut LiveTable| {
            table.arrange().expect("room");
            [1, 2].map(|key| table.row(key).1)
        };
        assert_eq!(fresh(&mut table), [false, false], "they were there before");
        put(&mut table, 2, "3");
        table.tick(Duration::from_millis(500));
        assert_eq!((fresh(&mut table), table.rate), ([false, true], 2.0));
        table.tick(Duration::from_millis(500));
        assert_eq!((fresh(&mut table), table.rate), ([false, false], 0.0));
    }

    #[test]
    fn a_malformed_message_has_a_row_too() {
        let mut table = table(&[("/price", false)]);
        put(&mut table, 1, "1");
        table.put(2, b"\x1b[2J".to_vec());
        assert_eq!(rows(&mut table)[0], "malformed message: unexpected byte at byte 0");
        assert!(!table.whole(2).contains('\u{1b}'));
    }
}
