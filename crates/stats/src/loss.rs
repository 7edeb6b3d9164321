//! What was lost on the way, and how that ended.

use lanecast_base::sync::Ordering::Relaxed;
use lanecast_wire::stats::{
    COUNT_UNKNOWN, LOSS_GIVEN_UP, LOSS_RECOVERED, LOSS_TOLD, LossEntry, WHY_DAMAGED, WHY_EVICTED,
    WHY_GAVE_UP, WHY_GONE, WHY_NONE, WHY_SKIPPED,
};

/// A loss that is to be logged.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// Where the session comes from.
    pub source: &'a str,
    /// The topic; empty for datagrams, which may carry several.
    pub topic: &'a str,
    /// The session.
    pub session: u64,
    /// When it was noticed, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// How long after that it was over, in nanoseconds.
    pub after_ns: u64,
    /// The first datagram's sequence, or the first message's number.
    pub first: u64,
    /// How many, if that is known.
    pub count: Option<u64>,
    /// How it ended.
    pub end: LossEnd,
}

/// How a loss ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossEnd {
    /// The datagrams came after all.
    Recovered,
    /// The datagrams were given up.
    GivenUp(LossWhy),
    /// The application was told of messages that will not come.
    Told(LossWhy),
}

/// Why something was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LossWhy {
    /// No repair came in time.
    GaveUp = WHY_GAVE_UP,
    /// The publisher does not keep it any more.
    Gone = WHY_GONE,
    /// The publisher went on without the subscriber.
    Skipped = WHY_SKIPPED,
    /// The publisher took the subscriber's place away.
    Evicted = WHY_EVICTED,
    /// It came, and made no sense.
    Damaged = WHY_DAMAGED,
}

impl LossWhy {
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

impl LossEnd {
    const fn code(self) -> (u32, u32) {
        match self {
            Self::Recovered => (LOSS_RECOVERED, WHY_NONE),
            Self::GivenUp(why) => (LOSS_GIVEN_UP, why as u32),
            Self::Told(why) => (LOSS_TOLD, why as u32),
        }
    }

    /// What the numbers of an entry mean, if anything.
    pub(crate) fn from_code(what: u32, why: u32) -> Option<Self> {
        let why = LossWhy::ALL.into_iter().find(|known| *known as u32 == why);
        match what {
            LOSS_RECOVERED => Some(Self::Recovered),
            LOSS_GIVEN_UP => why.map(Self::GivenUp),
            LOSS_TOLD => why.map(Self::Told),
            _ => None,
        }
    }
}

impl Loss<'_> {
    /// Writes all but the texts, and the number that makes them count.
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

/// A loss, as it was logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossReport {
    /// The how-manieth of its process it is, from 1.
    pub number: u64,
    /// When it was noticed, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// How long after that it was over, in nanoseconds.
    pub after_ns: u64,
    /// The session.
    pub session: u64,
    /// Where the session comes from.
    pub source: String,
    /// The topic; empty if it is not known.
    pub topic: String,
    /// The first datagram's sequence, or the first message's number.
    pub first: u64,
    /// How many, if that is known.
    pub count: Option<u64>,
    /// How it ended.
    pub end: LossEnd,
}
