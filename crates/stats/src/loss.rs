//! Losses: datagrams or messages that went missing, and their outcome.

use lanecast_base::sync::Ordering::Relaxed;
use lanecast_wire::stats::{
    COUNT_UNKNOWN, LOSS_GIVEN_UP, LOSS_LATE, LOSS_REBUILT, LOSS_REPAIRED, LOSS_TOLD, LossEntry,
    WHY_DAMAGED, WHY_EVICTED, WHY_GAVE_UP, WHY_GONE, WHY_NONE, WHY_SKIPPED,
};

/// An entry for the loss log.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// Source of the session: transport, address, session.
    pub source: &'a str,
    /// The topic; empty for datagrams, which may carry several.
    pub topic: &'a str,
    /// The session.
    pub session: u64,
    /// Time of detection, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Time from detection to the outcome, in nanoseconds.
    pub after_ns: u64,
    /// Sequence of the first datagram, or number of the first message.
    pub first: u64,
    /// Number of datagrams or messages, if known.
    pub count: Option<u64>,
    /// The outcome.
    pub end: LossOutcome,
}

/// Outcome of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossOutcome {
    /// The datagrams arrived late by themselves.
    Late,
    /// The publisher sent the datagrams again, for a NAK of this receiver or of another.
    Repaired,
    /// The receiver rebuilt the datagrams from parity.
    Rebuilt,
    /// The receiver stopped asking for the datagrams.
    GivenUp(LossCause),
    /// The application got a gap event for the messages.
    Reported(LossCause),
}

/// Reason that a loss was not recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LossCause {
    /// No repair came in time.
    GaveUp = WHY_GAVE_UP,
    /// The publisher no longer retains the data.
    Gone = WHY_GONE,
    /// The publisher continued without waiting for the subscriber.
    Skipped = WHY_SKIPPED,
    /// The publisher evicted the subscriber.
    Evicted = WHY_EVICTED,
    /// The data arrived damaged.
    Damaged = WHY_DAMAGED,
}

impl LossCause {
    const ALL: [Self; 5] = [Self::GaveUp, Self::Gone, Self::Skipped, Self::Evicted, Self::Damaged];

    /// The reason in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::GaveUp => "no repair came in time",
            Self::Gone => "no longer kept by the publisher",
            Self::Skipped => "the publisher did not wait",
            Self::Evicted => "evicted",
            Self::Damaged => "damaged",
        }
    }
}

impl LossOutcome {
    const fn code(self) -> (u32, u32) {
        match self {
            Self::Late => (LOSS_LATE, WHY_NONE),
            Self::Repaired => (LOSS_REPAIRED, WHY_NONE),
            Self::Rebuilt => (LOSS_REBUILT, WHY_NONE),
            Self::GivenUp(why) => (LOSS_GIVEN_UP, why as u32),
            Self::Reported(why) => (LOSS_TOLD, why as u32),
        }
    }

    /// Outcome with the codes of an entry; `None` if they are unknown.
    pub(crate) fn from_code(what: u32, why: u32) -> Option<Self> {
        let why = LossCause::ALL.into_iter().find(|known| *known as u32 == why);
        match what {
            LOSS_LATE => Some(Self::Late),
            LOSS_REPAIRED => Some(Self::Repaired),
            LOSS_REBUILT => Some(Self::Rebuilt),
            LOSS_GIVEN_UP => why.map(Self::GivenUp),
            LOSS_TOLD => why.map(Self::Reported),
            _ => None,
        }
    }
}

impl Loss<'_> {
    /// Writes every field but the texts and the number, whose store makes the entry valid.
    pub(crate) fn store(&self, entry: &LossEntry, source_length: usize, topic_length: usize) {
        let (what, why) = self.end.code();
        entry.unix_ns.store(self.unix_ns, Relaxed);
        entry.after_ns.store(self.after_ns, Relaxed);
        entry.session.store(self.session, Relaxed);
        entry.first.store(self.first, Relaxed);
        entry.count.store(self.count.unwrap_or(COUNT_UNKNOWN), Relaxed);
        entry.what.store(what, Relaxed);
        entry.why.store(why, Relaxed);
        entry.source_length.store(source_length as u32, Relaxed);
        entry.topic_length.store(topic_length as u32, Relaxed);
    }
}

/// An entry read from the loss log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossReport {
    /// Ordinal in its process's log, from 1.
    pub number: u64,
    /// Time of detection, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Time from detection to the outcome, in nanoseconds.
    pub after_ns: u64,
    /// The session.
    pub session: u64,
    /// Source of the session: transport, address, session.
    pub source: String,
    /// The topic; empty if unknown.
    pub topic: String,
    /// Sequence of the first datagram, or number of the first message.
    pub first: u64,
    /// Number of datagrams or messages, if known.
    pub count: Option<u64>,
    /// The outcome.
    pub end: LossOutcome,
}
