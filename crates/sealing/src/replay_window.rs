//! The frame counters that were seen of a sender: RFC 6479's sliding window, so that frames may
//! arrive in another order but none twice.

const WORDS: usize = 64;
const BITS: u64 = 64;
/// Counters that may arrive out of order: a word less than there is room for, since the newest word
/// is filled as it begins.
const REACH: u64 = (WORDS as u64 - 1) * BITS;

/// A window over the latest counters.
#[derive(Debug)]
pub(crate) struct ReplayWindow {
    /// One more than the highest counter seen.
    next: u64,
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// A window that takes counters from `next` on, and none before it.
    pub(crate) const fn beginning_at(next: u64) -> Self {
        let mut seen = [u64::MAX; WORDS];
        seen[word(next)] = bit(next) - 1;
        Self { next, seen }
    }

    /// One more than the highest counter seen.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Whether a counter was neither seen nor fell out of the window.
    pub(crate) const fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return counter != u64::MAX;
        }
        let is_within = self.next - counter <= REACH;
        is_within && self.seen[word(counter)] & bit(counter) == 0
    }

    /// Notes a counter that is new.
    pub(crate) fn note(&mut self, counter: u64) {
        if counter >= self.next {
            let begun = counter / BITS;
            let from = self.next.div_ceil(BITS);
            // At most once around: a larger jump clears everything.
            for index in (from..=begun).rev().take(WORDS) {
                self.seen[index as usize % WORDS] = 0;
            }
            self.next = counter + 1;
        }
        self.seen[word(counter)] |= bit(counter);
    }
}

const fn word(counter: u64) -> usize {
    (counter / BITS) as usize % WORDS
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the counter was taken.
    fn take(window: &mut ReplayWindow, counter: u64) -> bool {
        let is_new = window.is_new(counter);
        if is_new {
            window.note(counter);
        }
        is_new
    }

    #[test]
    fn each_counter_is_taken_once_in_any_order() {
        let mut window = ReplayWindow::beginning_at(0);
        let mut order: Vec<u64> = (0..10_000).collect();
        for chunk in order.chunks_mut(1_000) {
            chunk.reverse();
        }
        assert!(order.iter().all(|counter| take(&mut window, *counter)));
        assert!(!order.iter().any(|counter| take(&mut window, *counter)));
    }

    #[test]
    fn counters_behind_the_window_are_refused() {
        let mut window = ReplayWindow::beginning_at(0);
        assert!(take(&mut window, 100_000));
        assert!(!window.is_new(100_001 - REACH - 1));
        assert!(take(&mut window, 100_001 - REACH));
        assert!(!take(&mut window, 100_001 - REACH));
        assert!(take(&mut window, 99_999));
    }

    #[test]
    fn a_window_that_begins_later_takes_all_from_there_in_any_order() {
        for next in [0, 1, 50, 63, 64, 65, 127, 4_095, 4_096, 1 << 40] {
            let mut window = ReplayWindow::beginning_at(next);
            for counter in (next..next + 200).rev() {
                assert!(take(&mut window, counter), "{counter} from {next}");
                assert!(!take(&mut window, counter), "{counter} from {next}");
            }
            for before in next.saturating_sub(5_000)..next {
                assert!(!window.is_new(before), "{before} before {next}");
            }
        }
    }

    #[test]
    fn jumps_clear_what_they_pass() {
        let mut window = ReplayWindow::beginning_at(0);
        let mut counter = 0;
        for step in [1, 63, 64, 65, 4_031, 4_032, 4_033, 4_096, 1 << 20, 1 << 40] {
            assert!(take(&mut window, counter), "{counter}");
            let next = counter + step;
            assert!(take(&mut window, next), "{next}");
            // Everything between that is within reach is still new.
            for between in (counter + 1..next).rev().take(REACH as usize - 1) {
                assert!(window.is_new(between), "{between} between {counter} and {next}");
            }
            counter = next + 1;
        }
        assert!(!window.is_new(u64::MAX), "the last counter has no successor");
    }
}
