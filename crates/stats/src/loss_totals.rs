//! Sums of losses by session and topic, which outlast the loss log's entries.
//!
//! [`LossKeys`] belongs to the writer of a file, under the lock of its log; readers get
//! [`LossTotals`].

use crate::loss::{Loss, LossOutcome};
use lanecast_base::sync::Ordering::Relaxed;
use lanecast_wire::stats::LossTotal;

/// Sums of the losses of one session on one topic, read from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LossTotals {
    /// The session.
    pub session: u64,
    /// Source of the session: transport, address, session.
    pub source: String,
    /// The topic; empty for datagrams, which may carry several.
    pub topic: String,
    /// Datagrams that arrived late by themselves.
    pub late: LossCount,
    /// Datagrams that the publisher sent again.
    pub repaired: LossCount,
    /// Datagrams that were rebuilt from parity.
    pub rebuilt: LossCount,
    /// Datagrams that were given up.
    pub given_up: LossCount,
    /// Messages that the application was told of as lost.
    pub reported: LossCount,
}

/// Number of losses of one outcome, and their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCount {
    /// Number of datagrams or messages.
    pub count: u64,
    /// Detection of the first, in nanoseconds since 1970.
    pub first_unix_ns: u64,
    /// Detection of the last, in nanoseconds since 1970.
    pub last_unix_ns: u64,
    /// Longest time from detection to the outcome, in nanoseconds.
    pub longest_ns: u64,
}

impl LossCount {
    /// Adds the losses of another count.
    pub fn add(&mut self, other: &Self) {
        // A count without losses has no first time.
        let times = [*self, *other].into_iter().filter(|it| it.first_unix_ns > 0);
        *self = Self {
            count: self.count.saturating_add(other.count),
            first_unix_ns: times.map(|it| it.first_unix_ns).min().unwrap_or(0),
            last_unix_ns: self.last_unix_ns.max(other.last_unix_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        };
    }

    /// Whether any loss was counted, if only one of an unknown number of messages.
    pub const fn is_some(&self) -> bool {
        self.first_unix_ns > 0
    }
}

/// Session and topic of each sum in a file, and the time of its last loss.
#[derive(Debug, Default)]
pub(crate) struct LossKeys {
    keys: Vec<LossKey>,
    /// Number of keys so far.
    count: u64,
}

#[derive(Debug)]
struct LossKey {
    session: u64,
    topic: String,
    unix_ns: u64,
}

/// Entry of a loss in the table of sums.
pub(crate) struct LossSlot {
    pub(crate) index: usize,
    /// Number of the entry's new session and topic, unless it has them already.
    pub(crate) number: Option<u64>,
}

impl LossKeys {
    /// The entry of the loss's session and `topic` among `most`: theirs, a free one, or that whose
    /// last loss is the oldest.
    pub(crate) fn slot(&mut self, loss: &Loss<'_>, topic: &str, most: usize) -> Option<LossSlot> {
        let is_its = |key: &LossKey| key.session == loss.session && key.topic == topic;
        if let Some(index) = self.keys.iter().position(is_its) {
            let key = &mut self.keys[index];
            key.unix_ns = key.unix_ns.max(loss.unix_ns);
            return Some(LossSlot { index, number: None });
        }
        let key = LossKey { session: loss.session, topic: topic.into(), unix_ns: loss.unix_ns };
        self.count += 1;
        let index = if self.keys.len() < most {
            self.keys.push(key);
            self.keys.len() - 1
        } else {
            let oldest = self.keys.iter().enumerate().min_by_key(|(_, key)| key.unix_ns);
            let index = oldest.map(|(index, _)| index)?;
            self.keys[index] = key;
            index
        };
        Some(LossSlot { index, number: Some(self.count) })
    }
}

/// Adds a loss to the entry of its session and topic; the caller is the only writer.
pub(crate) fn add(loss: &Loss<'_>, total: &LossTotal) {
    let sum = match loss.end {
        LossOutcome::Late => &total.late,
        LossOutcome::Repaired => &total.repaired,
        LossOutcome::Rebuilt => &total.rebuilt,
        LossOutcome::GivenUp(_) => &total.given_up,
        LossOutcome::Reported(_) => &total.told,
    };
    sum.last_unix_ns.fetch_max(loss.unix_ns, Relaxed);
    sum.longest_ns.fetch_max(loss.after_ns, Relaxed);
    let first = sum.first_unix_ns.load(Relaxed);
    if first == 0 || loss.unix_ns < first {
        sum.first_unix_ns.store(loss.unix_ns, Relaxed);
    }
    let count = sum.count.load(Relaxed).saturating_add(loss.count.unwrap_or(0));
    sum.count.store(count, Relaxed);
}

/// Clears the entry for another session and topic, but for its texts and its number.
pub(crate) fn clear(total: &LossTotal, session: u64, source_length: usize, topic_length: usize) {
    total.session.store(session, Relaxed);
    total.source_length.store(source_length as u32, Relaxed);
    total.topic_length.store(topic_length as u32, Relaxed);
    for sum in [&total.late, &total.repaired, &total.rebuilt, &total.given_up, &total.told] {
        for value in [&sum.count, &sum.first_unix_ns, &sum.last_unix_ns, &sum.longest_ns] {
            value.store(0, Relaxed);
        }
    }
}
