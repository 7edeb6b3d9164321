//! `lanecast query` and `lanecast delete`.

use super::form::{Form, FormArgs, Item};
use super::order::{Orders, parse_orders};
use super::server::{RecordsArgs, ServerArgs};
use crate::output::print_error;
use crate::table::counted;
use clap::ArgGroup;
use lanecast_client::{Deletion, Query};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Arguments of `query`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "lanecast query <TOPIC> [OPTIONS]",
    after_help = "Records are kept of topics that the server was told to keep: \
    lanecast serve --keep orders:json:/id.\n\
    Examples:\n  \
    lanecast query orders -f \"/qty > 100\" --order-by \"/qty DESC\" --top 10\n  \
    lanecast query orders --format json | jq .qty\n\
    Exit status: 0 done, 1 error, 2 wrong arguments."
)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    records: RecordsArgs,

    /// Sort by fields, such as "/price DESC, /id"
    #[arg(long, value_name = "FIELDS", value_parser = parse_orders)]
    order_by: Option<Orders>,

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
    server: ServerArgs,

    #[command(flatten)]
    form: FormArgs,
}

/// Arguments of `delete`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("what").required(true).args(["filter", "keys", "like"]),
    override_usage = "lanecast delete <TOPIC> <--filter|--keys|--like> <VALUE> [OPTIONS]",
    after_help = "Examples:\n  \
    lanecast delete orders -f \"/qty = 0\"\n  \
    lanecast delete orders --like '{\"id\":1}'\n\
    Exit status: 0 done, 1 error, 2 wrong arguments."
)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    records: RecordsArgs,

    /// The records of these numbers, as query --json shows them, separated by commas
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    keys: Vec<u64>,

    /// The record that has the key of this message
    #[arg(long, value_name = "MESSAGE")]
    like: Option<String>,

    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn query(arguments: &QueryArgs) -> anyhow::Result<ExitCode> {
    let mut client = arguments.records.connect(&arguments.server)?;
    let question = Query {
        filter: arguments.records.filter.clone(),
        order_by: arguments.order_by.as_ref().map(|orders| orders.text.clone()),
        top: arguments.top,
        skip: arguments.skip,
        select: arguments.select.clone(),
    };
    let usual = if io::stdout().is_terminal() { Form::Table } else { Form::Raw };
    let mut printer = arguments.form.printer(arguments.records.kind, usual);
    let topic = arguments.records.topic();
    for record in client.query(topic, &question)? {
        let (topic, key) = (topic.to_owned(), Some(record.key));
        let body = record.body;
        printer.print(Item { key, ..Item::new("sow", topic, body) })?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn delete(arguments: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let mut like = arguments.like.clone().unwrap_or_default().into_bytes();
    arguments.records.kind.meant(&mut like);
    let deletion = match &arguments.records.filter {
        Some(filter) => Deletion::Filter(filter),
        None if arguments.keys.is_empty() => Deletion::Like(&like),
        None => Deletion::Keys(&arguments.keys),
    };
    let mut client = arguments.records.connect(&arguments.server)?;
    let deleted = client.delete_with(arguments.records.topic(), &deletion)?;
    print_error(&format!("{} deleted", counted(deleted, "record")));
    Ok(ExitCode::SUCCESS)
}
