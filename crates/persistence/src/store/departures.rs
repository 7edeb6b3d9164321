//! Receivers that have given up their registrations: the answers that they wait for, and their last
//! lives.

use std::collections::{BTreeMap, VecDeque};

/// Receivers whose last lives are remembered, of a stream: frames that come late would register
/// them again.
const REMEMBERED_MAX: usize = 64;
/// Most answers of a stream that wait for the disk. Others are given when the request is repeated.
const OWED_MAX: usize = 1_024;

/// Receivers of a stream that have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    /// The life that has ended of each of the last ones. Not kept over a start of the store: what
    /// was under way to it is lost then.
    last: VecDeque<(u64, u64)>,
    /// Client that waits, life, and position of the record, by receiver.
    owed: BTreeMap<u64, (u64, u64, u64)>,
}

impl Departures {
    /// Whether a receiver has given up its registration in this life, or in a later one.
    pub(super) fn has_left(&self, receiver: u64, life: u64) -> bool {
        self.last.iter().any(|(it, ended)| *it == receiver && life <= *ended)
    }

    /// A receiver has given up its registration in this life. The client is told when the record at
    /// `position` is durable, unless too many others wait.
    pub(super) fn add(&mut self, (receiver, life): (u64, u64), client: u64, position: u64) {
        self.note(receiver, life);
        if self.owed.len() < OWED_MAX || self.owed.contains_key(&receiver) {
            self.owed.insert(receiver, (client, life, position));
        }
    }

    fn note(&mut self, receiver: u64, life: u64) {
        self.last.retain(|(it, _)| *it != receiver);
        if self.last.len() >= REMEMBERED_MAX {
            self.last.pop_front();
        }
        self.last.push_back((receiver, life));
    }

    /// Whether nothing waits for the disk.
    pub(super) fn is_settled(&self) -> bool {
        self.owed.is_empty()
    }

    /// Everything up to `persisted` is durable: gives the answers that are due, each with its
    /// client, the receiver and the life that has ended.
    pub(super) fn advance(&mut self, persisted: u64, mut answer: impl FnMut(u64, u64, u64)) {
        self.owed.retain(|receiver, (client, life, position)| {
            let is_due = *position <= persisted;
            if is_due {
                answer(*client, *receiver, *life);
            }
            !is_due
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_ones_are_remembered_each_by_its_last_life() {
        let mut departures = Departures::default();
        departures.note(1, 5);
        departures.note(1, 7);
        assert!(departures.has_left(1, 7) && departures.has_left(1, 6));
        assert!(!departures.has_left(1, 8) && !departures.has_left(2, 1));
        for receiver in 2..=REMEMBERED_MAX as u64 + 1 {
            departures.note(receiver, 1);
        }
        assert_eq!(departures.last.len(), REMEMBERED_MAX);
        assert!(!departures.has_left(1, 7) && departures.has_left(2, 1));
    }

    #[test]
    fn answers_that_wait_for_the_disk_are_bounded() {
        let mut departures = Departures::default();
        let most = OWED_MAX as u64;
        (0..most + 5).for_each(|receiver| departures.add((receiver, 1), receiver, 7));
        // One that waits is answered in the name of its last request.
        departures.add((3, 2), 99, 7);
        let mut told = Vec::new();
        departures.advance(6, |client, receiver, life| told.push((client, receiver, life)));
        assert!(told.is_empty() && !departures.is_settled());
        departures.advance(7, |client, receiver, life| told.push((client, receiver, life)));
        assert_eq!((told.len() as u64, told[3]), (most, (99, 3, 2)));
        assert!(departures.is_settled());
    }
}
