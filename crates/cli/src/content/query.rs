//! `lanecast query` and `lanecast delete`.

use super::form::{Form, FormArgs, Item};
use super::server::ServerArgs;
use crate::output::print_error;
use crate::table::counted;
use clap::ArgGroup;
use lanecast_client::{Deletion, Query};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Arguments of `query`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Records are kept of topics that the server was told to keep: \
    lanecast serve --keep orders:json:/id.\n\
    Examples:\n  \
    lanecast query -t orders -f \"/qty > 100\" --order-by \"/qty DESC\" --top 10\n  \
    lanecast query -t orders --format json | jq .qty\n\
    Exit status: 0 done, 1 error, 2 wrong arguments.")]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Only records that it lets through
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,

    /// Sort by fields, such as "/price DESC, /id"
    #[arg(long, value_name = "FIELDS")]
    order_by: Option<String>,

    /// At most so many
    #[arg(long, value_name = "COUNT")]
    top: Option<u64>,

    /// Leave out so many at first
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    skip: u64,

    /// Which of their fields come, such as -/,+/symbol,+/qty
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    select: Option<String>,

    #[command(flatten)]
    form: FormArgs,
}

/// Arguments of `delete`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("what").required(true),
    after_help = "Exit status: 0 done, 1 error, 2 wrong arguments."
)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// The records that it lets through
    #[arg(short, long, value_name = "FILTER", group = "what")]
    filter: Option<String>,

    /// The records of these numbers, as query --json shows them, separated by commas
    #[arg(long, value_name = "KEYS", value_delimiter = ',', group = "what")]
    keys: Vec<u64>,

    /// The record that has the key of this message
    #[arg(long, value_name = "MESSAGE", group = "what")]
    like: Option<String>,
}

pub(crate) fn query(arguments: &QueryArgs) -> anyhow::Result<ExitCode> {
    let mut client = arguments.server.connect()?;
    let question = Query {
        filter: arguments.filter.clone(),
        order_by: arguments.order_by.clone(),
        top: arguments.top,
        skip: arguments.skip,
        select: arguments.select.clone(),
    };
    let usual = if io::stdout().is_terminal() { Form::Table } else { Form::Raw };
    let mut printer = arguments.form.printer(arguments.server.kind, usual);
    let topic = &arguments.server.topic;
    for record in client.query(topic, &question)? {
        let (topic, key) = (topic.clone(), Some(record.key));
        let body = record.body;
        printer.print(Item { key, ..Item::new("sow", topic, body) })?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn delete(arguments: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let mut like = arguments.like.clone().unwrap_or_default().into_bytes();
    arguments.server.kind.meant(&mut like);
    let deletion = match &arguments.filter {
        Some(filter) => Deletion::Filter(filter),
        None if arguments.keys.is_empty() => Deletion::Like(&like),
        None => Deletion::Keys(&arguments.keys),
    };
    let mut client = arguments.server.connect()?;
    let deleted = client.delete_with(&arguments.server.topic, &deletion)?;
    print_error(&format!("{} deleted", counted(deleted, "record")));
    Ok(ExitCode::SUCCESS)
}
