//! Pause of a publisher whose transport has no room: readers that make some send no wake-up.

use std::time::Duration;

/// The shortest and the longest pause.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(1);
/// Messages between two refusals: with fewer the pauses get longer, with more shorter.
const FEW: u64 = 64;
const MANY: u64 = 512;

/// The pause, by the number of messages that found room after the last ones.
///
/// A publisher that wakes up for each few messages takes the CPU from the readers that it waits
/// for.
#[derive(Debug)]
pub(crate) struct RoomWait {
    pause: Duration,
    /// Sequence of the last message that was refused.
    refused: u64,
}

impl RoomWait {
    pub(crate) const fn new() -> Self {
        Self { pause: SHORTEST, refused: 0 }
    }

    /// The message with this sequence found no room.
    pub(crate) fn on_refusal(&mut self, sequence: u64) {
        match sequence.saturating_sub(self.refused) {
            // Refused again.
            0 => {}
            1..FEW => self.pause = (2 * self.pause).min(LONGEST),
            FEW..=MANY => {}
            _ => self.pause = (self.pause / 2).max(SHORTEST),
        }
        self.refused = sequence;
    }

    pub(crate) const fn pause(&self) -> Duration {
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_they_make_room_for_many_messages() {
        let (mut wait, mut sequence) = (RoomWait::new(), 0);
        let mut after = |sent: u64| {
            sequence += sent;
            wait.on_refusal(sequence);
            wait.pause().as_micros()
        };
        assert_eq!([0, 0, 5, 0].map(&mut after), [100, 100, 200, 200]);
        assert_eq!([63, 1, 1, 1].map(&mut after), [400, 800, 1_000, 1_000]);
        assert_eq!([64, 512, 0].map(&mut after), [1_000; 3], "as it should be");
        assert_eq!([513, 9_999, 600, 600, 600].map(&mut after), [500, 250, 125, 100, 100]);
    }
}
