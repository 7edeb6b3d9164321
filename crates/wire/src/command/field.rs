//! The fields of a command's header: their names, long and short.

/// Encoding of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// In quotes.
    Text,
    /// Digits, without quotes.
    Number,
    /// `true` or `false`, without quotes.
    Flag,
}

macro_rules! fields {
    ($(
        $(#[$doc:meta])*
        $name:ident $long:literal $short:literal $written:literal $shape:ident;
    )*) => {
        /// A field that this version knows. Others are passed over.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Field {
            $($(#[$doc])* $name,)*
        }

        impl Field {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The field of that name, long or short.
            #[inline]
            pub fn named(name: &[u8]) -> Option<Self> {
                match name {
                    $($long => Some(Self::$name),)*
                    _ => abbreviated(name),
                }
            }

            /// The long name.
            pub const fn long(self) -> &'static str {
                match self {
                    $(Self::$name => text($long),)*
                }
            }

            /// The short name; the long one where there is none.
            pub const fn short(self) -> &'static str {
                match self {
                    $(Self::$name => if $short.is_empty() { text($long) } else { text($short) },)*
                }
            }

            /// The name that it is written with.
            pub const fn written(self) -> &'static str {
                match self {
                    $(Self::$name => text($written),)*
                }
            }

            /// Encoding in which it is written; reading accepts all.
            pub const fn shape(self) -> Shape {
                match self {
                    $(Self::$name => Shape::$shape,)*
                }
            }
        }
    };
}

/// The field of a short name: apart, since where there is none there is nothing to match.
#[inline]
const fn abbreviated(name: &[u8]) -> Option<Field> {
    Some(match name {
        b"c" => Field::Command,
        b"t" => Field::Topic,
        b"s" => Field::Sequence,
        b"cid" => Field::CommandId,
        b"a" => Field::AckType,
        b"f" => Field::Filter,
        b"o" => Field::Options,
        b"k" => Field::SowKey,
        b"l" => Field::Length,
        b"bm" => Field::Bookmark,
        b"ts" => Field::Timestamp,
        b"bs" => Field::BatchSize,
        b"e" => Field::Expiration,
        b"x" => Field::CorrelationId,
        b"pw" => Field::Password,
        b"mt" => Field::MessageType,
        b"v" => Field::Version,
        b"lp" => Field::LeasePeriod,
        _ => return None,
    })
}

const fn text(bytes: &'static [u8]) -> &'static str {
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("names are ASCII"),
    }
}

// The name, its long and short spelling, the one that is written, and the value's shape. The short
// one is written where there is one, but for three that clients are known to look for in full.
fields! {
    /// The command.
    Command b"cmd" b"c" b"c" Text;
    /// The command's number, given back in what answers it.
    CommandId b"cmd_id" b"cid" b"cid" Text;
    /// The topic.
    Topic b"topic" b"t" b"t" Text;
    /// A publisher's number of the message.
    Sequence b"seq" b"s" b"s" Number;
    /// Which acknowledgements are wanted, or which one this is.
    AckType b"ack_type" b"a" b"a" Text;
    /// Which messages are wanted.
    Filter b"filter" b"f" b"filter" Text;
    /// The subscription.
    SubscriptionId b"sub_id" b"" b"sub_id" Text;
    /// The subscriptions that a message is for.
    SubscriptionIds b"sids" b"" b"sids" Text;
    /// The query.
    QueryId b"query_id" b"" b"query_id" Text;
    /// Further wishes.
    Options b"opts" b"o" b"opts" Text;
    /// A record's key.
    SowKey b"sow_key" b"k" b"k" Text;
    /// Length of the body in bytes.
    Length b"msg_len" b"l" b"l" Number;
    /// Position of a message in the log.
    Bookmark b"bookmark" b"bm" b"bm" Text;
    /// When the server had the message.
    Timestamp b"timestamp" b"ts" b"ts" Text;
    /// Result of an acknowledged command.
    Status b"status" b"" b"status" Text;
    /// Why.
    Reason b"reason" b"" b"reason" Text;
    /// Records to a message.
    BatchSize b"batch_size" b"bs" b"bs" Number;
    /// Most records.
    TopN b"top_n" b"" b"top_n" Number;
    /// In which order.
    OrderBy b"orderby" b"" b"orderby" Text;
    /// Keys of records, separated by commas.
    SowKeys b"sow_keys" b"" b"sow_keys" Text;
    /// For how long a record is kept, in seconds.
    Expiration b"expiration" b"e" b"e" Number;
    /// Bytes that are handed on unread.
    CorrelationId b"correlation_id" b"x" b"x" Text;
    /// The client's name.
    ClientName b"client_name" b"" b"client_name" Text;
    /// The user.
    UserId b"user_id" b"" b"user_id" Text;
    /// And how it shows that.
    Password b"password" b"pw" b"pw" Text;
    /// The type of messages.
    MessageType b"message_type" b"mt" b"mt" Text;
    /// The version of the client or of the server.
    Version b"version" b"v" b"version" Text;
    /// Until when a message of a queue is leased.
    LeasePeriod b"leaseperiod" b"lp" b"lp" Text;
    /// Whether to tell when records leave the filter.
    SendOof b"send_oof" b"" b"send_oof" Flag;
    /// Whether keys are wanted.
    SendKeys b"send_keys" b"" b"send_keys" Flag;
    /// Whether changes that show nothing are wanted.
    SendEmpty b"send_empty" b"" b"send_empty" Flag;
    /// Whether bodies are wanted without headers.
    DataOnly b"data_only" b"" b"data_only" Flag;
    /// Start, stop or beat.
    Heartbeat b"heartbeat" b"" b"heartbeat" Text;
    /// For how long silence is borne.
    TimeoutInterval b"timeout_interval" b"" b"timeout_interval" Number;
    /// Most messages.
    MaxMessages b"max_msgs" b"" b"max_msgs" Number;
    /// A message's number within its group.
    GroupSequence b"gseq" b"" b"gseq" Number;
    /// Source of the message.
    Source b"src" b"" b"src" Text;
    /// Records that a command inserted.
    RecordsInserted b"records_inserted" b"" b"records_inserted" Number;
    /// Records that it updated.
    RecordsUpdated b"records_updated" b"" b"records_updated" Number;
    /// Records that it deleted.
    RecordsDeleted b"records_deleted" b"" b"records_deleted" Number;
    /// Records that it returned.
    RecordsReturned b"records_returned" b"" b"records_returned" Number;
    /// Records of the topic.
    TopicMatches b"topic_matches" b"" b"topic_matches" Number;
    /// Records of the topic that match the filter.
    Matches b"matches" b"" b"matches" Number;
    /// The version of this protocol that the client or the server speaks.
    ProtocolVersion b"protocol_version" b"" b"protocol_version" Number;
}
