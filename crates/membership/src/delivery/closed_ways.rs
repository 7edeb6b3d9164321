//! Ways to single members that stay closed: frames for one member go to all there.
//!
//! Owned by [`Streams`](super::streams::Streams). A transport may have no descriptor for the way to
//! a member, or that member none for its own: without another way it would never get what it lacks.

use crate::Nanos;

/// Refusals in a row, at different times, after which a frame for one member is sent to all: a way
/// that is new opens before, and one without room has some again.
const REFUSALS: u8 = 3;

/// Refusals by member, in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClosedWays {
    refusals: Vec<(u8, Nanos)>,
}

impl ClosedWays {
    /// Begins a view of `members`.
    pub(crate) fn reset(&mut self, members: usize) {
        self.refusals.clear();
        self.refusals.resize(members, (0, 0));
    }

    /// Sends a frame to a member, by its own way or to all; `send` is told whether to all.
    pub(crate) fn send(
        &mut self,
        member: usize,
        now: Nanos,
        mut send: impl FnMut(bool) -> bool,
    ) -> bool {
        let (count, last) = &mut self.refusals[member];
        if send(false) {
            *count = 0;
            return true;
        }
        if *count == 0 || now > *last {
            (*count, *last) = (count.saturating_add(1), now);
        }
        *count > REFUSALS && send(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_is_refused_again_and_again_is_one_to_all_until_it_opens() {
        let mut ways = ClosedWays::default();
        ways.reset(2);
        let mut closed = |now| {
            let mut to_all = 0;
            ways.send(1, now, |all| {
                to_all += usize::from(all);
                all
            });
            to_all
        };
        // Several at one time are one.
        let sent: Vec<_> = [5, 5, 5, 5, 5, 10, 20, 40, 40].into_iter().map(&mut closed).collect();
        assert_eq!(sent, [0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert!(ways.send(1, 50, |all| !all), "it opens");
        assert!(!ways.send(1, 60, |all| all));
        assert!(!ways.send(0, 60, |all| all), "another's way");
    }
}
