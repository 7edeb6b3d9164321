//! `lanecast subscribe`.

use super::form::{Form, FormArgs, Item};
use super::server::ServerArgs;
use crate::stop;
use lanecast::parse_duration;
use lanecast_client::{Client, ClientError, Event, Message, Query, SubscribeOptions};
use std::process::ExitCode;
use std::time::Duration;

/// Longest delay until the stop flag is seen.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Arguments of `subscribe`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A topic such as ^orders, with one of * + ? ( ) [ ] { } | ^ $ \\ in it, is \
    a regular expression: all topics in whose names it is found.\n\
    Filters: docs/protocol/filter.md.\n\
    Examples:\n  \
    lanecast subscribe -t orders -f \"/symbol = 'IBM' and /qty >= 5000\"\n  \
    lanecast subscribe -t orders --sow --delta --oof\n\
    Exit status: 0 ended by a signal or by --count, 1 error, 2 wrong arguments."
)]
pub(crate) struct SubscribeArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Only messages that it lets through, such as "/symbol = 'IBM' and /qty >= 5000"
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,

    /// First the records that are kept of the topic, then what changes about them
    #[arg(long)]
    sow: bool,

    /// Receive deltas: of records only the key fields and the changed fields
    #[arg(long)]
    delta: bool,

    /// Also records that leave the filter, are deleted or expire; all is JSON with --meta then,
    /// unless you ask for another form
    #[arg(long)]
    oof: bool,

    /// Each record at most once in this time, as it is then
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    conflate: Option<Duration>,

    /// Which of their fields come, such as -/,+/symbol,+/qty
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    select: Option<String>,

    /// End after so many messages
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,

    #[command(flatten)]
    form: FormArgs,
}

pub(crate) fn run(arguments: &SubscribeArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut client = arguments.server.connect()?;
    begin(arguments, &mut client)?;
    let kind = arguments.server.kind;
    let mut printer = match arguments.oof {
        true => arguments.form.telling_printer(kind),
        false => arguments.form.printer(kind, Form::Raw),
    };
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 && !stop() {
        let mut event = client.next(Some(Duration::ZERO))?;
        if event.is_none() {
            // Before it waits, what has come is shown.
            printer.flush()?;
            event = client.next(Some(CHECK_INTERVAL))?;
        }
        if let Some(event) = event
            && let Some(item) = item(event, &arguments.server.topic)?
        {
            printer.print(item)?;
            left -= 1;
        }
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn begin(arguments: &SubscribeArgs, client: &mut Client) -> Result<(), ClientError> {
    let question = Query {
        filter: arguments.filter.clone(),
        select: arguments.select.clone(),
        ..Query::default()
    };
    let wishes = SubscribeOptions {
        out_of_focus: arguments.oof,
        conflation: arguments.conflate,
        deltas: arguments.delta,
    };
    let topic = &arguments.server.topic;
    if arguments.sow {
        client.query_and_subscribe(topic, &question, &wishes)?;
    } else {
        client.subscribe_with(topic, &question, &wishes)?;
    }
    Ok(())
}

/// The printable item of an event.
fn item(event: Event, topic: &str) -> Result<Option<Item>, ClientError> {
    let of = |command, message, reason| {
        let Message { topic, key, correlation, body, .. } = message;
        Item { command, topic, key, correlation, reason, body }
    };
    Ok(match event {
        Event::Message(message) => Some(of("p", message, None)),
        Event::Left { message, reason } => Some(of("oof", message, Some(reason))),
        Event::Record { record, .. } => {
            let item = Item::new("sow", topic.to_owned(), record.body);
            Some(Item { key: Some(record.key), ..item })
        }
        Event::Ended { error, .. } => return Err(error),
        Event::Current { .. } | Event::Resumed { .. } => None,
    })
}
