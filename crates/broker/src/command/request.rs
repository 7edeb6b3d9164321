//! Typed requests. The header of a command is parsed once, here; all syntax errors are found before
//! the engine changes anything. Filters stay text until the engine compiles them, since their cost
//! is charged to the client and permissions may narrow them.

use crate::command::acknowledgement::ReplyTo;
use crate::command::error::CommandError;
use crate::delivery::field_selection::FieldSelection;
use crate::names::is_pattern;
use lanecast_filter::Selection;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::{Key, Order, Query, SubscriptionOptions};
use lanecast_wire::command::{
    Ack, Acks, Command, Field, Header, Options as OptionList, PROTOCOL_VERSION,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The longest name of a subscription, in bytes.
const SUBSCRIPTION_NAME_MAX: usize = 255;
/// The most records of a message.
const BATCH_MAX: u64 = 10_000;
/// The longest conflation interval.
const CONFLATION_MAX: Duration = Duration::from_secs(3_600);
/// The longest heartbeat interval, in seconds.
const HEARTBEAT_MAX: u64 = 3_600;

/// SubscriptionOptions with a value; all others stand alone.
const VALUE_OPTIONS: [&str; 4] = ["conflation", "select", "top_n", "skip_n"];
const QUERY_OPTIONS: [&str; 4] = ["none", "top_n", "skip_n", "select"];
const SUBSCRIBE_OPTIONS: [&str; 7] =
    ["none", "replace", "non_regex_topic", "oof", "conflation", "select", "no_empties"];
/// SubscriptionOptions of a subscription that begins with a query.
const QUERY_AND_SUBSCRIBE_OPTIONS: [&str; 9] = [
    "none",
    "replace",
    "non_regex_topic",
    "oof",
    "conflation",
    "select",
    "no_empties",
    "top_n",
    "skip_n",
];

/// A command of a client.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) reply_to: ReplyTo<'a>,
    pub(crate) operation: Result<Operation<'a>, CommandError>,
    /// Whether a `persisted` acknowledgement has a meaning for this command.
    pub(crate) is_persistable: bool,
}

/// The operation of a command. Rare, large variants are boxed, so that a publish stays cheap to
/// move.
#[derive(Debug)]
pub(crate) enum Operation<'a> {
    Logon(Box<LogonRequest<'a>>),
    Publish(PublishRequest<'a>),
    Subscribe(Box<SubscribeRequest<'a>>),
    /// The names of subscriptions to end, or `all`.
    Unsubscribe(Cow<'a, str>),
    Query(Box<QueryRequest<'a>>),
    Delete(Box<DeleteRequest<'a>>),
    Flush,
    Heartbeat(HeartbeatRequest),
}

#[derive(Debug)]
pub(crate) struct LogonRequest<'a> {
    /// Checked after the password, as the rest of the logon.
    pub(crate) kind: Result<Option<MessageType>, CommandError>,
    pub(crate) user: Option<Cow<'a, str>>,
    pub(crate) password: Cow<'a, str>,
    pub(crate) client_name: Cow<'a, str>,
    /// States the version of the protocol, which is this server's.
    pub(crate) states_version: bool,
}

#[derive(Debug)]
pub(crate) struct PublishRequest<'a> {
    pub(crate) topic: Cow<'a, str>,
    /// Merges the fields of the message into its record.
    pub(crate) is_delta: bool,
    pub(crate) payload: &'a [u8],
    pub(crate) sequence: Option<u64>,
    pub(crate) sow_key: Option<Cow<'a, str>>,
    pub(crate) lifetime: Option<Duration>,
    pub(crate) correlation_id: Option<Cow<'a, str>>,
    /// The header, if it has a command and a topic only: the next one is probably identical.
    pub(crate) cacheable_header: Option<&'a [u8]>,
}

/// The begin of a subscription, and the form of its updates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscribeMode {
    /// Begins with the records of a query.
    pub(crate) with_records: bool,
    /// Receives changed fields instead of whole records.
    pub(crate) with_deltas: bool,
}

#[derive(Debug)]
pub(crate) struct SubscribeRequest<'a> {
    pub(crate) mode: SubscribeMode,
    pub(crate) topic: Cow<'a, str>,
    /// The topic is a regular expression.
    pub(crate) is_pattern: bool,
    pub(crate) name: Cow<'a, str>,
    /// May replace a subscription of that name.
    pub(crate) replaces: bool,
    pub(crate) filter: Option<Cow<'a, str>>,
    pub(crate) options: SubscriptionOptions,
    pub(crate) fields: FieldSelection,
    /// The query that the subscription begins with, without its filter.
    pub(crate) query: Query,
    /// The length of the command.
    pub(crate) header_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct QueryRequest<'a> {
    pub(crate) topic: Cow<'a, str>,
    pub(crate) filter: Option<Cow<'a, str>>,
    pub(crate) fields: FieldSelection,
    /// The query, without its filter.
    pub(crate) query: Query,
    /// Records per message.
    pub(crate) batch: usize,
    /// The length of the command.
    pub(crate) header_bytes: usize,
}

/// A deletion: by a filter, by keys, or by the key of a message.
#[derive(Debug)]
pub(crate) struct DeleteRequest<'a> {
    pub(crate) topic: Cow<'a, str>,
    pub(crate) sequence: Option<u64>,
    pub(crate) filter: Option<Cow<'a, str>>,
    pub(crate) keys: Option<Vec<Key>>,
    pub(crate) payload: &'a [u8],
    pub(crate) sow_key: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum HeartbeatRequest {
    /// Heartbeats in both directions, at most that many nanoseconds apart.
    Start(u64),
    Stop,
    Beat,
}

impl<'a> Request<'a> {
    /// Parses a command.
    pub(crate) fn parse(header: &Header<'a>) -> Self {
        let command_id = header.text(Field::CommandId);
        let query_id = header.text(Field::QueryId);
        let is_persistable = matches!(
            header.command(),
            Ok(Command::Publish | Command::DeltaPublish | Command::SowDelete | Command::Flush)
        );
        match header.acks() {
            Ok(acks) => {
                let reply_to = ReplyTo { command_id, query_id, acks };
                let operation = Operation::parse(header, &reply_to);
                Self { reply_to, operation, is_persistable }
            }
            // Without a valid list the client hears at least that the command failed.
            Err(error) => {
                let acks = Acks::NONE.with(Ack::Processed);
                let reply_to = ReplyTo { command_id, query_id, acks };
                let operation = Err(CommandError::Header(error));
                Self { reply_to, operation, is_persistable }
            }
        }
    }
}

impl<'a> Operation<'a> {
    fn parse(header: &Header<'a>, reply_to: &ReplyTo<'a>) -> Result<Self, CommandError> {
        let subscribe = |with_records, with_deltas| {
            let mode = SubscribeMode { with_records, with_deltas };
            SubscribeRequest::parse(header, mode, reply_to).map(Box::new).map(Self::Subscribe)
        };
        Ok(match header.command()? {
            Command::Publish => Self::Publish(PublishRequest::parse(header, false)?),
            Command::DeltaPublish => Self::Publish(PublishRequest::parse(header, true)?),
            Command::Logon => Self::Logon(Box::new(LogonRequest::parse(header)?)),
            Command::Subscribe => subscribe(false, false)?,
            Command::SowAndSubscribe => subscribe(true, false)?,
            Command::DeltaSubscribe => subscribe(false, true)?,
            Command::SowAndDeltaSubscribe => subscribe(true, true)?,
            Command::Unsubscribe => Self::Unsubscribe(required(header, Field::SubscriptionId)?),
            Command::Flush => Self::Flush,
            Command::Sow => Self::Query(Box::new(QueryRequest::parse(header)?)),
            Command::SowDelete => Self::Delete(Box::new(DeleteRequest::parse(header)?)),
            Command::Heartbeat => Self::Heartbeat(HeartbeatRequest::parse(header)?),
            other => return Err(CommandError::not_for_servers(other)),
        })
    }

    /// The topic that the command changes, if it changes one.
    pub(crate) fn written_topic(&self) -> Option<&str> {
        match self {
            Self::Publish(publish) => Some(&publish.topic),
            Self::Delete(delete) => Some(&delete.topic),
            _ => None,
        }
    }

    /// The publisher's sequence number.
    pub(crate) fn sequence(&self) -> Option<u64> {
        match self {
            Self::Publish(publish) => publish.sequence,
            Self::Delete(delete) => delete.sequence,
            _ => None,
        }
    }
}

impl<'a> LogonRequest<'a> {
    fn parse(header: &Header<'a>) -> Result<Self, CommandError> {
        let version = header.number(Field::ProtocolVersion)?;
        if let Some(other) = version.filter(|version| *version != PROTOCOL_VERSION) {
            return Err(CommandError::ProtocolVersion(other));
        }
        let kind = header.text(Field::MessageType).map(|text| {
            let kind = text.parse::<MessageType>();
            kind.map_err(|_| CommandError::MessageType(text.into_owned()))
        });
        Ok(Self {
            kind: kind.transpose(),
            user: header.text(Field::UserId),
            password: header.text(Field::Password).unwrap_or_default(),
            client_name: header.text(Field::ClientName).unwrap_or_default(),
            states_version: version.is_some(),
        })
    }
}

impl<'a> PublishRequest<'a> {
    fn parse(header: &Header<'a>, is_delta: bool) -> Result<Self, CommandError> {
        let is_plain = !is_delta && header.has_just(&[Field::Command, Field::Topic]);
        // Zero seconds mean that the record never expires.
        let lifetime = header.number(Field::Expiration)?.map(|seconds| match seconds {
            0 => Duration::MAX,
            seconds => Duration::from_secs(seconds),
        });
        Ok(Self {
            topic: required(header, Field::Topic)?,
            is_delta,
            payload: header.body(),
            sequence: header.number(Field::Sequence)?,
            sow_key: header.text(Field::SowKey),
            lifetime,
            correlation_id: header.text(Field::CorrelationId),
            cacheable_header: is_plain.then(|| header.bytes()),
        })
    }
}

impl<'a> SubscribeRequest<'a> {
    fn parse(
        header: &Header<'a>,
        mode: SubscribeMode,
        reply_to: &ReplyTo<'a>,
    ) -> Result<Self, CommandError> {
        let topic = required(header, Field::Topic)?;
        let list = header.text(Field::Options).unwrap_or_default();
        let known = match mode.with_records {
            true => &QUERY_AND_SUBSCRIBE_OPTIONS[..],
            false => &SUBSCRIBE_OPTIONS,
        };
        let list = parse_options(&list, known)?;
        reject_bookmark(header)?;
        let options = SubscriptionOptions {
            out_of_focus: list.has("oof") || header.flag(Field::SendOof)?,
            conflation: parse_conflation(list)?,
            batch: parse_batch(header)?,
            delta: mode.with_deltas,
            ..SubscriptionOptions::default()
        };
        let given = header.text(Field::SubscriptionId);
        let name = given.or_else(|| reply_to.command_id.clone()).unwrap_or_default();
        if name.is_empty() || name.len() > SUBSCRIPTION_NAME_MAX || name.contains(',') {
            return Err(CommandError::SubscriptionName { max: SUBSCRIPTION_NAME_MAX });
        }
        let is_pattern = is_pattern(&topic) && !list.has("non_regex_topic");
        if mode.with_records && is_pattern {
            return Err(CommandError::NotYet("questions to several topics at once"));
        }
        let query = match mode.with_records {
            true => parse_query(header, list)?,
            false => Query::default(),
        };
        Ok(Self {
            mode,
            topic,
            is_pattern,
            name,
            replaces: list.has("replace"),
            filter: header.text(Field::Filter),
            options,
            fields: parse_fields(list)?,
            query,
            header_bytes: header.len(),
        })
    }
}

impl<'a> QueryRequest<'a> {
    fn parse(header: &Header<'a>) -> Result<Self, CommandError> {
        let topic = required(header, Field::Topic)?;
        let list = header.text(Field::Options).unwrap_or_default();
        let list = parse_options(&list, &QUERY_OPTIONS)?;
        reject_bookmark(header)?;
        Ok(Self {
            topic,
            filter: header.text(Field::Filter),
            fields: parse_fields(list)?,
            query: parse_query(header, list)?,
            batch: parse_batch(header)?,
            header_bytes: header.len(),
        })
    }
}

impl<'a> DeleteRequest<'a> {
    fn parse(header: &Header<'a>) -> Result<Self, CommandError> {
        let topic = header.text(Field::Topic).ok_or(CommandError::Missing(Field::Topic))?;
        reject_bookmark(header)?;
        Ok(Self {
            topic,
            sequence: header.number(Field::Sequence)?,
            filter: header.text(Field::Filter),
            keys: header.text(Field::SowKeys).map(|keys| parse_keys(&keys)).transpose()?,
            payload: header.body(),
            sow_key: header.text(Field::SowKey),
        })
    }
}

impl HeartbeatRequest {
    fn parse(header: &Header<'_>) -> Result<Self, CommandError> {
        let text = header.text(Field::Options).or_else(|| header.text(Field::Heartbeat));
        let text = text.unwrap_or_default();
        match text.split_once(',').unwrap_or((&*text, "")) {
            ("beat", "") => Ok(Self::Beat),
            ("stop", "") => Ok(Self::Stop),
            ("start", seconds) => {
                let seconds = seconds.trim().parse::<u64>().ok();
                let seconds = seconds.filter(|seconds| (1..=HEARTBEAT_MAX).contains(seconds));
                Ok(Self::Start(seconds.ok_or(CommandError::Heartbeat)? * 1_000_000_000))
            }
            _ => Err(CommandError::Heartbeat),
        }
    }
}

/// A field that must not be empty.
fn required<'a>(header: &Header<'a>, field: Field) -> Result<Cow<'a, str>, CommandError> {
    header.text(field).filter(|text| !text.is_empty()).ok_or(CommandError::Missing(field))
}

/// Rejects subscriptions and queries that begin in the past: the server keeps no history.
fn reject_bookmark(header: &Header<'_>) -> Result<(), CommandError> {
    match header.text(Field::Bookmark) {
        Some(_) => Err(CommandError::NotYet("bookmarks")),
        None => Ok(()),
    }
}

/// Parses a list of options, and checks that each is known and has a value if it needs one.
fn parse_options<'a>(text: &'a str, known: &[&str]) -> Result<OptionList<'a>, CommandError> {
    let list = OptionList::parse(text)?;
    for (name, value) in list.iter() {
        let needs_value = VALUE_OPTIONS.contains(&name);
        match value {
            _ if !known.contains(&name) => return Err(CommandError::Option(name.to_owned())),
            None if needs_value => return Err(CommandError::NoValue(name.to_owned())),
            Some(_) if !needs_value => return Err(CommandError::Value(name.to_owned())),
            _ => {}
        }
    }
    Ok(list)
}

fn parse_conflation(list: OptionList<'_>) -> Result<Option<Duration>, CommandError> {
    let text = match list.value("conflation") {
        None | Some("none") => return Ok(None),
        Some(text) => text,
    };
    let interval = lanecast_base::parse_duration(text).map_err(|_| CommandError::Conflation)?;
    let is_valid = interval <= CONFLATION_MAX && !interval.is_zero();
    if is_valid { Ok(Some(interval)) } else { Err(CommandError::Conflation) }
}

fn parse_batch(header: &Header<'_>) -> Result<usize, CommandError> {
    Ok(header.number(Field::BatchSize)?.unwrap_or(1).clamp(1, BATCH_MAX) as usize)
}

fn parse_fields(list: OptionList<'_>) -> Result<FieldSelection, CommandError> {
    let selection = list.value("select").map(str::parse::<Selection>).transpose()?;
    let selection = selection.map(Arc::new);
    Ok(FieldSelection { selection, skip_empty: list.has("no_empties") })
}

fn parse_query(header: &Header<'_>, list: OptionList<'_>) -> Result<Query, CommandError> {
    let number = |name: &'static str| match list.value(name) {
        None => Ok(None),
        Some(text) => text.parse::<usize>().map(Some).map_err(|_| CommandError::Number(name)),
    };
    let top = match header.number(Field::TopN)? {
        Some(top) => Some(usize::try_from(top).unwrap_or(usize::MAX)),
        None => number("top_n")?,
    };
    let keys = header.text(Field::SowKeys).map(|keys| parse_keys(&keys)).transpose()?;
    let order = header.text(Field::OrderBy).map(|text| parse_order(&text)).transpose()?;
    let (order, skip) = (order.unwrap_or_default(), number("skip_n")?.unwrap_or(0));
    Ok(Query { keys, order, skip, top, ..Query::default() })
}

fn parse_keys(list: &str) -> Result<Vec<Key>, CommandError> {
    let keys = list.split(',').map(|key| key.trim().parse().map(Key));
    keys.collect::<Result<_, _>>().map_err(|_| CommandError::SowKeys)
}

/// Parses fields, each optionally followed by `ASC` or `DESC`.
fn parse_order(list: &str) -> Result<Vec<Order>, CommandError> {
    let fields = list.split(',').map(|field| {
        let mut words = field.split_whitespace();
        let path = words.next().ok_or(CommandError::OrderBy)?;
        let descending = match words.next().map(str::to_ascii_uppercase).as_deref() {
            None | Some("ASC") => false,
            Some("DESC") => true,
            Some(_) => return Err(CommandError::OrderBy),
        };
        let order = if descending { Order::descending(path) } else { Order::ascending(path) };
        match words.next() {
            Some(_) => Err(CommandError::OrderBy),
            None => order.map_err(|_| CommandError::OrderBy),
        }
    });
    fields.collect()
}
