//! Records of a store's log, as its journal keeps them.

use super::lists::{BallotEntry, add_runs, bounded, flag, runs};
use super::offer::{ConsumedBody, DetachBody, RegisteredBody, RegistrationBody};
use super::{Ballot, Departure, Members, Registered, Run};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

/// A record of a store's log. A store's state is what its durable records say, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRecord<'a> {
    /// A stream that is new to this store, under the number it has in later records.
    Stream {
        /// The stream's number.
        stream: u32,
        /// The topic.
        topic: &'a str,
        /// The publisher's stable id.
        source: u64,
    },
    /// Runs before `ballot` are refused from here on.
    Promised {
        /// The stream.
        stream: u32,
        /// The run.
        ballot: Ballot,
    },
    /// Messages from `next` on are void: they were never stable, and a later run has others.
    Truncated {
        /// The stream.
        stream: u32,
        /// Sequence after the last message that is kept.
        next: u64,
    },
    /// A message.
    Message {
        /// The stream.
        stream: u32,
        /// Sequence of the message.
        sequence: u64,
        /// Bytes of the message.
        body: &'a [u8],
    },
    /// A message, copied from another store.
    Copied {
        /// The stream.
        stream: u32,
        /// Sequence of the message.
        sequence: u64,
        /// Time at which it was written first, at any store, in nanoseconds since 1970.
        unix_ns: u64,
        /// Bytes of the message.
        body: &'a [u8],
    },
    /// A run begins. Messages that were copied from another store since the last
    /// [`Truncated`](Self::Truncated) are part of the log from here on.
    Began {
        /// The stream.
        stream: u32,
        /// Number of the run's first message on its topic.
        number: u64,
        /// Sequence of the oldest message.
        first: u64,
        /// The stores that hold the stream.
        members: Members,
        /// The runs in the log, this one last.
        runs: Vec<Run>,
    },
    /// The stores that hold the stream from here on.
    Reconfigured {
        /// The stream.
        stream: u32,
        /// The stores.
        members: Members,
    },
    /// Messages before `first` were given up by retention.
    Trimmed {
        /// The stream.
        stream: u32,
        /// Sequence of the oldest message.
        first: u64,
    },
    /// A receiver has consumed messages. The first such record registers it.
    Consumed {
        /// The stream.
        stream: u32,
        /// The receiver, and its position.
        registered: Registered,
    },
    /// A receiver's registration was ended by an administrator, or for want of room; in logs of
    /// builds before version 7 also by the receiver.
    Detached {
        /// The stream.
        stream: u32,
        /// The receiver's stable id.
        receiver: u64,
    },
    /// A receiver has given up its registration.
    Departed {
        /// The stream.
        stream: u32,
        /// The receiver, and the life that has ended.
        departure: Departure,
    },
    /// A message again, which retention has moved forward: its segment is going to be removed.
    Moved {
        /// The stream.
        stream: u32,
        /// Sequence of the message.
        sequence: u64,
        /// Time of the message's first record, in nanoseconds since 1970; 0 in records of kind 10,
        /// which do not tell it.
        unix_ns: u64,
        /// Bytes of the message.
        body: &'a [u8],
    },
    /// Pacing of the publisher from the next run on; a log without such a record is source-paced.
    Paced {
        /// The stream.
        stream: u32,
        /// Registered receivers hold the publisher back.
        is_by_receivers: bool,
    },
}

/// A record of a message, as readers of messages see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptMessage<'a> {
    /// Sequence of the message.
    pub sequence: u64,
    /// Time at which it was written first, in nanoseconds since 1970; 0 if the record does not tell
    /// it.
    pub unix_ns: u64,
    /// Retention has moved it forward.
    pub is_moved: bool,
    /// Bytes of the message.
    pub body: &'a [u8],
}

impl<'a> KeptMessage<'a> {
    /// Reads a record of a log; `None` if it is none of a message.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (is_moved, tells_time) = match *kind {
            kind::MESSAGE => (false, false),
            kind::COPIED => (false, true),
            kind::MOVED => (true, true),
            kind::MOVED_WITHOUT_TIME => (true, false),
            _ => return None,
        };
        let (_stream, rest) = U32::ref_from_prefix(rest).ok()?;
        let (sequence, rest) = U64::ref_from_prefix(rest).ok()?;
        let sequence = bounded(*sequence)?;
        if !tells_time {
            return Some(Self { sequence, unix_ns: 0, is_moved, body: rest });
        }
        let (unix_ns, body) = U64::ref_from_prefix(rest).ok()?;
        Some(Self { sequence, unix_ns: unix_ns.get(), is_moved, body })
    }
}

/// Kinds of records: the first byte.
mod kind {
    pub(super) const STREAM: u8 = 1;
    pub(super) const PROMISED: u8 = 2;
    pub(super) const TRUNCATED: u8 = 3;
    pub(super) const MESSAGE: u8 = 4;
    pub(super) const BEGAN: u8 = 5;
    pub(super) const RECONFIGURED: u8 = 6;
    pub(super) const TRIMMED: u8 = 7;
    /// Read, and not written any more.
    pub(super) const CONSUMED_WITHOUT_FLAGS: u8 = 8;
    pub(super) const DETACHED: u8 = 9;
    /// Read, and not written any more.
    pub(super) const MOVED_WITHOUT_TIME: u8 = 10;
    pub(super) const MOVED: u8 = 11;
    pub(super) const COPIED: u8 = 12;
    pub(super) const PACED: u8 = 13;
    /// Read, and not written any more.
    pub(super) const CONSUMED_WITHOUT_LIFE: u8 = 14;
    pub(super) const CONSUMED: u8 = 15;
    pub(super) const DEPARTED: u8 = 16;
}

impl<'a> LogRecord<'a> {
    /// Most bytes in front of a message's own, of all records that hold one.
    pub const MESSAGE_HEAD_MAX: usize = 21;

    /// The stream's number.
    pub const fn stream(&self) -> u32 {
        match self {
            Self::Stream { stream, .. }
            | Self::Promised { stream, .. }
            | Self::Truncated { stream, .. }
            | Self::Message { stream, .. }
            | Self::Copied { stream, .. }
            | Self::Began { stream, .. }
            | Self::Reconfigured { stream, .. }
            | Self::Trimmed { stream, .. }
            | Self::Consumed { stream, .. }
            | Self::Detached { stream, .. }
            | Self::Departed { stream, .. }
            | Self::Moved { stream, .. }
            | Self::Paced { stream, .. } => *stream,
        }
    }

    /// Reads a record; `None` if the bytes are none of this version.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (stream, rest) = U32::read_from_prefix(rest).ok()?;
        let stream = stream.get();
        let number = || {
            let (number, rest) = U64::read_from_prefix(rest).ok()?;
            Some((bounded(number)?, rest))
        };
        let (record, rest) = match *kind {
            kind::STREAM => {
                let (source, topic) = U64::read_from_prefix(rest).ok()?;
                let topic = std::str::from_utf8(topic).ok()?;
                (Self::Stream { stream, topic, source: source.get() }, [].as_slice())
            }
            kind::PROMISED => {
                let (ballot, rest) = BallotEntry::read_from_prefix(rest).ok()?;
                (Self::Promised { stream, ballot: ballot.ballot()? }, rest)
            }
            kind::TRUNCATED => {
                let (next, rest) = number()?;
                (Self::Truncated { stream, next }, rest)
            }
            kind::MESSAGE | kind::COPIED | kind::MOVED | kind::MOVED_WITHOUT_TIME => {
                let KeptMessage { sequence, unix_ns, body, .. } = KeptMessage::read(bytes)?;
                let record = match *kind {
                    kind::MESSAGE => Self::Message { stream, sequence, body },
                    kind::COPIED => Self::Copied { stream, sequence, unix_ns, body },
                    _ => Self::Moved { stream, sequence, unix_ns, body },
                };
                (record, [].as_slice())
            }
            kind::BEGAN => {
                let (number, rest) = number()?;
                let (first, rest) = U64::read_from_prefix(rest).ok()?;
                let (members, rest) = Members::read(rest)?;
                let (runs, rest) = runs(rest)?;
                let first = bounded(first)?;
                if runs.last().is_none_or(|run| run.start < first) {
                    return None;
                }
                (Self::Began { stream, number, first, members, runs }, rest)
            }
            kind::RECONFIGURED => {
                let (members, rest) = Members::read(rest)?;
                (Self::Reconfigured { stream, members }, rest)
            }
            kind::TRIMMED => {
                let (first, rest) = number()?;
                (Self::Trimmed { stream, first }, rest)
            }
            kind::CONSUMED_WITHOUT_FLAGS | kind::CONSUMED_WITHOUT_LIFE | kind::CONSUMED => {
                let (registered, rest) = registered(*kind, rest)?;
                (Self::Consumed { stream, registered }, rest)
            }
            kind::DETACHED => {
                let (receiver, rest) = U64::read_from_prefix(rest).ok()?;
                (Self::Detached { stream, receiver: receiver.get() }, rest)
            }
            kind::DEPARTED => {
                let (body, rest) = DetachBody::read_from_prefix(rest).ok()?;
                (Self::Departed { stream, departure: body.read()? }, rest)
            }
            kind::PACED => {
                let (byte, rest) = rest.split_first()?;
                (Self::Paced { stream, is_by_receivers: flag(*byte)? }, rest)
            }
            _ => return None,
        };
        rest.is_empty().then_some(record)
    }

    /// Writes the record into `bytes`; what was in there is dropped.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let body = self.write_head(bytes);
        bytes.extend_from_slice(body);
    }

    /// Writes the record but for a message's bytes, which are its end and are returned; they are
    /// empty for other records. A head can be read alone, as the record of an empty message.
    pub fn write_head(&self, bytes: &mut Vec<u8>) -> &'a [u8] {
        bytes.clear();
        let mut head = |kind: u8| {
            bytes.push(kind);
            bytes.extend(self.stream().to_le_bytes());
        };
        match self {
            Self::Stream { topic, source, .. } => {
                head(kind::STREAM);
                bytes.extend(source.to_le_bytes());
                bytes.extend(topic.as_bytes());
            }
            Self::Promised { ballot, .. } => {
                head(kind::PROMISED);
                bytes.extend(BallotEntry::from(*ballot).as_bytes());
            }
            Self::Truncated { next, .. } => {
                head(kind::TRUNCATED);
                bytes.extend(next.to_le_bytes());
            }
            Self::Moved { sequence, unix_ns, body, .. }
            | Self::Copied { sequence, unix_ns, body, .. } => {
                let is_moved = matches!(self, Self::Moved { .. });
                head(if is_moved { kind::MOVED } else { kind::COPIED });
                bytes.extend(sequence.to_le_bytes());
                bytes.extend(unix_ns.to_le_bytes());
                return body;
            }
            Self::Message { sequence, body, .. } => {
                head(kind::MESSAGE);
                bytes.extend(sequence.to_le_bytes());
                return body;
            }
            Self::Began { number, first, members, runs, .. } => {
                head(kind::BEGAN);
                bytes.extend(number.to_le_bytes());
                bytes.extend(first.to_le_bytes());
                members.write(bytes);
                add_runs(runs, bytes);
            }
            Self::Reconfigured { members, .. } => {
                head(kind::RECONFIGURED);
                members.write(bytes);
            }
            Self::Trimmed { first, .. } => {
                head(kind::TRIMMED);
                bytes.extend(first.to_le_bytes());
            }
            Self::Consumed { registered, .. } => {
                head(kind::CONSUMED);
                bytes.extend(RegistrationBody::from(*registered).as_bytes());
            }
            Self::Detached { receiver, .. } => {
                head(kind::DETACHED);
                bytes.extend(receiver.to_le_bytes());
            }
            Self::Departed { departure, .. } => {
                head(kind::DEPARTED);
                bytes.extend(DetachBody::from(*departure).as_bytes());
            }
            Self::Paced { is_by_receivers, .. } => {
                head(kind::PACED);
                bytes.push((*is_by_receivers).into());
            }
        }
        &[]
    }
}

/// The receiver in a record of this kind, and the rest.
fn registered(kind: u8, bytes: &[u8]) -> Option<(Registered, &[u8])> {
    if kind == kind::CONSUMED_WITHOUT_FLAGS {
        let (body, rest) = ConsumedBody::read_from_prefix(bytes).ok()?;
        return Some((body.registered()?, rest));
    }
    if kind == kind::CONSUMED_WITHOUT_LIFE {
        let (body, rest) = RegisteredBody::read_from_prefix(bytes).ok()?;
        return Some((body.read()?, rest));
    }
    let (body, rest) = RegistrationBody::read_from_prefix(bytes).ok()?;
    Some((body.read()?, rest))
}
