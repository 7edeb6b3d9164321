//! `lanecast subscribe`.

use super::{SOH, ServerArgs};
use crate::output::print_json;
use crate::stop;
use lanecast_client::{Event, Message};
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How soon a wish to end is noticed.
const ROUND: Duration = Duration::from_millis(100);

/// Arguments of `subscribe`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A topic such as ^orders, with one of * + ? ( ) [ ] { } | ^ $ \\ in it, is \
    a regular expression: all topics in whose names it is found.\n\
    Filters: docs/protocol/filter.md.\n\
    Exit status: 0 ended by a signal or by --count, 1 error, 2 wrong arguments."
)]
pub(crate) struct SubscribeArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Only messages that it lets through, such as "/symbol = 'IBM' and /qty >= 5000"
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,

    /// End after so many messages
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,

    /// Print each message as an object of JSON, with its topic
    #[arg(long)]
    json: bool,
}

/// A message as `--json` shows it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    topic: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    body: std::borrow::Cow<'a, str>,
}

pub(crate) fn run(arguments: &SubscribeArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut client = arguments.server.connect()?;
    client.subscribe(&arguments.server.topic, arguments.filter.as_deref())?;
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 && !stop() {
        if let Some(Event::Message(mut message)) = client.next(Some(ROUND))? {
            show(arguments, &mut message)?;
            left -= 1;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &SubscribeArgs, message: &mut Message) -> io::Result<()> {
    if let Some(stand_in) = arguments.server.stand_in() {
        message.body.iter_mut().filter(|byte| **byte == SOH).for_each(|byte| *byte = stand_in);
    }
    if arguments.json {
        return print_json(&Shown {
            topic: &message.topic,
            correlation_id: message.correlation.as_deref(),
            body: String::from_utf8_lossy(&message.body),
        });
    }
    message.body.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&message.body)?;
    output.flush()
}
