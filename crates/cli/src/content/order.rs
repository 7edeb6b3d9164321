//! Sort orders of records.

use super::form::parse_path;
use lanecast_filter::path::Path;

/// One field of the sort order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) path: Path,
    pub(crate) is_descending: bool,
}

/// Sort order, parsed and as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) text: String,
    pub(crate) orders: Vec<Order>,
}

/// Reads fields with directions, such as `/price DESC, /id`.
pub(crate) fn parse_orders(text: &str) -> Result<Orders, String> {
    let orders = text.split(',').map(|part| {
        let mut words = part.split_whitespace();
        let path = parse_path(words.next().unwrap_or_default())?;
        let is_descending = match words.next().map(str::to_ascii_uppercase).as_deref() {
            None | Some("ASC") => false,
            Some("DESC") => true,
            Some(other) => return Err(format!("{other} is neither ASC nor DESC")),
        };
        match words.next() {
            Some(more) => Err(format!("a comma was expected before {more}")),
            None => Ok(Order { path, is_descending }),
        }
    });
    Ok(Orders { text: text.to_owned(), orders: orders.collect::<Result<_, _>>()? })
}
