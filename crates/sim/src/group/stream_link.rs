//! One direction of a reliable stream between two members, as TCP: nothing is lost or overtakes,
//! but a lost segment holds up all that follows until it is sent again.

use crate::rng::{Millionths, SimRng};
use lanecast_protocol::{MILLISECOND, Nanos};
use std::collections::VecDeque;

/// Time after which a segment is sent again, the first time; it doubles from there.
const FIRST_PAUSE: Nanos = 200 * MILLISECOND;
/// The longest pause doubled.
const DOUBLINGS_MAX: u32 = 8;

/// One direction of a stream of `T`.
#[derive(Debug)]
pub struct StreamLink<T> {
    loss: Millionths,
    /// Items on the way, with their times of arrival but for a loss.
    sent: VecDeque<(Nanos, T)>,
    latest: Nanos,
    /// A lost segment arrives then.
    held_until: Nanos,
    /// The segment was sent again early: what followed showed its loss.
    is_hastened: bool,
}

impl<T> StreamLink<T> {
    /// Creates a stream that loses segments with a probability of `loss`.
    pub const fn new(loss: Millionths) -> Self {
        Self { loss, sent: VecDeque::new(), latest: 0, held_until: 0, is_hastened: false }
    }

    /// Loses nothing from now on.
    pub const fn calm(&mut self) {
        self.loss = 0;
    }

    /// Sends `item`, which a link without loss would bring at `at`; returns when
    /// [`release`](Self::release) has something.
    pub fn send(&mut self, now: Nanos, at: Nanos, item: T, rng: &mut SimRng) -> Nanos {
        let at = at.max(self.latest);
        if at >= self.held_until {
            if rng.happens(self.loss) {
                self.held_until = at + self.pause(rng);
                self.is_hastened = false;
            }
        } else if !self.is_hastened {
            self.is_hastened = true;
            if !rng.happens(self.loss) {
                // The acknowledgement of this item goes back, and the lost segment comes.
                self.held_until = self.held_until.min(at + 2 * (at - now) + MILLISECOND);
            }
        }
        self.latest = at;
        self.sent.push_back((at, item));
        self.held_until.max(at)
    }

    /// Time until the segment arrives, by timers alone: each further loss doubles it.
    fn pause(&self, rng: &mut SimRng) -> Nanos {
        let mut pause = FIRST_PAUSE;
        for doubling in 1..=DOUBLINGS_MAX {
            if !rng.happens(self.loss) {
                break;
            }
            pause += FIRST_PAUSE << doubling;
        }
        pause
    }

    /// The next item that has arrived, if there is one.
    pub fn release(&mut self, now: Nanos) -> Option<T> {
        let has_come =
            self.held_until <= now && self.sent.front().is_some_and(|(at, _)| *at <= now);
        has_come.then(|| self.sent.pop_front()).flatten().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_or_overtakes_and_losses_hold_up_what_follows() {
        let (mut link, mut rng) = (StreamLink::new(50_000), SimRng::new(7));
        let (mut next, mut longest, mut held) = (0, 0, 0);
        let mut due = 0;
        for number in 0..20_000_u64 {
            let now = number * 10 * MILLISECOND;
            due = due.max(link.send(now, now + MILLISECOND, number, &mut rng));
            let before = next;
            while let Some(item) = link.release(now) {
                assert_eq!(item, next);
                next += 1;
            }
            held = if next > before { 0 } else { held + 1 };
            longest = longest.max(held);
        }
        while let Some(item) = link.release(due) {
            assert_eq!(item, next);
            next += 1;
        }
        assert_eq!(next, 20_000);
        assert!((20..1_000).contains(&longest), "{longest} times 10 ms without an arrival");
    }
}
