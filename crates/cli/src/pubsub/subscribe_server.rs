//! `lanecast sub --server`: the messages of a content server's topics.

use super::received::Received;
use super::sub_args::SubArgs;
use crate::content::{Item, connect, given};
use crate::stop;
use anyhow::bail;
use lanecast_client::{Client, ClientError, Event, Message, Query, SubscribeOptions};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Longest delay until the stop flag is seen.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Characters that make a topic a regular expression.
const REGEX_SIGNS: [char; 13] = ['*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$', '\\'];
/// Beginning of the server's reason for refusing a query of a topic that keeps no records.
const NO_RECORDS: &str = "invalid topic: ";

/// Topics by their subscriptions' names.
type Topics = BTreeMap<String, String>;

pub(super) fn run(arguments: &SubArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut client = connect(arguments.shared.server.settings(arguments.shared.kind)?)?;
    check_records(arguments, &mut client)?;
    let topics = subscribe(arguments, &mut client)?;
    let mut received = Received::new(arguments);
    while received.left() > 0 && !stop() {
        let mut event = client.next(Some(Duration::ZERO))?;
        if event.is_none() {
            // Before it waits, what has come is shown.
            received.show()?;
            event = client.next(Some(CHECK_INTERVAL))?;
        }
        if let Some(event) = event
            && let Some(item) = item(event, &topics)?
        {
            received.print(item)?;
        }
    }
    received.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses options about records on a topic that keeps none: the server answers such subscriptions
/// with plain messages, and the topic's name or `--type` may be mistyped.
fn check_records(arguments: &SubArgs, client: &mut Client) -> anyhow::Result<()> {
    let options =
        [(arguments.sow, "--sow"), (arguments.delta, "--delta"), (arguments.oof, "--oof")];
    let Some(option) = given(options) else { return Ok(()) };
    let one = Query { top: Some(1), ..Query::default() };
    // The topics of a regular expression need not be there yet.
    for topic in arguments.topics().into_iter().filter(|topic| !topic.contains(REGEX_SIGNS)) {
        // Users that may subscribe need not be allowed to query: other refusals tell nothing.
        if let Err(ClientError::Refused { reason, .. }) = client.query(topic, &one)
            && reason.starts_with(NO_RECORDS)
        {
            bail!("{option} is for topics with records: the server says: {reason}");
        }
    }
    Ok(())
}

fn subscribe(arguments: &SubArgs, client: &mut Client) -> Result<Topics, ClientError> {
    let query = Query {
        filter: arguments.filter.clone(),
        select: arguments.select.clone(),
        ..Query::default()
    };
    let options = SubscribeOptions {
        out_of_focus: arguments.oof,
        conflation: arguments.conflate,
        deltas: arguments.delta,
    };
    let mut topics = Topics::new();
    for topic in arguments.topics() {
        let name = match arguments.sow {
            true => client.query_and_subscribe(topic, &query, &options)?,
            false => client.subscribe_with(topic, &query, &options)?,
        };
        topics.insert(name, topic.to_owned());
    }
    Ok(topics)
}

/// The printable item of an event.
fn item(event: Event, topics: &Topics) -> Result<Option<Item>, ClientError> {
    let of = |command, message, reason| {
        let Message { topic, key, correlation, body, .. } = message;
        Item { key, correlation, reason, ..Item::new(command, topic, body) }
    };
    Ok(match event {
        Event::Message(message) => Some(of("p", message, None)),
        Event::OutOfFocus { message, reason } => Some(of("oof", message, Some(reason))),
        Event::Record { subscription, record } => {
            let topic = topics.get(&subscription).cloned().unwrap_or_default();
            Some(Item { key: Some(record.key), ..Item::new("sow", topic, record.body) })
        }
        Event::Ended { error, .. } => return Err(error),
        Event::Current { .. } | Event::Resumed { .. } => None,
    })
}
