//! Parameters of an exchange through rings, and the results of its threads.

use super::layout::Seats;
use super::row::Row;
use crate::threads::{DeliveryCheck, DeliveryErrors, ThreadOutcome};
use lanecast_base::WaitStrategy;

/// Parameters of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Producers and consumers.
    pub row: Row,
    /// Messages that are written in place and published together; 1 is one by one. Consumers who
    /// share the messages take as many at once, at most.
    pub batch: usize,
    /// The length of a message in bytes: one of [`SIZES`].
    pub size: usize,
    /// Capacity of a ring, in messages.
    pub capacity: usize,
    /// Wait strategy of both ends.
    pub wait: WaitStrategy,
    /// CPUs of the threads.
    pub seats: Seats,
}

/// The lengths of messages, in bytes.
pub const SIZES: [usize; 6] = [8, 16, 32, 64, 128, 256];

/// Result of a thread: messages sent, or received.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    sent: Option<u64>,
    seen: Option<DeliveryCheck>,
}

impl End {
    pub(super) fn sent(messages: u64) -> Self {
        Self { sent: Some(messages), ..Self::default() }
    }

    pub(super) fn seen(numbers: DeliveryCheck) -> Self {
        Self { seen: Some(numbers), ..Self::default() }
    }
}

/// Results of all threads.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) shares: Vec<ThreadOutcome<End>>,
    pub(super) sent: Vec<u64>,
    pub(super) wrong: DeliveryErrors,
}

impl Found {
    /// Results of consumers that each get every message.
    pub(super) fn each_sees_all(shares: Vec<ThreadOutcome<End>>) -> Self {
        let sent = sent(&shares);
        let seen = shares.iter().filter_map(|share| share.found.seen.clone());
        let wrong = seen
            .map(|seen| seen.against(&sent))
            .fold(DeliveryErrors::default(), DeliveryErrors::and);
        Self { shares, sent, wrong }
    }

    /// Results of consumers that share the messages.
    pub(super) fn all_see_all(shares: Vec<ThreadOutcome<End>>) -> Self {
        let sent = sent(&shares);
        let mut seen = DeliveryCheck::new(sent.len());
        shares.iter().filter_map(|share| share.found.seen.clone()).for_each(|one| seen.add(one));
        Self { shares, wrong: seen.against(&sent), sent }
    }
}

/// Messages sent by each producer.
fn sent(shares: &[ThreadOutcome<End>]) -> Vec<u64> {
    shares.iter().filter_map(|share| share.found.sent).collect()
}
