//! `lanecast query` and `lanecast delete`.

use super::{SOH, ServerArgs};
use crate::output::{print_json, say};
use crate::table::grouped;
use lanecast_client::Question;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments of `query`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Records are kept of topics that the server was told to keep: \
    lanecast serve --keep orders:json:/id.\n\
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

    /// Print each record as an object of JSON, with its key
    #[arg(long)]
    json: bool,
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

/// A record as `--json` shows it. The key is a text, as it may be too great for a number of JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    key: String,
    body: Cow<'a, str>,
}

pub(crate) fn query(arguments: &QueryArgs) -> anyhow::Result<ExitCode> {
    let mut client = arguments.server.connect()?;
    let question = Question {
        filter: arguments.filter.clone(),
        order_by: arguments.order_by.clone(),
        top: arguments.top,
        skip: arguments.skip,
    };
    for mut record in client.query(&arguments.server.topic, &question)? {
        if let Some(stand_in) = arguments.server.stand_in() {
            record.body.iter_mut().filter(|byte| **byte == SOH).for_each(|byte| *byte = stand_in);
        }
        if arguments.json {
            let body = String::from_utf8_lossy(&record.body);
            print_json(&Shown { key: record.key.to_string(), body })?;
        } else {
            record.body.push(b'\n');
            io::stdout().lock().write_all(&record.body)?;
        }
    }
    io::stdout().lock().flush()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn delete(arguments: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let mut client = arguments.server.connect()?;
    let deleted = client.delete(&arguments.server.topic, &arguments.filter)?;
    say(&format!("{} records deleted", grouped(deleted)));
    Ok(ExitCode::SUCCESS)
}
