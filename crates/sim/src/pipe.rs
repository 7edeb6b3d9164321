//! One direction of a TCP connection: bytes in order, or a break.

use crate::link::{LinkConditions, Loss};
use crate::rng::SimRng;
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};
use std::collections::VecDeque;

/// One direction of a connection.
#[derive(Debug)]
pub struct Pipe {
    capacity: usize,
    segments: VecDeque<(Nanos, Vec<u8>)>,
    held: usize,
    latest: Nanos,
}

impl Pipe {
    /// Creates an empty pipe of `capacity` bytes, in buffers and on the way.
    pub const fn new(capacity: usize) -> Self {
        Self { capacity, segments: VecDeque::new(), held: 0, latest: 0 }
    }

    /// Free room, in bytes.
    pub const fn room(&self) -> usize {
        self.capacity - self.held
    }

    /// Writes `bytes` as far as there is room; returns the number and their arrival.
    pub fn write(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        conditions: &LinkConditions,
        rng: &mut SimRng,
    ) -> (usize, Nanos) {
        let length = bytes.len().min(self.room());
        let wire = (length as u64 * 1_000_000_000).checked_div(conditions.rate).unwrap_or(0);
        let at =
            now + wire + conditions.delay + rng.up_to(conditions.jitter) + hitch(conditions, rng);
        self.latest = self.latest.max(at);
        if length > 0 {
            self.segments.push_back((self.latest, bytes[..length].to_vec()));
            self.held += length;
        }
        (length, self.latest)
    }

    /// Appends arrived bytes to `into`, up to `most`; returns whether the pipe was full before.
    pub fn read(&mut self, now: Nanos, most: usize, into: &mut Vec<u8>) -> bool {
        let was_full = self.room() == 0;
        let mut left = most;
        while left > 0
            && let Some((at, segment)) = self.segments.front_mut()
            && *at <= now
        {
            let length = segment.len().min(left);
            into.extend(segment.drain(..length));
            left -= length;
            self.held -= length;
            if segment.is_empty() {
                self.segments.pop_front();
            }
        }
        was_full && self.room() > 0
    }

    /// Arrival of the next bytes.
    pub fn next_at(&self) -> Option<Nanos> {
        self.segments.front().map(|(at, _)| *at)
    }

    /// Delays all bytes until `at`: the network was cut until then.
    pub fn delay_until(&mut self, at: Nanos) {
        self.segments.iter_mut().for_each(|segment| segment.0 = segment.0.max(at));
        self.latest = self.latest.max(at);
    }
}

/// Delay by a lost segment: the stream waits for its retransmission.
fn hitch(conditions: &LinkConditions, rng: &mut SimRng) -> Nanos {
    let odds = match conditions.loss {
        Loss::None => 0,
        Loss::Random(odds) => odds,
        Loss::Bursts { begin, .. } => begin,
    };
    if rng.happens(odds) { rng.within(500 * MICROSECOND..=20 * MILLISECOND) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_order_and_later() {
        let (mut pipe, mut rng) = (Pipe::new(10), SimRng::new(1));
        let conditions = LinkConditions { loss: Loss::Random(500_000), ..LinkConditions::CALM };
        assert_eq!(pipe.write(0, b"abcdef", &conditions, &mut rng).0, 6);
        let (length, at) = pipe.write(5, b"ghijklm", &conditions, &mut rng);
        assert_eq!((length, pipe.room()), (4, 0));
        let mut bytes = Vec::new();
        assert!(!pipe.read(conditions.delay - 1, 99, &mut bytes) && bytes.is_empty());
        assert!(pipe.read(at, 3, &mut bytes), "a jam ends");
        assert!(!pipe.read(at, 99, &mut bytes));
        assert_eq!(bytes, b"abcdefghij");
        assert_eq!(pipe.next_at(), None);
    }

    #[test]
    fn a_cut_delays() {
        let (mut pipe, mut rng) = (Pipe::new(10), SimRng::new(1));
        pipe.write(0, b"abc", &LinkConditions::CALM, &mut rng);
        pipe.delay_until(MILLISECOND);
        assert_eq!(pipe.next_at(), Some(MILLISECOND));
    }
}
