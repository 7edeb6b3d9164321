//! Arguments of `lanecast watch`.

use super::live_table::Order;
use crate::content::form::parse_path;
use crate::content::server::ServerArgs;
use crate::watch::parse_interval;
use lanecast_filter::path::Path;
use std::time::Duration;

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "On a terminal the records are a table that is drawn again and again, with \
    what has changed since the last time in bold. Elsewhere each change is a line: + for a record \
    that is new, ~ for one that has changed, - for one that is gone.\n\
    Keys: q quits; arrows, j, k, PgUp, PgDn, g, G choose a row, which the last line shows whole; \
    s sorts by the next column, r turns the order.\n\
    Examples:\n  \
    lanecast watch -t orders -f \"/qty >= 5000\" --order-by \"/qty DESC\"\n  \
    lanecast watch -t orders --columns /symbol,/qty\n  \
    lanecast watch -t orders --json | jq 'select(.change == \"-\")'\n\
    Exit status: 0 ended by the user, a signal or --count, 1 error, 2 wrong arguments."
)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,

    /// Only records that it lets through
    #[arg(short, long, value_name = "FILTER")]
    pub(super) filter: Option<String>,

    /// Sort by fields, such as "/price DESC, /id"
    #[arg(long, value_name = "FIELDS", value_parser = parse_orders)]
    pub(super) order_by: Option<Orders>,

    /// The fields to show, such as /id,/price; by default those that the first records have
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', value_parser = parse_path)]
    pub(super) columns: Vec<Path>,

    /// Time between two pictures
    #[arg(long, value_name = "INTERVAL", default_value = "500ms", value_parser = parse_interval)]
    pub(super) interval: Duration,

    /// End after this many changes, where standard output is no terminal
    #[arg(long, value_name = "COUNT")]
    pub(super) count: Option<u64>,

    /// Print each change as an object of JSON, on a terminal too
    #[arg(long)]
    pub(super) json: bool,
}

/// Sort order, parsed and as it was written.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    pub(super) text: String,
    pub(super) orders: Vec<Order>,
}

fn parse_orders(text: &str) -> Result<Orders, String> {
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
