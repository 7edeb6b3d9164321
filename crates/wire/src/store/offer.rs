//! Frames of receivers: the streams that they are offered, and how far they have come.

use super::lists::{BallotEntry, RunEntry, add_runs, bounded, flag, runs};
use super::{Consumption, Departure, POSITIONS_MAX, Registered, Run, StoreState};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// A stream, as a store offers it to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOffer {
    /// The token of the question.
    pub token: u64,
    /// The publisher of the current run has registered it: its live messages can be placed.
    pub is_live: bool,
    /// The store has seen the session of the current run end, by its transport's word.
    pub has_left: bool,
    /// The receiver's consumption of it; `None` if it is not registered.
    pub consumption: Option<Consumption>,
    /// The receiver was away for longer than registrations live, and has not come back yet.
    pub is_expired: bool,
    /// The life in which the receiver has reported that; if it is not registered, the latest life
    /// of all receivers of the stream whose registrations have ended.
    pub life: u64,
    /// Number of the current run's first message on its topic.
    pub number: u64,
    /// Sequence of the first message that the store wrote at the asked time or later, its next
    /// sequence if there is none: before it all are older. 0 if no time was asked for.
    pub since: u64,
    /// Sequence after the last message that the store wrote before the time up to which messages
    /// are wanted; [`STORE_NUMBER_MAX`](super::STORE_NUMBER_MAX) if that time has not come, or none
    /// was asked for.
    pub until: u64,
    /// The stream's state.
    pub state: StoreState,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct AttachBody {
    pub(super) receiver: U64,
    pub(super) token: U64,
    pub(super) since_unix_ns: U64,
    pub(super) until_unix_ns: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct UnsettledBody {
    pub(super) token: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct StreamsBody {
    pub(super) incarnation: U64,
    pub(super) token: U64,
    pub(super) count: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ConsumptionEntry {
    pub(super) run: RunEntry,
    pub(super) next: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ConsumedBody {
    pub(super) receiver: U64,
    pub(super) consumption: ConsumptionEntry,
}

/// A registered receiver, in records and checkpoints of builds before version 5, and in front of
/// its life.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RegisteredBody {
    pub(super) consumed: ConsumedBody,
    pub(super) is_non_blocking: u8,
    pub(super) is_expired: u8,
    pub(super) reserved: [u8; 6],
    pub(super) away_ns: U64,
}

/// A registered receiver and its life, in frames, records and checkpoints.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RegistrationBody {
    pub(super) registered: RegisteredBody,
    pub(super) life: U64,
}

/// A receiver whose registration ends or has ended, in frames, records and checkpoints.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct DetachBody {
    pub(super) receiver: U64,
    pub(super) life: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct FetchPositionsBody {
    pub(super) token: U64,
    pub(super) receiver: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct FetchedPositionsBody {
    pub(super) token: U64,
    pub(super) next_receiver: U64,
    pub(super) count: U32,
    pub(super) departures: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct OfferBody {
    pub(super) is_registered: u8,
    pub(super) is_live: u8,
    pub(super) has_left: u8,
    pub(super) is_expired: u8,
    pub(super) reserved: [u8; 4],
    pub(super) token: U64,
    pub(super) consumption: ConsumptionEntry,
    pub(super) number: U64,
    pub(super) since: U64,
    pub(super) until: U64,
    pub(super) life: U64,
}

impl From<Consumption> for ConsumptionEntry {
    fn from(consumption: Consumption) -> Self {
        let Consumption { run: Run { ballot, start }, next } = consumption;
        let run = RunEntry { ballot: BallotEntry::from(ballot), start: start.into() };
        Self { run, next: next.into() }
    }
}

impl ConsumptionEntry {
    /// `None` if a number is too large, or the messages end before their run begins.
    pub(super) fn consumption(self) -> Option<Consumption> {
        let run = Run { ballot: self.run.ballot.ballot()?, start: bounded(self.run.start)? };
        Some(Consumption { run, next: bounded(self.next)? }).filter(|it| it.next >= run.start)
    }
}

impl ConsumedBody {
    pub(super) fn new(receiver: u64, consumption: Consumption) -> Self {
        Self { receiver: receiver.into(), consumption: consumption.into() }
    }

    pub(super) fn read(self) -> Option<(u64, Consumption)> {
        Some((self.receiver.get(), self.consumption.consumption()?))
    }

    /// A receiver as it is told without flags.
    pub(super) fn registered(self) -> Option<Registered> {
        let (receiver, consumption) = self.read()?;
        Some(Registered::new(receiver, consumption))
    }
}

impl From<Registered> for RegisteredBody {
    fn from(it: Registered) -> Self {
        let consumed = ConsumedBody::new(it.receiver, it.consumption);
        Self {
            consumed,
            is_non_blocking: it.is_non_blocking.into(),
            is_expired: it.is_expired.into(),
            reserved: [0; 6],
            away_ns: it.away_ns.into(),
        }
    }
}

impl RegisteredBody {
    pub(super) fn read(self) -> Option<Registered> {
        let away_ns = self.away_ns.get();
        let (is_non_blocking, is_expired) = (flag(self.is_non_blocking)?, flag(self.is_expired)?);
        let registered = self.consumed.registered()?;
        Some(Registered { is_non_blocking, is_expired, away_ns, ..registered })
    }
}

impl From<Registered> for RegistrationBody {
    fn from(it: Registered) -> Self {
        Self { registered: it.into(), life: it.life.into() }
    }
}

impl RegistrationBody {
    pub(super) fn read(self) -> Option<Registered> {
        Some(Registered { life: bounded(self.life)?, ..self.registered.read()? })
    }
}

impl From<Departure> for DetachBody {
    fn from(Departure { receiver, life }: Departure) -> Self {
        Self { receiver: receiver.into(), life: life.into() }
    }
}

impl DetachBody {
    /// `None` if the life's number is too large.
    pub(super) fn read(self) -> Option<Departure> {
        Some(Departure { receiver: self.receiver.get(), life: bounded(self.life)? })
    }
}

/// Appends positions, receivers that have left, and from which receiver on to ask next; 0 for none.
pub(super) fn add_positions(
    (token, next_receiver): (u64, u64),
    (receivers, departures): (&[Registered], &[Departure]),
    frame: &mut Vec<u8>,
) {
    let receivers = &receivers[..receivers.len().min(POSITIONS_MAX)];
    let departures = &departures[..departures.len().min(POSITIONS_MAX - receivers.len())];
    let body = FetchedPositionsBody {
        token: token.into(),
        next_receiver: next_receiver.into(),
        count: (receivers.len() as u32).into(),
        departures: (departures.len() as u32).into(),
    };
    frame.extend(body.as_bytes());
    receivers.iter().for_each(|it| frame.extend(RegistrationBody::from(*it).as_bytes()));
    departures.iter().for_each(|it| frame.extend(DetachBody::from(*it).as_bytes()));
}

/// Token and receiver to ask for next, positions, and receivers that have left.
type Positions = ((u64, u64), Vec<Registered>, Vec<Departure>);

/// The answer to a question for positions at the front of `bytes`, and the rest.
pub(super) fn positions(bytes: &[u8]) -> Option<(Positions, &[u8])> {
    let (head, rest) = FetchedPositionsBody::read_from_prefix(bytes).ok()?;
    let (count, departed) = (head.count.get() as usize, head.departures.get() as usize);
    // Checked before memory is taken.
    if count.saturating_add(departed) > POSITIONS_MAX {
        return None;
    }
    let (entries, rest) = <[RegistrationBody]>::ref_from_prefix_with_elems(rest, count).ok()?;
    let (ends, rest) = <[DetachBody]>::ref_from_prefix_with_elems(rest, departed).ok()?;
    let receivers: Vec<Registered> =
        entries.iter().map(|it| it.read()).collect::<Option<Vec<_>>>()?;
    let departures: Vec<Departure> = ends.iter().map(|it| it.read()).collect::<Option<Vec<_>>>()?;
    let next_receiver = head.next_receiver.get();
    let is_list = is_page(receivers.iter().map(|it| it.receiver), next_receiver)
        && is_page(departures.iter().map(|it| it.receiver), next_receiver);
    is_list.then_some((((head.token.get(), next_receiver), receivers, departures), rest))
}

/// Whether ids ascend, and the next page goes on behind them; 0 for no next page.
fn is_page(ids: impl Iterator<Item = u64> + Clone, next: u64) -> bool {
    let goes_on = ids.clone().last().is_none_or(|last| last < next);
    ids.is_sorted_by(|one, other| one < other) && (goes_on || next == 0)
}

/// Adds the question's token and the runs of a stream.
pub(super) fn add_unsettled(token: u64, runs: &[Run], frame: &mut Vec<u8>) {
    frame.extend(UnsettledBody { token: token.into() }.as_bytes());
    add_runs(runs, frame);
}

/// The question's token, and the runs of a stream.
type Unsettled = (u64, Vec<Run>);

/// Token and runs at the front of `bytes`, and the rest.
pub(super) fn unsettled(bytes: &[u8]) -> Option<(Unsettled, &[u8])> {
    let (head, rest) = UnsettledBody::read_from_prefix(bytes).ok()?;
    let (runs, rest) = runs(rest)?;
    Some(((head.token.get(), runs), rest))
}

impl StoreOffer {
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = OfferBody::read_from_prefix(bytes).ok()?;
        let (state, rest) = StoreState::read(rest)?;
        let consumption = head.consumption.consumption()?;
        let consumption = (head.is_registered != 0).then_some(consumption);
        let (token, number) = (head.token.get(), bounded(head.number)?);
        let (since, until) = (bounded(head.since)?, bounded(head.until)?);
        let (is_live, has_left) = (head.is_live != 0, head.has_left != 0);
        let (is_expired, life) = (head.is_expired != 0, bounded(head.life)?);
        let offer = Self {
            token,
            is_live,
            has_left,
            consumption,
            is_expired,
            life,
            number,
            since,
            until,
            state,
        };
        Some((offer, rest))
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let head = OfferBody {
            is_registered: self.consumption.is_some().into(),
            is_live: self.is_live.into(),
            has_left: self.has_left.into(),
            is_expired: self.is_expired.into(),
            reserved: [0; 4],
            token: self.token.into(),
            consumption: self.consumption.unwrap_or(Consumption::NONE).into(),
            number: self.number.into(),
            since: self.since.into(),
            until: self.until.into(),
            life: self.life.into(),
        };
        bytes.extend(head.as_bytes());
        self.state.write(bytes);
    }
}
