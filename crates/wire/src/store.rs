//! Frames of persistence: what publishers, receivers and stores send each other over any transport.
//! See `docs/protocol/persistence.md`.
//!
//! - [`StoreHeader`]: the beginning of every frame
//! - [`StoreFrame`]: a frame, read and checked
//! - [`LogRecord`]: a record of a store's log; [`KeptMessage`]: one of a message
//! - [`CheckpointHeader`], [`StreamCheckpoint`], [`StreamPositions`]: a store's state in a file
//! - [`Consumption`]: how far a receiver has come
//! - [`StoreRefusal`]: a store keeps no stream, or no position, and tells why
//! - [`StorePage`], [`StreamReport`]: a store's streams, for administrators
//! - [`Ballot`], [`Run`], [`Members`]: identity of a publisher's run, the runs of a log, the stores
//!   that hold it and the [`Grouping`] in which they decide

mod administration;
mod begin;
mod checkpoint;
mod frame;
mod lists;
mod members;
mod offer;
#[cfg(test)]
mod page;
mod record;
mod refusal;
mod state;
#[cfg(test)]
mod tests;

pub use administration::{
    DEREGISTER_PROOF, DeregisterOutcome, ReceiverReport, Registration, StorePage, StreamReport,
};
pub use checkpoint::{
    CHECKPOINT_MAGIC, CHECKPOINT_VERSION, CHECKPOINT_VERSION_READ, CheckpointHeader, Span,
    SpanMark, StreamCheckpoint, StreamPositions,
};
pub use frame::{StoreFrame, StoreFrameError};
pub use lists::{Records, RecordsWriter, TimedRecords, TimedRecordsWriter};
pub use members::{GroupRule, Grouping, Members};
pub use offer::StoreOffer;
pub use record::{KeptMessage, LogRecord};
pub use refusal::StoreRefusal;
pub use state::StoreState;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, Unaligned};

/// The version of the frames.
pub const STORE_VERSION: u8 = 7;
/// Bytes of a frame's header, without the topic's name.
pub const STORE_HEADER: usize = size_of::<StoreHeader>();
/// The most stores of a stream.
pub const STORES_MAX: usize = 64;
/// The longest name of a store, in bytes.
pub const STORE_NAME_MAX: usize = 64;
/// The largest sequence, number and epoch: no arithmetic on them overflows.
pub const STORE_NUMBER_MAX: u64 = 1 << 62;
/// The longest frame without messages, in bytes: the offer of a stream with the most stores and
/// runs. A transport that carries no messages of this length cannot carry the protocol.
pub const STORE_CONTROL_MAX: usize = 6_774;
/// The most receivers in an answer to a question for positions, those that have left included.
pub const POSITIONS_MAX: usize = 128;
/// The most receivers of a stream that a store remembers as departed.
pub const DEPARTURES_MAX: usize = 256;
/// The most runs that a log remembers.
pub const RUNS_MAX: usize = 64;

/// Header of every frame; the name of the topic follows, then the body.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct StoreHeader {
    /// [`STORE_VERSION`].
    pub version: u8,
    /// A [`StoreKind`].
    pub kind: u8,
    /// Bytes of the topic's name.
    pub topic: u8,
    /// Zero.
    pub reserved: u8,
    /// Zero.
    pub padding: U32,
    /// The sender of a request; in a reply, the client that it is for.
    pub client: U64,
    /// The publisher's stable id.
    pub source: U64,
}

const _: () = assert!(STORE_HEADER == 24);

impl StoreHeader {
    /// The client in a request of any version: the header stays as it is. `None` if it is too short
    /// for one.
    pub fn client_of_any_version(bytes: &[u8]) -> Option<u64> {
        Self::read_from_prefix(bytes).ok().map(|(header, _)| header.client.get())
    }

    /// The answer of a store to a request of another version: a header with no kind, of which
    /// `client` reads the version.
    pub fn version_refusal(client: u64) -> [u8; STORE_HEADER] {
        let header = Self { version: STORE_VERSION, client: client.into(), ..Self::new_zeroed() };
        zerocopy::transmute!(header)
    }
}

/// Kinds of frames: requests first, replies of stores from 32 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StoreKind {
    /// Asks for the state of a stream.
    Query = 1,
    /// Asks a store to accept this run of the publisher and none before it.
    Open = 2,
    /// Begins the run: what the log holds in front of it, and where it goes on.
    Begin = 3,
    /// Messages again, from the publisher.
    Resend = 4,
    /// Messages that the publisher has no more, and the store that has them.
    Elsewhere = 5,
    /// The stores that hold the stream from here on.
    Reconfigure = 6,
    /// Asks for messages.
    Fetch = 7,
    /// A receiver asks for the streams of its topic, and how far it has consumed them.
    Attach = 8,
    /// A receiver has consumed messages.
    Consumed = 9,
    /// A receiver gives up its registration.
    Detach = 10,
    /// An administrator asks for the store's streams.
    Inspect = 11,
    /// An administrator ends a registration.
    Deregister = 12,
    /// A store asks another one how far receivers have come.
    FetchPositions = 13,
    /// The state of a stream.
    State = 32,
    /// The end of the durable part of the stream.
    Stable = 33,
    /// Messages are missing.
    Want = 34,
    /// Messages.
    Fetched = 35,
    /// A stream of a receiver's topic.
    Offer = 36,
    /// The end of the answer to a receiver's question for streams.
    Streams = 37,
    /// The end of the durable part of a receiver's consumption.
    Acknowledged = 38,
    /// Streams of the store.
    Inspected = 39,
    /// The answer to Deregister.
    Deregistered = 40,
    /// Asks an administrator to prove that it knows the key.
    Challenge = 41,
    /// Positions of receivers.
    FetchedPositions = 42,
    /// The registration of a receiver has ended, and that is on disk.
    Detached = 43,
    /// The store does not keep a stream, or the position of a receiver.
    Refused = 44,
    /// A stream of a receiver's topic whose state the store cannot tell now.
    Unsettled = 45,
}

impl StoreKind {
    /// The kind with this number.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Query,
            2 => Self::Open,
            3 => Self::Begin,
            4 => Self::Resend,
            5 => Self::Elsewhere,
            6 => Self::Reconfigure,
            7 => Self::Fetch,
            8 => Self::Attach,
            9 => Self::Consumed,
            10 => Self::Detach,
            11 => Self::Inspect,
            12 => Self::Deregister,
            13 => Self::FetchPositions,
            32 => Self::State,
            33 => Self::Stable,
            34 => Self::Want,
            35 => Self::Fetched,
            36 => Self::Offer,
            37 => Self::Streams,
            38 => Self::Acknowledged,
            39 => Self::Inspected,
            40 => Self::Deregistered,
            41 => Self::Challenge,
            42 => Self::FetchedPositions,
            43 => Self::Detached,
            44 => Self::Refused,
            45 => Self::Unsettled,
            _ => return None,
        })
    }
}

/// Identity of a publisher's run. Later runs have larger ones: by `epoch`, then by `session`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// One more than the largest that the publisher found.
    pub epoch: u64,
    /// The session on which the run's messages travel.
    pub session: u64,
}

impl Ballot {
    /// Before the first run.
    pub const ZERO: Self = Self { epoch: 0, session: 0 };
}

/// A run in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The store's identity.
    pub ballot: Ballot,
    /// Sequence of its first message.
    pub start: u64,
}

/// Consumption of a stream by a receiver: all messages before `next`, the last of them in `run`.
///
/// A sequence alone would not do: messages that were never stable can give way to others under the
/// same sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumption {
    /// The run of the last message that was consumed.
    pub run: Run,
    /// Sequence of the first message that was not.
    pub next: u64,
}

impl Consumption {
    /// Nothing consumed.
    pub const NONE: Self = Self { run: Run { ballot: Ballot::ZERO, start: 0 }, next: 0 };

    /// Whether this is further than `other`.
    pub fn is_after(&self, other: &Self) -> bool {
        (self.run.ballot, self.next) > (other.run.ballot, other.next)
    }
}

/// A receiver that is registered with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The receiver's stable id.
    pub receiver: u64,
    /// Position after the last consumed message.
    pub consumption: Consumption,
    /// The life of the receiver that has reported it: each start of its program has a later one. 0
    /// in logs and checkpoints of builds before version 5.
    pub life: u64,
    /// The receiver does not hold a receiver-paced publisher back.
    pub is_non_blocking: bool,
    /// The receiver was away for longer than registrations live: nothing is kept for it but its
    /// position, until it comes back. Not told in frames.
    pub is_expired: bool,
    /// Nanoseconds for which the store, while it was up, had not heard of it. Not told in frames.
    pub away_ns: u64,
}

impl Registered {
    /// A receiver that holds publishers back and has come so far.
    pub const fn new(receiver: u64, consumption: Consumption) -> Self {
        let (life, is_non_blocking, is_expired, away_ns) = (0, false, false, 0);
        Self { receiver, consumption, life, is_non_blocking, is_expired, away_ns }
    }
}

/// A receiver that has given up its registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The receiver's stable id.
    pub receiver: u64,
    /// The life that has ended, and all before it.
    pub life: u64,
}

/// Stream that a frame is about, and the client that sent it or receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreAddress<'a> {
    /// The client.
    pub client: u64,
    /// The publisher's stable id.
    pub source: u64,
    /// The topic's name, at most 255 bytes.
    pub topic: &'a str,
}
