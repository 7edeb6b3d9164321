//! Receivers that have given up their registrations: their last lives, and the answers that they
//! wait for.

use lanecast_wire::store::{DEPARTURES_MAX, Departure};
use std::collections::{BTreeMap, VecDeque};

/// Most answers of a stream that wait for the disk. Others are given when the request is repeated.
const OWED_MAX: usize = 1_024;

/// Receivers of a stream that have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    /// The last ones, by the order in which they left. Frames that come late would register them
    /// again, and stores that were away have not heard of it.
    last: VecDeque<Noted>,
    /// Client that waits, life, and position of the record, by receiver.
    owed: BTreeMap<u64, (u64, u64, u64)>,
}

/// A receiver that has left.
#[derive(Clone, Copy, Debug)]
struct Noted {
    departure: Departure,
    /// Position of the record that tells it, or of one behind it.
    position: u64,
}

impl Departures {
    /// The life that a receiver has ended last; 0 if none is remembered.
    pub(super) fn life(&self, receiver: u64) -> u64 {
        let noted = self.last.iter().find(|it| it.departure.receiver == receiver);
        noted.map_or(0, |it| it.departure.life)
    }

    /// Whether a receiver has given up its registration in this life, or in a later one.
    pub(super) fn has_left(&self, receiver: u64, life: u64) -> bool {
        self.last.iter().any(|it| it.departure.receiver == receiver && life <= it.departure.life)
    }

    /// A receiver has given up its registration, as the record at `position` says.
    pub(super) fn note(&mut self, departure: Departure, position: u64) {
        if self.has_left(departure.receiver, departure.life) {
            return;
        }
        self.last.retain(|it| it.departure.receiver != departure.receiver);
        if self.last.len() >= DEPARTURES_MAX {
            self.last.pop_front();
        }
        self.last.push_back(Noted { departure, position });
    }

    /// The client is told that a receiver's registration has ended when the record at `position` is
    /// durable, unless too many others wait.
    pub(super) fn owe(&mut self, Departure { receiver, life }: Departure, client: u64, at: u64) {
        if self.owed.len() < OWED_MAX || self.owed.contains_key(&receiver) {
            self.owed.insert(receiver, (client, life, at));
        }
    }

    /// The departures that are remembered, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Departure> {
        self.last.iter().map(|it| it.departure)
    }

    /// Departures of receivers from the id `from` on, in ascending order of these, of which the
    /// records up to `persisted` tell.
    pub(super) fn told(&self, from: u64, persisted: u64) -> Vec<Departure> {
        let is_told = |it: &&Noted| it.departure.receiver >= from && it.position <= persisted;
        let mut told: Vec<Departure> =
            self.last.iter().filter(is_told).map(|it| it.departure).collect();
        told.sort_unstable_by_key(|it| it.receiver);
        told
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
        let mut note = |receiver, life, position| {
            departures.note(Departure { receiver, life }, position);
            departures.clone()
        };
        note(1, 5, 1);
        note(1, 7, 2);
        let noted = note(1, 6, 3);
        assert!(noted.has_left(1, 7) && noted.has_left(1, 6));
        assert!(!noted.has_left(1, 8) && !noted.has_left(2, 1));
        assert_eq!((noted.life(1), noted.life(2)), (7, 0));
        for receiver in (2..=DEPARTURES_MAX as u64).rev() {
            note(receiver, 1, 4);
        }
        let noted = note(900, 1, 5);
        assert_eq!(noted.last.len(), DEPARTURES_MAX);
        assert!(!noted.has_left(1, 7) && noted.has_left(2, 1));
        // The disk has not written the last one.
        let told: Vec<u64> = noted.told(254, 4).iter().map(|it| it.receiver).collect();
        assert_eq!(told, [254, 255, 256]);
        assert_eq!(noted.told(257, 5), [Departure { receiver: 900, life: 1 }]);
    }

    #[test]
    fn answers_that_wait_for_the_disk_are_bounded() {
        let mut departures = Departures::default();
        let most = OWED_MAX as u64;
        let mut owe = |receiver, life, client| {
            departures.owe(Departure { receiver, life }, client, 7);
        };
        (0..most + 5).for_each(|receiver| owe(receiver, 1, receiver));
        // One that waits is answered in the name of its last request.
        owe(3, 2, 99);
        let mut told = Vec::new();
        departures.advance(6, |client, receiver, life| told.push((client, receiver, life)));
        assert!(told.is_empty() && !departures.is_settled());
        departures.advance(7, |client, receiver, life| told.push((client, receiver, life)));
        assert_eq!((told.len() as u64, told[3]), (most, (99, 3, 2)));
        assert!(departures.is_settled());
    }
}
