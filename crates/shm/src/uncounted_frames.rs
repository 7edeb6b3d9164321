//! Frames that reports do not count: of layers above the transport that talk with subscribers
//! beside the program's messages.
//!
//! Owned by the publisher's roster of slots, used on its thread; beside the path of messages.

use lanecast_base::Position;
use std::collections::VecDeque;

/// The uncounted frames of the last window, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct UncountedFrames {
    /// Start and end of each frame.
    frames: VecDeque<(Position, Position)>,
}

impl UncountedFrames {
    /// Adds the frame from `start` to `end`, the writer's position; forgets those that no reader
    /// can have before it: further back than `window` bytes.
    pub(crate) fn add(&mut self, start: Position, end: Position, window: u64) {
        while self.frames.front().is_some_and(|(first, _)| end.since(*first) > window) {
            self.frames.pop_front();
        }
        self.frames.push_back((start, end));
    }

    /// Whether there is no other frame from `from` to `to`: a reader at the first has read all
    /// messages before the second.
    #[inline]
    pub(crate) fn are_all(&self, from: Position, to: Position) -> bool {
        if from == to {
            return true;
        }
        let mut at = to;
        let before = self.frames.iter().rev().skip_while(|(_, end)| end.is_past(to));
        for (start, end) in before {
            if *end != at {
                return false;
            }
            at = *start;
            if at == from {
                return true;
            }
        }
        false
    }

    /// Number of uncounted frames from `from` to `to`.
    pub(crate) fn count(&self, from: Position, to: Position) -> u64 {
        let is_between =
            |(start, end): &&(Position, Position)| !from.is_past(*start) && !end.is_past(to);
        self.frames.iter().filter(is_between).count() as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(bytes: u64) -> Position {
        // Positions wrap.
        Position::new(0).minus(64).plus(bytes)
    }

    #[test]
    fn uncounted_frames_at_the_end_leave_nothing_to_read() {
        let mut uncounted = UncountedFrames::default();
        assert!(uncounted.are_all(at(0), at(0)) && !uncounted.are_all(at(0), at(16)));
        for start in [16, 48, 80] {
            uncounted.add(at(start), at(start + 32), 1_024);
        }
        assert!([16, 48, 80, 112].iter().all(|from| uncounted.are_all(at(*from), at(112))));
        assert!(!uncounted.are_all(at(0), at(112)), "a message comes first");
        assert!(!uncounted.are_all(at(20), at(112)), "no frame starts there");
        assert!(!uncounted.are_all(at(48), at(128)), "a message follows");
        assert!(uncounted.are_all(at(16), at(80)), "at the time of an earlier departure");
        assert_eq!(uncounted.count(at(0), at(128)), 3);
        assert_eq!(uncounted.count(at(48), at(112)), 2);
    }

    #[test]
    fn frames_beyond_the_window_are_forgotten() {
        let mut uncounted = UncountedFrames::default();
        (0..1_000).for_each(|frame| uncounted.add(at(frame * 16), at(frame * 16 + 16), 64));
        assert_eq!(uncounted.frames.len(), 4);
        assert!(uncounted.are_all(at(15_936), at(16_000)));
    }
}
