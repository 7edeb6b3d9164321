//! Frames, read from bytes that may be hostile, and written.

use super::administration::{
    ChallengeBody, DEREGISTER_PROOF, DeregisterBody, DeregisteredBody, InspectBody, add_challenge,
    add_deregister, add_deregistered, add_inspect,
};
use super::begin::BeginBody;
use super::lists::{BallotEntry, Position, add_name, add_runs, bounded, flag, name, runs};
use super::offer::{
    AttachBody, ConsumedBody, DetachBody, FetchPositionsBody, RegistrationBody, StreamsBody,
    add_positions, add_unsettled, positions, unsettled,
};
use super::state::StableBody;
use super::{
    Ballot, Consumption, Departure, DeregisterOutcome, Members, Records, Registered, Registration,
    Run, STORE_VERSION, StoreAddress, StoreHeader, StoreKind, StoreOffer, StorePage, StoreRefusal,
    StoreState, TimedRecords,
};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes that are no frame of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFrameError {
    /// Shorter than a header.
    Short,
    /// Another version; the header is read, nothing else.
    Version(u8),
    /// A kind that this version does not have.
    Kind(u8),
    /// The topic's name is not UTF-8, or runs over the end.
    Topic,
    /// The body contradicts its kind.
    Body(StoreKind),
}

/// A frame, without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFrame<'a> {
    /// Asks for the state; tells a store of the sender's run how far the stream goes.
    Query {
        /// The sender's run, or zero.
        ballot: Ballot,
        /// Sequence after the last message.
        next: u64,
    },
    /// Asks a store to accept this run of the publisher and none before it.
    Open {
        /// The run.
        ballot: Ballot,
    },
    /// Begins the run.
    Begin {
        /// The run.
        ballot: Ballot,
        /// The run whose log the stream continues.
        log: Ballot,
        /// Sequence of the run's first message.
        start: u64,
        /// Number of that message on its topic.
        number: u64,
        /// Registered receivers hold the publisher back: what they have not consumed is kept.
        is_receiver_paced: bool,
        /// The store that has the log.
        donor: &'a str,
        /// The stores that hold the stream.
        members: Members,
        /// The runs in the log, this one last.
        runs: Vec<Run>,
    },
    /// Messages again.
    Resend {
        /// The run.
        ballot: Ballot,
        /// Sequence of the first.
        first: u64,
        /// The messages.
        records: Records<'a>,
    },
    /// The publisher has messages before `until` no more.
    Elsewhere {
        /// The run.
        ballot: Ballot,
        /// Sequence of the publisher's oldest message.
        until: u64,
        /// A store that has those before.
        donor: &'a str,
    },
    /// The stores that hold the stream from here on.
    Reconfigure {
        /// The run.
        ballot: Ballot,
        /// The stores.
        members: Members,
    },
    /// Asks for messages.
    Fetch {
        /// Sequence of the first.
        from: u64,
        /// Sequence after the last; [`STORE_NUMBER_MAX`](super::STORE_NUMBER_MAX) for all that
        /// there are.
        until: u64,
        /// The most bytes of the answer.
        limit: u32,
    },
    /// The state of a stream.
    State(StoreState),
    /// The durable part of the stream.
    Stable {
        /// The run.
        ballot: Ballot,
        /// Sequence after the last durable message.
        next: u64,
        /// Sequence of the first message that a registered receiver has not consumed.
        consumed: u64,
    },
    /// Messages are missing.
    Want {
        /// The run.
        ballot: Ballot,
        /// Sequence of the first.
        from: u64,
    },
    /// Messages that were asked for.
    Fetched {
        /// The run whose log this is.
        log: Ballot,
        /// The sequence that was asked for.
        from: u64,
        /// Sequence of the first message: later than asked for if retention has removed that.
        first: u64,
        /// Sequence after the last durable message of the store.
        next: u64,
        /// The messages.
        records: TimedRecords<'a>,
    },
    /// A receiver asks for the streams of its topic: an Offer or Unsettled for each, then Streams.
    Attach {
        /// The receiver's stable id.
        receiver: u64,
        /// Stands in the answer.
        token: u64,
        /// Time in nanoseconds since 1970 from which on messages are wanted; 0 for none.
        since_unix_ns: u64,
        /// Time in nanoseconds since 1970 up to which messages are wanted; 0 for none.
        until_unix_ns: u64,
    },
    /// A receiver has consumed messages.
    Consumed(Registered),
    /// A receiver gives up its registration: nothing is kept for it any more.
    Detach {
        /// The receiver's stable id.
        receiver: u64,
        /// The life that ends: a later one keeps its registration.
        life: u64,
    },
    /// A receiver's registration has ended, and that is on disk; or it has none.
    Detached {
        /// The receiver's stable id.
        receiver: u64,
        /// The life that has ended.
        life: u64,
    },
    /// The store does not keep a stream, or the position of a receiver.
    Refused(StoreRefusal),
    /// A stream of a receiver's topic.
    Offer(StoreOffer),
    /// A stream of a receiver's topic whose state the store cannot tell now: its last records are
    /// not on its disk, or times are still looked up.
    Unsettled {
        /// The question's.
        token: u64,
        /// The runs in the store's log, on its disk or not.
        runs: Vec<Run>,
    },
    /// All streams were named.
    Streams {
        /// Identity of the store's data.
        incarnation: u64,
        /// The question's.
        token: u64,
        /// Number of streams.
        count: u32,
    },
    /// The durable part of a receiver's consumption.
    Acknowledged {
        /// The receiver's stable id.
        receiver: u64,
        /// The durable part.
        consumption: Consumption,
    },
    /// A store asks how far the receivers of a stream have come.
    FetchPositions {
        /// Stands in the answer.
        token: u64,
        /// The first receiver, by its id.
        receiver: u64,
    },
    /// Positions of receivers, as far as they are durable.
    FetchedPositions {
        /// The question's.
        token: u64,
        /// The receiver to ask for next; 0 if there is none.
        next_receiver: u64,
        /// The receivers, in ascending order.
        receivers: Vec<Registered>,
        /// Receivers that have given up their registrations, in ascending order; with the others no
        /// more than [`POSITIONS_MAX`](super::POSITIONS_MAX).
        departures: Vec<Departure>,
    },
    /// An administrator asks for the store's streams, a page of them.
    Inspect {
        /// Stands in the answer.
        token: u64,
        /// Number of the first stream.
        stream: u32,
        /// The first receiver of that stream, by its id.
        receiver: u64,
    },
    /// An administrator ends a registration.
    Deregister {
        /// The challenge that the proof answers; 0 for none.
        nonce: u128,
        /// Stands in the answer.
        token: u64,
        /// The registration.
        registration: Registration,
        /// Proof that the sender knows the store's administration key, over all bytes of the frame
        /// before it; zeros if there is none yet.
        proof: [u8; DEREGISTER_PROOF],
    },
    /// Streams of the store.
    Inspected(StorePage<'a>),
    /// The answer to Deregister.
    Deregistered {
        /// The question's.
        token: u64,
        /// The outcome.
        outcome: DeregisterOutcome,
    },
    /// The answer to Deregister without a proof, or with one for another challenge.
    Challenge {
        /// The question's.
        token: u64,
        /// Stands in the request with the proof; holds for one request that is permitted.
        nonce: u128,
    },
}

impl<'a> StoreFrame<'a> {
    /// Reads a frame with its header.
    ///
    /// # Errors
    /// If it is no whole frame of this version.
    pub fn read(bytes: &'a [u8]) -> Result<(StoreAddress<'a>, Self), StoreFrameError> {
        let (header, rest) =
            StoreHeader::read_from_prefix(bytes).map_err(|_| StoreFrameError::Short)?;
        if header.version != STORE_VERSION {
            return Err(StoreFrameError::Version(header.version));
        }
        let kind = StoreKind::from_byte(header.kind).ok_or(StoreFrameError::Kind(header.kind))?;
        let (topic, body) =
            rest.split_at_checked(header.topic.into()).ok_or(StoreFrameError::Topic)?;
        let topic = std::str::from_utf8(topic).map_err(|_| StoreFrameError::Topic)?;
        let address =
            StoreAddress { client: header.client.get(), source: header.source.get(), topic };
        Ok((address, Self::body(kind, body).ok_or(StoreFrameError::Body(kind))?))
    }

    fn body(kind: StoreKind, body: &'a [u8]) -> Option<Self> {
        let position = || {
            let (position, rest) = Position::read_from_prefix(body).ok()?;
            Some((position.ballot.ballot()?, bounded(position.sequence)?, rest))
        };
        let (frame, rest) = match kind {
            StoreKind::Query => {
                let (ballot, next, rest) = position()?;
                (Self::Query { ballot, next }, rest)
            }
            StoreKind::Open => {
                let (ballot, rest) = BallotEntry::read_from_prefix(body).ok()?;
                (Self::Open { ballot: ballot.ballot()? }, rest)
            }
            StoreKind::Begin => Self::begin(body)?,
            StoreKind::Resend => {
                let (ballot, first, rest) = position()?;
                (Self::Resend { ballot, first, records: Records::read(rest)? }, [].as_slice())
            }
            StoreKind::Elsewhere => {
                let (ballot, until, rest) = position()?;
                let (donor, rest) = name(rest)?;
                (Self::Elsewhere { ballot, until, donor }, rest)
            }
            StoreKind::Reconfigure => {
                let (ballot, rest) = BallotEntry::read_from_prefix(body).ok()?;
                let (members, rest) = Members::read(rest)?;
                (Self::Reconfigure { ballot: ballot.ballot()?, members }, rest)
            }
            StoreKind::Fetch => Self::fetch(body)?,
            StoreKind::Attach
            | StoreKind::Consumed
            | StoreKind::Detach
            | StoreKind::Detached
            | StoreKind::Offer
            | StoreKind::Unsettled
            | StoreKind::Streams
            | StoreKind::Acknowledged
            | StoreKind::FetchPositions
            | StoreKind::FetchedPositions => Self::of_receivers(kind, body)?,
            StoreKind::Inspect
            | StoreKind::Deregister
            | StoreKind::Inspected
            | StoreKind::Deregistered
            | StoreKind::Challenge => Self::of_administrators(kind, body)?,
            StoreKind::State => Self::state(body)?,
            StoreKind::Stable => {
                let (body, rest) = StableBody::read_from_prefix(body).ok()?;
                let ballot = body.position.ballot.ballot()?;
                let (next, consumed) = (bounded(body.position.sequence)?, bounded(body.consumed)?);
                (Self::Stable { ballot, next, consumed }, rest)
            }
            StoreKind::Refused => {
                let (refusal, rest) = StoreRefusal::read(body)?;
                (Self::Refused(refusal), rest)
            }
            StoreKind::Want => {
                let (ballot, from, rest) = position()?;
                (Self::Want { ballot, from }, rest)
            }
            StoreKind::Fetched => {
                let (log, from, rest) = position()?;
                let (first, rest) = U64::read_from_prefix(rest).ok()?;
                let (next, rest) = U64::read_from_prefix(rest).ok()?;
                let (first, next) = (bounded(first)?, bounded(next)?);
                let records = TimedRecords::read(rest)?;
                (Self::Fetched { log, from, first, next, records }, [].as_slice())
            }
        };
        rest.is_empty().then_some(frame)
    }

    /// Frames to and from receivers, and about them.
    fn of_receivers(kind: StoreKind, body: &'a [u8]) -> Option<(Self, &'a [u8])> {
        Some(match kind {
            StoreKind::Attach => {
                let (body, rest) = AttachBody::read_from_prefix(body).ok()?;
                let (receiver, token) = (body.receiver.get(), body.token.get());
                let since_unix_ns = body.since_unix_ns.get();
                let until_unix_ns = body.until_unix_ns.get();
                (Self::Attach { receiver, token, since_unix_ns, until_unix_ns }, rest)
            }
            StoreKind::Consumed => {
                let (body, rest) = RegistrationBody::read_from_prefix(body).ok()?;
                (Self::Consumed(body.read()?), rest)
            }
            StoreKind::Detach | StoreKind::Detached => {
                let (body, rest) = DetachBody::read_from_prefix(body).ok()?;
                let (receiver, life) = (body.receiver.get(), bounded(body.life)?);
                let frame = match kind {
                    StoreKind::Detach => Self::Detach { receiver, life },
                    _ => Self::Detached { receiver, life },
                };
                (frame, rest)
            }
            StoreKind::Offer => {
                let (offer, rest) = StoreOffer::read(body)?;
                (Self::Offer(offer), rest)
            }
            StoreKind::Unsettled => {
                let ((token, runs), rest) = unsettled(body)?;
                (Self::Unsettled { token, runs }, rest)
            }
            StoreKind::Streams => {
                let (body, rest) = StreamsBody::read_from_prefix(body).ok()?;
                let (incarnation, token) = (body.incarnation.get(), body.token.get());
                (Self::Streams { incarnation, token, count: body.count.get() }, rest)
            }
            StoreKind::Acknowledged => {
                let (body, rest) = ConsumedBody::read_from_prefix(body).ok()?;
                let (receiver, consumption) = body.read()?;
                (Self::Acknowledged { receiver, consumption }, rest)
            }
            StoreKind::FetchPositions => {
                let (body, rest) = FetchPositionsBody::read_from_prefix(body).ok()?;
                let (token, receiver) = (body.token.get(), body.receiver.get());
                (Self::FetchPositions { token, receiver }, rest)
            }
            StoreKind::FetchedPositions => {
                let (((token, next_receiver), receivers, departures), rest) = positions(body)?;
                (Self::FetchedPositions { token, next_receiver, receivers, departures }, rest)
            }
            _ => return None,
        })
    }

    /// Frames to and from administrators.
    fn of_administrators(kind: StoreKind, body: &'a [u8]) -> Option<(Self, &'a [u8])> {
        Some(match kind {
            StoreKind::Inspect => {
                let (body, rest) = InspectBody::read_from_prefix(body).ok()?;
                let (token, receiver) = (body.token.get(), body.receiver.get());
                (Self::Inspect { token, stream: body.stream.get(), receiver }, rest)
            }
            StoreKind::Deregister => {
                let (body, rest) = DeregisterBody::read_from_prefix(body).ok()?;
                let (nonce, token, registration) = body.read()?;
                (Self::Deregister { nonce, token, registration, proof: body.proof }, rest)
            }
            StoreKind::Inspected => (Self::Inspected(StorePage::read(body)?), [].as_slice()),
            StoreKind::Deregistered => {
                let (body, rest) = DeregisteredBody::read_from_prefix(body).ok()?;
                let (token, outcome) = body.read()?;
                (Self::Deregistered { token, outcome }, rest)
            }
            StoreKind::Challenge => {
                let (body, rest) = ChallengeBody::read_from_prefix(body).ok()?;
                let nonce = u128::from_le_bytes(body.nonce);
                (Self::Challenge { token: body.token.get(), nonce }, rest)
            }
            _ => return None,
        })
    }

    fn fetch(body: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (from, rest) = U64::read_from_prefix(body).ok()?;
        let (until, rest) = U64::read_from_prefix(rest).ok()?;
        let (limit, rest) = U32::read_from_prefix(rest).ok()?;
        let (from, until) = (bounded(from)?, bounded(until)?);
        Some((Self::Fetch { from, until, limit: limit.get() }, rest))
    }

    fn begin(body: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = BeginBody::read_from_prefix(body).ok()?;
        let (donor, rest) = name(rest)?;
        let (members, rest) = Members::read(rest)?;
        let (runs, rest) = runs(rest)?;
        let (ballot, start) = (head.ballot.ballot()?, bounded(head.start)?);
        // A run that is not the last of its own log, or begins elsewhere, would confuse the store.
        if runs.last() != Some(&Run { ballot, start }) || members.version == 0 {
            return None;
        }
        let (log, number) = (head.log.ballot()?, bounded(head.number)?);
        let is_receiver_paced = flag(head.is_receiver_paced)?;
        let frame =
            Self::Begin { ballot, log, start, number, is_receiver_paced, donor, members, runs };
        Some((frame, rest))
    }

    fn state(body: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (state, rest) = StoreState::read(body)?;
        Some((Self::State(state), rest))
    }

    /// The frame's kind.
    pub const fn kind(&self) -> StoreKind {
        match self {
            Self::Query { .. } => StoreKind::Query,
            Self::Open { .. } => StoreKind::Open,
            Self::Begin { .. } => StoreKind::Begin,
            Self::Resend { .. } => StoreKind::Resend,
            Self::Elsewhere { .. } => StoreKind::Elsewhere,
            Self::Reconfigure { .. } => StoreKind::Reconfigure,
            Self::Fetch { .. } => StoreKind::Fetch,
            Self::State(_) => StoreKind::State,
            Self::Stable { .. } => StoreKind::Stable,
            Self::Want { .. } => StoreKind::Want,
            Self::Fetched { .. } => StoreKind::Fetched,
            Self::Attach { .. } => StoreKind::Attach,
            Self::Consumed(_) => StoreKind::Consumed,
            Self::Detach { .. } => StoreKind::Detach,
            Self::Detached { .. } => StoreKind::Detached,
            Self::Refused(_) => StoreKind::Refused,
            Self::FetchPositions { .. } => StoreKind::FetchPositions,
            Self::FetchedPositions { .. } => StoreKind::FetchedPositions,
            Self::Offer(_) => StoreKind::Offer,
            Self::Unsettled { .. } => StoreKind::Unsettled,
            Self::Streams { .. } => StoreKind::Streams,
            Self::Acknowledged { .. } => StoreKind::Acknowledged,
            Self::Inspect { .. } => StoreKind::Inspect,
            Self::Deregister { .. } => StoreKind::Deregister,
            Self::Inspected(_) => StoreKind::Inspected,
            Self::Deregistered { .. } => StoreKind::Deregistered,
            Self::Challenge { .. } => StoreKind::Challenge,
        }
    }

    /// Writes the frame with its header into `frame`; what was in there is dropped.
    ///
    /// # Panics
    /// If the topic's name is longer than 255 bytes, a store's name than 64, or a list than its
    /// bound: all of them are checked where they enter the process.
    pub fn write(&self, address: StoreAddress<'_>, frame: &mut Vec<u8>) {
        frame.clear();
        let header = StoreHeader {
            version: STORE_VERSION,
            kind: self.kind() as u8,
            topic: u8::try_from(address.topic.len()).expect("a name that was checked"),
            reserved: 0,
            padding: 0.into(),
            client: address.client.into(),
            source: address.source.into(),
        };
        frame.extend(header.as_bytes());
        frame.extend(address.topic.as_bytes());
        self.write_body(frame);
    }

    fn write_body(&self, frame: &mut Vec<u8>) {
        match self {
            Self::Query { ballot, next: sequence } | Self::Want { ballot, from: sequence } => {
                add_position(*ballot, *sequence, frame);
            }
            Self::Stable { ballot, next, consumed } => {
                add_position(*ballot, *next, frame);
                frame.extend(consumed.to_le_bytes());
            }
            Self::Attach { receiver, token, since_unix_ns, until_unix_ns } => {
                add_numbers(&[*receiver, *token, *since_unix_ns, *until_unix_ns], frame);
            }
            Self::Consumed(it) => frame.extend(RegistrationBody::from(*it).as_bytes()),
            Self::Acknowledged { receiver, consumption } => {
                frame.extend(ConsumedBody::new(*receiver, *consumption).as_bytes());
            }
            Self::Refused(refusal) => refusal.write(frame),
            Self::Detach { receiver: first, life: second }
            | Self::Detached { receiver: first, life: second }
            | Self::FetchPositions { token: first, receiver: second } => {
                add_numbers(&[*first, *second], frame);
            }
            Self::FetchedPositions { token, next_receiver, receivers, departures } => {
                add_positions((*token, *next_receiver), (receivers, departures), frame);
            }
            Self::Offer(offer) => offer.write(frame),
            Self::Unsettled { token, runs } => add_unsettled(*token, runs, frame),
            Self::Streams { incarnation, token, count } => {
                add_counted(&[*incarnation, *token], *count, frame);
            }
            Self::Open { ballot } => frame.extend(BallotEntry::from(*ballot).as_bytes()),
            Self::Begin { ballot, log, start, number, is_receiver_paced, donor, members, runs } => {
                let (run, first) = ((*ballot, *log), (*start, *number));
                let body = BeginBody::new(run, first, *is_receiver_paced);
                frame.extend(body.as_bytes());
                add_name(donor, frame);
                members.write(frame);
                add_runs(runs, frame);
            }
            Self::Resend { ballot, first, records } => {
                add_position(*ballot, *first, frame);
                frame.extend(records.bytes());
            }
            Self::Elsewhere { ballot, until, donor } => {
                add_position(*ballot, *until, frame);
                add_name(donor, frame);
            }
            Self::Reconfigure { ballot, members } => {
                frame.extend(BallotEntry::from(*ballot).as_bytes());
                members.write(frame);
            }
            Self::Fetch { from, until, limit } => add_counted(&[*from, *until], *limit, frame),
            Self::State(state) => state.write(frame),
            Self::Inspect { token, stream, receiver } => {
                add_inspect(*token, *stream, *receiver, frame);
            }
            Self::Deregister { nonce, token, registration, proof } => {
                add_deregister((*nonce, *token), *registration, *proof, frame);
            }
            Self::Challenge { token, nonce } => add_challenge(*token, *nonce, frame),
            Self::Inspected(page) => page.write(frame),
            Self::Deregistered { token, outcome } => add_deregistered(*token, *outcome, frame),
            Self::Fetched { log, from, first, next, records } => {
                add_position(*log, *from, frame);
                add_numbers(&[*first, *next], frame);
                frame.extend(records.bytes());
            }
        }
    }
}

fn add_position(ballot: Ballot, sequence: u64, frame: &mut Vec<u8>) {
    let position = Position { ballot: ballot.into(), sequence: sequence.into() };
    frame.extend(position.as_bytes());
}

fn add_counted(numbers: &[u64], count: u32, frame: &mut Vec<u8>) {
    add_numbers(numbers, frame);
    frame.extend(count.to_le_bytes());
}

fn add_numbers(numbers: &[u64], frame: &mut Vec<u8>) {
    numbers.iter().for_each(|number| frame.extend(number.to_le_bytes()));
}
