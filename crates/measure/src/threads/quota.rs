//! Quota of a producer: the messages still to send.

use crate::smx::RunLength;
use std::time::{Duration, Instant};

/// Messages before the first reading of the clock.
const FIRST: u64 = 64;
/// Most messages between two readings.
const MOST: u64 = 1 << 16;
/// Approximate interval of readings: cheap, and close to the end.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

/// Counts a producer's messages; made when it starts.
#[derive(Debug)]
pub(crate) enum Quota {
    /// A number of messages.
    Messages { left: u64, portion: u64 },
    /// As many messages as fit into the time.
    Time { end: Instant, looked: Instant, portion: u64 },
}

impl Quota {
    /// A quota for a producer of batches; portions are whole batches.
    pub(crate) fn new(length: RunLength, batch: usize) -> Self {
        let batch = batch.max(1) as u64;
        match length {
            RunLength::Messages(left) => {
                Self::Messages { left, portion: MOST.next_multiple_of(batch) }
            }
            RunLength::Time(time) => {
                let (now, portion) = (Instant::now(), FIRST.next_multiple_of(batch));
                Self::Time { end: now + time, looked: now, portion }
            }
        }
    }

    /// The share of one of `producers`, counted from 0.
    pub(crate) fn share(length: RunLength, producer: usize, producers: usize) -> RunLength {
        let RunLength::Messages(all) = length else { return length };
        let (producer, producers) = (producer as u64, producers.max(1) as u64);
        RunLength::Messages(all / producers + u64::from(producer < all % producers))
    }

    /// The next portion to send; none at the end.
    #[cold]
    pub(crate) fn next(&mut self) -> Option<u64> {
        match self {
            Self::Messages { left: 0, .. } => None,
            Self::Messages { left, portion } => {
                let portion = (*portion).min(*left);
                *left -= portion;
                Some(portion)
            }
            Self::Time { end, looked, portion } => {
                let now = Instant::now();
                if now >= *end {
                    return None;
                }
                if *portion < MOST && now.duration_since(*looked) < BETWEEN_LOOKS {
                    *portion *= 2;
                }
                *looked = now;
                Some(*portion)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(mut quota: Quota) -> u64 {
        std::iter::from_fn(|| quota.next()).sum()
    }

    #[test]
    fn producers_share_the_messages_and_none_is_left_over() {
        for (all, producers) in [(10, 4), (0, 2), (3, 4), (1_000_001, 2)] {
            let share = |at| Quota::share(RunLength::Messages(all), at, producers);
            let shares = (0..producers).map(|at| total(Quota::new(share(at), 3)));
            assert_eq!(shares.sum::<u64>(), all);
        }
    }

    #[test]
    fn portions_grow_while_they_take_no_time_and_end_with_it() {
        let start = Instant::now();
        let far = start + Duration::from_secs(3600);
        let mut quota = Quota::Time { end: far, looked: start, portion: FIRST };
        let portions: Vec<u64> = (0..40).filter_map(|_| quota.next()).collect();
        assert_eq!(portions.len(), 40);
        assert!(portions.is_sorted() && portions.iter().all(|portion| *portion <= MOST * 2));
        assert_eq!(Quota::Time { end: start, looked: start, portion: FIRST }.next(), None);
    }
}
