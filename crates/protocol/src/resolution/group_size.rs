//! Estimate of the number of resolvers in the group: small or large.

use crate::{Nanos, SECOND};

/// Most resolvers of a small group.
const SMALL: usize = 4;
/// Silence after which a resolver no longer counts.
const EXPIRY: Nanos = 30 * SECOND;

/// The last few resolvers heard: enough to tell a small group from a large one.
#[derive(Debug, Default)]
pub(super) struct GroupSize([Option<(u64, Nanos)>; SMALL + 1]);

impl GroupSize {
    /// Records a frame of a resolver.
    pub(super) fn on_heard(&mut self, now: Nanos, resolver: u64) {
        let same = |entry: &Option<(u64, Nanos)>| entry.is_some_and(|(known, _)| known == resolver);
        let entry = self
            .0
            .iter()
            .position(same)
            .or_else(|| self.0.iter().position(|entry| !is_recent(now, *entry)));
        // Without room nothing is stored: the group is known to be large.
        if let Some(entry) = entry {
            self.0[entry] = Some((resolver, now));
        }
    }

    /// Whether the group is large.
    pub(super) fn is_large(&self, now: Nanos) -> bool {
        self.0.iter().all(|entry| is_recent(now, *entry))
    }
}

fn is_recent(now: Nanos, entry: Option<(u64, Nanos)>) -> bool {
    entry.is_some_and(|(_, heard)| now.saturating_sub(heard) < EXPIRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_are_a_large_group_until_they_fall_silent() {
        let mut group = GroupSize::default();
        for round in 0..3 {
            (0..4).for_each(|resolver| group.on_heard(round, resolver));
        }
        assert!(!group.is_large(3));
        (4..9).for_each(|resolver| group.on_heard(3, resolver));
        assert!(group.is_large(3));
        assert!(!group.is_large(3 + EXPIRY));
        group.on_heard(3 + EXPIRY, 77);
        assert!(!group.is_large(3 + EXPIRY));
    }
}
