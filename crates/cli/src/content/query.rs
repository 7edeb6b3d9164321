//! `lanecast query` and `lanecast delete`.

use super::ServerArgs;
use super::form::{Form, FormArgs, Item};
use crate::output::say;
use crate::table::grouped;
use lanecast_client::Question;
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

    #[command(flatten)]
    form: FormArgs,
}

/// Arguments of `delete`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 done, 1 error, 2 wrong arguments.")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// The records that it lets through
    #[arg(short, long, value_name = "FILTER")]
    filter: String,
}

pub(crate) fn query(arguments: &QueryArgs) -> anyhow::Result<ExitCode> {
    let mut client = arguments.server.connect()?;
    let question = Question {
        filter: arguments.filter.clone(),
        order_by: arguments.order_by.clone(),
        top: arguments.top,
        skip: arguments.skip,
    };
    let usual = if io::stdout().is_terminal() { Form::Table } else { Form::Raw };
    let mut printer = arguments.form.printer(arguments.server.kind, usual);
    let topic = &arguments.server.topic;
    for record in client.query(topic, &question)? {
        let (topic, key) = (topic.clone(), Some(record.key));
        let body = record.body;
        printer.print(Item { command: "sow", topic, key, correlation: None, body })?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn delete(arguments: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let mut client = arguments.server.connect()?;
    let deleted = client.delete(&arguments.server.topic, &arguments.filter)?;
    say(&format!("{} records deleted", grouped(deleted)));
    Ok(ExitCode::SUCCESS)
}
