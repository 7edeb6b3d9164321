//! Frames of administration: the streams of a store, page by page, and the end of registrations.

use super::lists::{BallotEntry, bounded, flag};
use super::{Ballot, Members, STORE_HEADER};
use std::borrow::Cow;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Flag of a [`ReportEntry`]: the publisher has told that its run is registered.
const IS_LIVE: u8 = 1;
/// Flag of a [`ReportEntry`]: messages are being copied from another store.
const IS_COPYING: u8 = 2;

/// Bytes of the proof at the end of a Deregister frame.
pub const DEREGISTER_PROOF: usize = 32;

/// Registration that an administrator ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// That of a receiver, by its stable id: nothing is kept for it any more.
    Receiver(u64),
    /// That of the source: its messages are given up, and the registrations of all its receivers.
    /// Its numbers stay, so that a publisher that returns goes on with them.
    Source,
}

/// Answer to a request to end a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DeregisterOutcome {
    /// There is no such registration any more, and that is on disk.
    Done = 1,
    /// The store does not permit it to this client.
    NotPermitted = 2,
    /// The store does not know the stream.
    UnknownStream = 3,
}

/// A stream at a store, as administrators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamReport<'a> {
    /// The stream's number at this store.
    pub number: u32,
    /// The topic.
    pub topic: Cow<'a, str>,
    /// The publisher's stable id.
    pub source: u64,
    /// The run whose log this is.
    pub run: Ballot,
    /// The last run that was accepted by Open.
    pub promised: Ballot,
    /// The publisher has told that its run is registered.
    pub is_live: bool,
    /// Messages are being copied from another store.
    pub is_copying: bool,
    /// Sequence of the oldest message.
    pub first: u64,
    /// Sequence after the last durable message.
    pub next: u64,
    /// Sequence of the first message that a registered receiver has not consumed.
    pub consumed: u64,
    /// Bytes of the messages in the journal, about.
    pub bytes: u64,
    /// Time of about the oldest message, in nanoseconds since 1970; 0 if there is none.
    pub oldest_unix_ns: u64,
    /// The stores that hold the stream.
    pub members: Members,
    /// Receivers, in ascending order of their ids.
    pub receivers: Vec<ReceiverReport>,
}

/// A registered receiver of a stream, as administrators see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverReport {
    /// The receiver's stable id.
    pub receiver: u64,
    /// Sequence of the first message that it has not consumed.
    pub next: u64,
    /// The receiver does not hold a receiver-paced publisher back.
    pub is_non_blocking: bool,
    /// The receiver was away for longer than registrations live: nothing is kept for it but its
    /// position, until it comes back.
    pub is_expired: bool,
}

/// Streams of a store, from the one on that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePage<'a> {
    /// Identity of the store's data.
    pub incarnation: u64,
    /// The question's.
    pub token: u64,
    /// Number of all streams.
    pub streams: u32,
    /// The stream to ask for next; the number of all streams if this page is the last.
    pub next_stream: u32,
    /// The receiver of that stream to ask for next; the receivers before it are on this page.
    pub next_receiver: u64,
    /// The streams of this page.
    pub reports: Vec<StreamReport<'a>>,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct InspectBody {
    pub(super) token: U64,
    pub(super) receiver: U64,
    pub(super) stream: U32,
    pub(super) reserved: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct DeregisterBody {
    pub(super) nonce: [u8; 16],
    pub(super) token: U64,
    pub(super) receiver: U64,
    pub(super) subject: u8,
    pub(super) reserved: [u8; 7],
    pub(super) proof: [u8; DEREGISTER_PROOF],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ChallengeBody {
    pub(super) token: U64,
    pub(super) nonce: [u8; 16],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct DeregisteredBody {
    pub(super) token: U64,
    pub(super) outcome: u8,
    pub(super) reserved: [u8; 7],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct InspectedBody {
    pub(super) incarnation: U64,
    pub(super) token: U64,
    pub(super) next_receiver: U64,
    pub(super) streams: U32,
    pub(super) next_stream: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ReportEntry {
    pub(super) number: U32,
    pub(super) flags: u8,
    pub(super) topic: u8,
    pub(super) receivers: U16,
    pub(super) source: U64,
    pub(super) run: BallotEntry,
    pub(super) promised: BallotEntry,
    pub(super) first: U64,
    pub(super) next: U64,
    pub(super) consumed: U64,
    pub(super) bytes: U64,
    pub(super) oldest_unix_ns: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ReceiverEntry {
    pub(super) receiver: U64,
    pub(super) next: U64,
    pub(super) is_non_blocking: u8,
    pub(super) is_expired: u8,
    pub(super) reserved: [u8; 6],
}

impl ReceiverEntry {
    fn read(&self) -> Option<ReceiverReport> {
        let (receiver, next) = (self.receiver.get(), bounded(self.next)?);
        let (is_non_blocking, is_expired) = (flag(self.is_non_blocking)?, flag(self.is_expired)?);
        Some(ReceiverReport { receiver, next, is_non_blocking, is_expired })
    }
}

impl From<&ReceiverReport> for ReceiverEntry {
    fn from(it: &ReceiverReport) -> Self {
        Self {
            receiver: it.receiver.into(),
            next: it.next.into(),
            is_non_blocking: it.is_non_blocking.into(),
            is_expired: it.is_expired.into(),
            reserved: [0; 6],
        }
    }
}

impl Registration {
    /// The receiver's id and the subject's number in a frame.
    const fn parts(self) -> (u64, u8) {
        match self {
            Self::Receiver(receiver) => (receiver, 1),
            Self::Source => (0, 2),
        }
    }
}

impl DeregisterOutcome {
    const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Done,
            2 => Self::NotPermitted,
            3 => Self::UnknownStream,
            _ => return None,
        })
    }
}

impl DeregisterBody {
    /// The nonce, the token and the registration.
    pub(super) fn read(&self) -> Option<(u128, u64, Registration)> {
        let registration = match self.subject {
            1 => Registration::Receiver(self.receiver.get()),
            2 => Registration::Source,
            _ => return None,
        };
        Some((u128::from_le_bytes(self.nonce), self.token.get(), registration))
    }
}

impl DeregisteredBody {
    /// The token and the outcome.
    pub(super) fn read(self) -> Option<(u64, DeregisterOutcome)> {
        Some((self.token.get(), DeregisterOutcome::from_byte(self.outcome)?))
    }
}

pub(super) fn add_inspect(token: u64, stream: u32, receiver: u64, frame: &mut Vec<u8>) {
    let (token, receiver, stream) = (token.into(), receiver.into(), stream.into());
    let body = InspectBody { token, receiver, stream, reserved: 0.into() };
    frame.extend(body.as_bytes());
}

pub(super) fn add_deregister(
    (nonce, token): (u128, u64),
    registration: Registration,
    proof: [u8; DEREGISTER_PROOF],
    frame: &mut Vec<u8>,
) {
    let (receiver, subject) = registration.parts();
    let (nonce, token, receiver) = (nonce.to_le_bytes(), token.into(), receiver.into());
    let body = DeregisterBody { nonce, token, receiver, subject, reserved: [0; 7], proof };
    frame.extend(body.as_bytes());
}

pub(super) fn add_challenge(token: u64, nonce: u128, frame: &mut Vec<u8>) {
    let (token, nonce) = (token.into(), nonce.to_le_bytes());
    frame.extend(ChallengeBody { token, nonce }.as_bytes());
}

pub(super) fn add_deregistered(token: u64, outcome: DeregisterOutcome, frame: &mut Vec<u8>) {
    let (token, outcome) = (token.into(), outcome as u8);
    frame.extend(DeregisteredBody { token, outcome, reserved: [0; 7] }.as_bytes());
}

impl<'a> StorePage<'a> {
    /// Bytes of a frame with a page that has no streams.
    pub const EMPTY: usize = STORE_HEADER + size_of::<InspectedBody>();

    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, mut rest) = InspectedBody::read_from_prefix(bytes).ok()?;
        let mut reports = Vec::new();
        while !rest.is_empty() {
            let (report, behind) = StreamReport::read(rest)?;
            reports.push(report);
            rest = behind;
        }
        Some(Self {
            incarnation: head.incarnation.get(),
            token: head.token.get(),
            streams: head.streams.get(),
            next_stream: head.next_stream.get(),
            next_receiver: head.next_receiver.get(),
            reports,
        })
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let head = InspectedBody {
            incarnation: self.incarnation.into(),
            token: self.token.into(),
            next_receiver: self.next_receiver.into(),
            streams: self.streams.into(),
            next_stream: self.next_stream.into(),
        };
        bytes.extend(head.as_bytes());
        self.reports.iter().for_each(|report| report.write(bytes));
    }
}

impl<'a> StreamReport<'a> {
    /// Bytes of a receiver in a frame.
    pub const RECEIVER: usize = size_of::<ReceiverEntry>();

    /// Bytes of this report in a frame.
    pub fn length(&self) -> usize {
        // An incarnation, and the name with its length; before them a version and a count.
        let lists = self.members.length() + self.receivers.len() * Self::RECEIVER;
        size_of::<ReportEntry>() + self.topic.len() + lists
    }

    /// The report without the frame.
    pub fn into_owned(self) -> StreamReport<'static> {
        StreamReport { topic: Cow::Owned(self.topic.into_owned()), ..self }
    }

    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = ReportEntry::read_from_prefix(bytes).ok()?;
        let (topic, rest) = rest.split_at_checked(head.topic.into())?;
        let (members, rest) = Members::read(rest)?;
        let count = usize::from(head.receivers.get());
        let (receivers, rest) = <[ReceiverEntry]>::ref_from_prefix_with_elems(rest, count).ok()?;
        let receivers = receivers.iter().map(ReceiverEntry::read).collect::<Option<Vec<_>>>()?;
        let ascend = receivers.windows(2).all(|pair| pair[0].receiver < pair[1].receiver);
        let (first, next) = (bounded(head.first)?, bounded(head.next)?);
        if first > next || !ascend || head.flags & !(IS_LIVE | IS_COPYING) != 0 {
            return None;
        }
        let report = Self {
            number: head.number.get(),
            topic: Cow::Borrowed(std::str::from_utf8(topic).ok()?),
            source: head.source.get(),
            run: head.run.ballot()?,
            promised: head.promised.ballot()?,
            is_live: head.flags & IS_LIVE != 0,
            is_copying: head.flags & IS_COPYING != 0,
            first,
            next,
            consumed: bounded(head.consumed)?,
            bytes: head.bytes.get(),
            oldest_unix_ns: head.oldest_unix_ns.get(),
            members,
            receivers,
        };
        Some((report, rest))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let live = if self.is_live { IS_LIVE } else { 0 };
        let copying = if self.is_copying { IS_COPYING } else { 0 };
        let head = ReportEntry {
            number: self.number.into(),
            flags: live | copying,
            topic: u8::try_from(self.topic.len()).expect("a name that was checked"),
            receivers: u16::try_from(self.receivers.len()).expect("a bounded page").into(),
            source: self.source.into(),
            run: self.run.into(),
            promised: self.promised.into(),
            first: self.first.into(),
            next: self.next.into(),
            consumed: self.consumed.into(),
            bytes: self.bytes.into(),
            oldest_unix_ns: self.oldest_unix_ns.into(),
        };
        bytes.extend(head.as_bytes());
        bytes.extend(self.topic.as_bytes());
        self.members.write(bytes);
        for receiver in &self.receivers {
            bytes.extend(ReceiverEntry::from(receiver).as_bytes());
        }
    }
}
