//! One direction of a link: delay, loss, reordering, duplicates, and a bounded queue.

use crate::rng::{Millionths, SimRng};
use lanecast_protocol::{MICROSECOND, Nanos, SECOND};

/// Conditions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConditions {
    /// Shortest delay.
    pub delay: Nanos,
    /// Largest additional delay, without reordering.
    pub jitter: Nanos,
    /// Loss.
    pub loss: Loss,
    /// Probability of a duplicate.
    pub copies: Millionths,
    /// Probability of a detour of up to `detour`, which reorders datagrams.
    pub detours: Millionths,
    /// Longest detour.
    pub detour: Nanos,
    /// Capacity, in bytes per second; 0: unlimited.
    pub rate: u64,
    /// Length of the queue, in bytes; more is dropped.
    pub queue: u64,
}

/// Loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    None,
    /// Independent losses.
    Random(Millionths),
    /// Gilbert-Elliott: no loss in the good state, losses with probability `bad` in the bad one.
    Bursts {
        /// Probability that the good state ends with a datagram.
        begin: Millionths,
        /// Probability that the bad state ends with a datagram.
        end: Millionths,
        /// Probability of loss in the bad state.
        bad: Millionths,
    },
}

impl LinkConditions {
    /// A quiet network with one switch.
    pub const CALM: Self = Self {
        delay: 10 * MICROSECOND,
        jitter: 5 * MICROSECOND,
        loss: Loss::None,
        copies: 0,
        detours: 0,
        detour: 0,
        rate: 0,
        queue: 0,
    };

    /// Delay only, for datagrams within a host.
    pub const INSIDE: Self = Self { delay: MICROSECOND, jitter: 0, ..Self::CALM };
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link {
    conditions: LinkConditions,
    is_bad: bool,
    free_at: Nanos,
    latest: Nanos,
}

/// Arrival of a datagram and its duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Never.
    Lost,
    /// Never: the queue was full.
    Overflown,
    /// Once.
    Once(Nanos),
    /// Twice.
    Twice(Nanos, Nanos),
}

impl Link {
    /// Creates a link under these conditions.
    pub const fn new(conditions: LinkConditions) -> Self {
        Self { conditions, is_bad: false, free_at: 0, latest: 0 }
    }

    /// Changes the conditions; datagrams on the way are unaffected.
    pub const fn change(&mut self, conditions: LinkConditions) {
        self.conditions = conditions;
        self.is_bad = false;
    }

    /// Conditions.
    pub const fn conditions(&self) -> LinkConditions {
        self.conditions
    }

    /// Sends a datagram of `bytes` bytes.
    pub fn carry(&mut self, now: Nanos, bytes: usize, rng: &mut SimRng) -> Passage {
        let Some(out_at) = self.queue(now, bytes as u64) else { return Passage::Overflown };
        if self.loses(rng) {
            return Passage::Lost;
        }
        let once = self.arrival(out_at, rng);
        if rng.happens(self.conditions.copies) {
            Passage::Twice(once, self.arrival(out_at, rng))
        } else {
            Passage::Once(once)
        }
    }

    /// Time at which the last bit is on the wire.
    fn queue(&mut self, now: Nanos, bytes: u64) -> Option<Nanos> {
        if self.conditions.rate == 0 {
            return Some(now);
        }
        let begin = self.free_at.max(now);
        let waiting = (begin - now) as u128 * self.conditions.rate as u128 / SECOND as u128;
        if waiting as u64 + bytes > self.conditions.queue {
            return None;
        }
        self.free_at = begin + bytes * SECOND / self.conditions.rate;
        Some(self.free_at)
    }

    fn loses(&mut self, rng: &mut SimRng) -> bool {
        match self.conditions.loss {
            Loss::None => false,
            Loss::Random(odds) => rng.happens(odds),
            Loss::Bursts { begin, end, bad } => {
                let turns = if self.is_bad { end } else { begin };
                self.is_bad ^= rng.happens(turns);
                self.is_bad && rng.happens(bad)
            }
        }
    }

    fn arrival(&mut self, out_at: Nanos, rng: &mut SimRng) -> Nanos {
        let at = out_at + self.conditions.delay + rng.up_to(self.conditions.jitter);
        if rng.happens(self.conditions.detours) {
            return at + rng.up_to(self.conditions.detour);
        }
        self.latest = self.latest.max(at);
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_protocol::MILLISECOND;

    fn lost_of(conditions: LinkConditions, count: usize) -> (usize, usize) {
        let (mut link, mut rng) = (Link::new(conditions), SimRng::new(1));
        let lost: Vec<bool> =
            (0..count).map(|_| link.carry(0, 100, &mut rng) == Passage::Lost).collect();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        (lost.iter().filter(|lost| **lost).count(), bursts)
    }

    #[test]
    fn losses_come_alone_or_in_bursts() {
        let random = LinkConditions { loss: Loss::Random(50_000), ..LinkConditions::CALM };
        let (lost, runs) = lost_of(random, 100_000);
        assert!((4_500..5_500).contains(&lost) && runs > lost * 9 / 10, "{lost} {runs}");
        let loss = Loss::Bursts { begin: 5_000, end: 100_000, bad: 1_000_000 };
        let (lost, runs) = lost_of(LinkConditions { loss, ..LinkConditions::CALM }, 100_000);
        assert!((4_000..5_500).contains(&lost) && runs < lost / 8, "{lost} {runs}");
    }

    #[test]
    fn jitter_keeps_the_order_and_detours_do_not() {
        let arrivals = |conditions| {
            let (mut link, mut rng) = (Link::new(conditions), SimRng::new(2));
            let at = |passage| match passage {
                Passage::Once(at) => at,
                other => panic!("{other:?}"),
            };
            (0..1_000).map(|now| at(link.carry(now * 100, 9, &mut rng))).collect::<Vec<_>>()
        };
        assert!(arrivals(LinkConditions::CALM).is_sorted());
        let detours =
            LinkConditions { detours: 100_000, detour: MILLISECOND, ..LinkConditions::CALM };
        assert!(!arrivals(detours).is_sorted());
    }

    #[test]
    fn a_slow_link_queues_and_then_drops() {
        let conditions =
            LinkConditions { rate: 1_000_000, queue: 3_000, jitter: 0, ..LinkConditions::CALM };
        let (mut link, mut rng) = (Link::new(conditions), SimRng::new(3));
        let passages: Vec<_> = (0..4).map(|_| link.carry(0, 1_000, &mut rng)).collect();
        let at = |count: u64| Passage::Once(count * MILLISECOND + conditions.delay);
        assert_eq!(passages, [at(1), at(2), at(3), Passage::Overflown]);
        assert_eq!(link.carry(MILLISECOND, 1_000, &mut rng), at(4));
    }

    #[test]
    fn copies_arrive_too() {
        let conditions = LinkConditions { copies: 1_000_000, ..LinkConditions::CALM };
        let passage = Link::new(conditions).carry(7, 10, &mut SimRng::new(5));
        assert!(matches!(passage, Passage::Twice(..)), "{passage:?}");
    }
}
