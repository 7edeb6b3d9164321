//! `lanecast watch`: a query whose answer is kept current.

mod lines;
#[cfg(feature = "top")]
mod picture;
#[cfg(feature = "top")]
mod terminal;
mod watched;

use super::ServerArgs;
use super::form::parse_path;
use crate::watch::parse_interval;
use lanecast_client::{Event, Query, SubscribeOptions};
use lanecast_filter::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use watched::Order;

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
    server: ServerArgs,

    /// Only records that it lets through
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,

    /// Sort by fields, such as "/price DESC, /id"
    #[arg(long, value_name = "FIELDS", value_parser = parse_orders)]
    order_by: Option<Orders>,

    /// The fields to show, such as /id,/price; by default those that the first records have
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', value_parser = parse_path)]
    columns: Vec<Path>,

    /// Time between two pictures
    #[arg(long, value_name = "INTERVAL", default_value = "500ms", value_parser = parse_interval)]
    interval: Duration,

    /// Where no terminal is: end after so many changes
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,

    /// Print each change as an object of JSON, on a terminal too
    #[arg(long)]
    json: bool,
}

/// What to sort by, and how that was written.
#[derive(Clone, Debug)]
struct Orders {
    text: String,
    orders: Vec<Order>,
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

pub(crate) fn run(arguments: &WatchArgs) -> anyhow::Result<ExitCode> {
    let mut client = arguments.server.connect()?;
    let question = Query {
        filter: arguments.filter.clone(),
        order_by: arguments.order_by.as_ref().map(|orders| orders.text.clone()),
        ..Query::default()
    };
    let wishes = SubscribeOptions { out_of_focus: true, ..SubscribeOptions::default() };
    // Where nothing is kept there is nothing to watch: who asks for records, for none, is told so.
    client.query(&arguments.server.topic, &Query { top: Some(0), ..Query::default() })?;
    client.query_and_subscribe(&arguments.server.topic, &question, &wishes)?;
    #[cfg(feature = "top")]
    if std::io::IsTerminal::is_terminal(&std::io::stdout()) && !arguments.json {
        return terminal::run(arguments, client);
    }
    lines::run(arguments, client)
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Added,
    Changed,
    Removed,
}

/// Something that concerns one record, with its body.
struct Change {
    sign: Sign,
    key: u64,
    body: Vec<u8>,
    /// Why it is gone.
    reason: Option<String>,
}

/// What has happened.
enum News {
    Change(Change),
    /// All records have been told.
    Current,
    /// All records are told anew.
    Restart,
}

/// What an event says of the records; whether one is new, `known` tells.
fn news(event: Event, known: impl Fn(u64) -> bool) -> anyhow::Result<News> {
    let put = |key: u64, body| {
        let sign = if known(key) { Sign::Changed } else { Sign::Added };
        News::Change(Change { sign, key, body, reason: None })
    };
    Ok(match event {
        Event::Record { record, .. } => put(record.key, record.body),
        Event::Message(message) => put(message.key.unwrap_or_default(), message.body),
        Event::Left { message, reason } => {
            let (key, body) = (message.key.unwrap_or_default(), message.body);
            News::Change(Change { sign: Sign::Removed, key, body, reason: Some(reason) })
        }
        Event::Current { .. } => News::Current,
        Event::Resumed { .. } => News::Restart,
        Event::Ended { error, .. } => return Err(error.into()),
    })
}
