//! `lanecast watch`: a query whose answer is kept current.

mod arguments;
mod change;
mod lines;
#[cfg(feature = "top")]
mod live_table;
#[cfg(feature = "top")]
mod picture;
#[cfg(feature = "top")]
mod terminal;

pub(crate) use arguments::WatchArgs;

use lanecast_client::{Query, SubscribeOptions};
use std::process::ExitCode;

pub(crate) fn run(arguments: &WatchArgs) -> anyhow::Result<ExitCode> {
    let mut client = arguments.records.connect(&arguments.server)?;
    let question = Query {
        filter: arguments.records.filter.clone(),
        order_by: arguments.order_by.as_ref().map(|orders| orders.text.clone()),
        ..Query::default()
    };
    let wishes = SubscribeOptions { out_of_focus: true, ..SubscribeOptions::default() };
    // A query for no records fails on a topic without records, which has nothing to watch.
    client.query(arguments.records.topic(), &Query { top: Some(0), ..Query::default() })?;
    client.query_and_subscribe(arguments.records.topic(), &question, &wishes)?;
    #[cfg(feature = "top")]
    if std::io::IsTerminal::is_terminal(&std::io::stdout()) && !arguments.is_lines() {
        return terminal::run(arguments, client);
    }
    lines::run(arguments, client)
}
