//! Order of messages by their fields, where no server sorts them.

use super::grid::Grid;
use super::kind::KindArgs;
use super::order::Order;
use lanecast_filter::path::Path;
use std::cmp::Ordering;

/// Reads the sort fields of messages, and compares them.
#[derive(Debug)]
pub(crate) struct Sorter {
    grid: Grid,
    orders: Vec<Order>,
}

/// A value in its order: numbers before texts, and nothing before both.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SortKey {
    Nothing,
    Number(f64),
    Text(String),
}

impl Sorter {
    pub(crate) fn new(kind: KindArgs, orders: Vec<Order>) -> anyhow::Result<Self> {
        let paths: Vec<Path> = orders.iter().map(|order| order.path.clone()).collect();
        // Without fields to sort by, no cell is asked for either.
        Ok(Self { grid: Grid::new(kind, &paths, std::iter::empty())?, orders })
    }

    /// The sort fields of a message. One that cannot be read has nothing to be sorted by.
    pub(crate) fn keys(&mut self, message: &[u8]) -> Vec<SortKey> {
        let cells = self.grid.cells(message);
        let cells = cells.unwrap_or_else(|_| vec![String::new(); self.orders.len()]);
        cells.into_iter().map(SortKey::from).collect()
    }

    pub(crate) fn compare(&self, a: &[SortKey], b: &[SortKey]) -> Ordering {
        let mut differences = a.iter().zip(b).zip(&self.orders).map(|((a, b), order)| {
            let difference = a.order(b);
            if order.is_descending { difference.reverse() } else { difference }
        });
        differences.find(|difference| difference.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl From<String> for SortKey {
    fn from(text: String) -> Self {
        match text.parse() {
            _ if text.is_empty() => Self::Nothing,
            Ok(number) => Self::Number(number),
            Err(_) => Self::Text(text),
        }
    }
}

impl SortKey {
    fn order(&self, other: &Self) -> Ordering {
        let rank = |key: &Self| match key {
            Self::Nothing => 0,
            Self::Number(_) => 1,
            Self::Text(_) => 2,
        };
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}
