//! `lanecast subscribe`.

use super::ServerArgs;
use super::form::{Form, FormArgs, Item};
use crate::stop;
use lanecast_client::{Event, Message};
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

    #[command(flatten)]
    form: FormArgs,
}

pub(crate) fn run(arguments: &SubscribeArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut client = arguments.server.connect()?;
    client.subscribe(&arguments.server.topic, arguments.filter.as_deref())?;
    let mut printer = arguments.form.printer(arguments.server.kind, Form::Raw);
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 && !stop() {
        let mut event = client.next(Some(Duration::ZERO))?;
        if event.is_none() {
            // Before it waits, what has come is shown.
            printer.flush()?;
            event = client.next(Some(ROUND))?;
        }
        match event {
            Some(Event::Message(message)) => {
                printer.print(item(message))?;
                left -= 1;
            }
            Some(Event::Ended { error, .. }) => return Err(error.into()),
            _ => {}
        }
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn item(message: Message) -> Item {
    let Message { topic, key, correlation, body, .. } = message;
    Item { command: "p", topic, key, correlation, body }
}
