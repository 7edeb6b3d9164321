//! Why a command fails: the `reason` of a failed acknowledgement.

use lanecast_base::budget::Exhausted;
use lanecast_filter::index::InsertError;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::{FilterError, SelectionError};
use lanecast_journal::{AppendError, StorageError};
use lanecast_wire::command::{Command, Field, HeaderError, OptionsError, PROTOCOL_VERSION};

/// Why a command fails. Clients of the published protocol match on the words before the colon, so
/// those are fixed; the rest says what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("bad header: {0}")]
    Header(HeaderError),
    #[error("bad command: {0} is not for servers")]
    NotForServers(&'static str),
    #[error("not supported: this server does not know {0} yet")]
    NotYet(&'static str),
    #[error("not supported: the option {0}")]
    Option(String),
    #[error("bad option: {0} needs a value, as in {0}=VALUE")]
    NoValue(String),
    #[error("bad option: {0} stands alone, without a value")]
    Value(String),
    #[error("bad option: conflation is a time such as 100ms, an hour at most, or none")]
    Conflation,
    #[error("bad options: {0}")]
    Options(OptionsError),
    #[error("bad command: {field} is missing", field = .0.long())]
    Missing(Field),
    #[error("invalid topic: a name has 1 to {max} bytes and no control characters")]
    TopicName { max: usize },
    #[error("invalid topic: there are {0} already, which is the limit")]
    Topics(usize),
    #[error(
        "invalid topic: this client has made {0}, which is its limit; those that are not in use go \
         after a while"
    )]
    TopicsOfClient(usize),
    #[error("too many: a client may subscribe to {0} different patterns of topics")]
    Patterns(usize),
    #[error("too many: there are {0} different patterns of topics, which is the limit for all")]
    PatternsOfAll(usize),
    #[error(
        "bad filter: the patterns of this client's subscriptions and queries may take {0} bytes \
         together, compiled and when matched: end some, or use fewer patterns or simpler ones"
    )]
    PatternBytes(usize),
    #[error("bad regex topic: {0}")]
    TopicPattern(String),
    #[error("bad filter: {0}")]
    Filter(Box<FilterError>),
    #[error("bad filter: {0}")]
    Index(InsertError),
    #[error(
        "bad filter: whether a record matched it before cannot be known, as CLIENT_NAME() and \
         UNIX_TIMESTAMP() are not in the record: publish them in a field, or leave out oof and \
         deltas"
    )]
    NotRepeatable,
    #[error("bad options: select: {0}")]
    Selection(SelectionError),
    #[error("not supported: {0} messages have no fields to select; use fix, nvfix or json")]
    NoFields(MessageType),
    #[error("not supported: {0} messages have no deltas; subscribe to whole ones")]
    NoDeltas(MessageType),
    #[error("bad message: {0}")]
    Malformed(Malformed),
    #[error("invalid message type: {0} is none of fix, nvfix, json, xml, binary")]
    MessageType(String),
    #[error("already exists: the subscription {0}")]
    SubscriptionExists(String),
    #[error("bad sub_id: one has 1 to {max} bytes, and no comma")]
    SubscriptionName { max: usize },
    #[error("too many: a client may have {0} subscriptions")]
    Subscriptions(usize),
    #[error(
        "bad protocol_version: this client speaks version {0} of the command protocol, this server \
         version {PROTOCOL_VERSION}: use one version of lanecast at both ends"
    )]
    ProtocolVersion(u64),
    #[error("already exists: this connection has logged on")]
    LoggedOn,
    #[error("bad client_name: one has at most {max} bytes and no control characters")]
    ClientName { max: usize },
    #[error("name in use: another connection is {0}")]
    NameInUse(String),
    #[error(transparent)]
    Record(#[from] lanecast_sow::TopicError),
    #[error("invalid topic: {0} keeps no records: define it with a key in the server's settings")]
    NoRecords(String),
    #[error("invalid topic: this is a view, which its topics alone change")]
    IsView,
    #[error(
        "too many: what the answer is sorted by takes more than {0} bytes, which is the limit of \
         this query, its client or all: ask for fewer records, by top_n or a filter, or sort them \
         at your end"
    )]
    Sorting(usize),
    #[error("bad orderby: write it as in `/price DESC, /id`")]
    OrderBy,
    #[error("bad sow_keys: they are numbers, separated by commas")]
    SowKeys,
    #[error("bad option: {0} is a number")]
    Number(&'static str),
    #[error("bad sow_delete: give one of filter, sow_keys or a message")]
    AmbiguousDelete,
    #[error("not persisted: this topic is in memory alone; make it durable")]
    NotDurable,
    #[error("not persisted: {0}")]
    NotStored(AppendError),
    #[error("not persisted: the disk has failed, and only a restart can tell what is there: {0}")]
    Disk(Box<StorageError>),
    #[error("not authorized: log on first, with user_id and password")]
    NotLoggedOn,
    #[error("not authorized: the user or the password is wrong")]
    Credentials,
    #[error("not entitled: this user may not {0} {1}")]
    NotEntitled(&'static str, String),
    #[error("not entitled: this user sees some messages only, and may not ask {0}")]
    Confined(&'static str),
    #[error(
        "bad seq: {sequence} is too far beyond {last}, the last one of this client's name: number \
         messages one after the other, or use another name"
    )]
    Sequence { sequence: u64, last: u64 },
    #[error(
        "too many: {0} names of clients have numbered messages, which is the limit: use one of \
         them, or send without seq"
    )]
    Names(usize),
    #[error(
        "too many: this user has numbered messages under {0} names, which is the limit: use one of \
         them, or send without seq"
    )]
    NamesOfUser(usize),
    #[error("bad heartbeat: the option is start,SECONDS, beat or stop")]
    Heartbeat,
}

/// Conversions from errors whose text is part of the reason; they are not its `source`, which would
/// print them twice.
macro_rules! from_errors {
    ($($variant:ident($error:ty),)*) => {$(
        impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

impl From<Exhausted> for CommandError {
    fn from(Exhausted(limit): Exhausted) -> Self {
        Self::PatternBytes(limit)
    }
}

from_errors! {
    Header(HeaderError),
    Options(OptionsError),
    Filter(Box<FilterError>),
    Index(InsertError),
    Selection(SelectionError),
    Malformed(Malformed),
    NotStored(AppendError),
}

impl CommandError {
    /// For a command that only servers send.
    pub(crate) fn not_for_servers(command: Command) -> Self {
        Self::NotForServers(command.name())
    }
}
