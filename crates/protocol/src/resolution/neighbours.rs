//! Whether there are many resolvers in the group.

use crate::{Nanos, SECOND};

/// More than this many are a crowd.
const FEW: usize = 4;
/// Whoever has not been heard for this long does not count.
const SILENT: Nanos = 30 * SECOND;

/// The last few resolvers heard: enough to tell few from many.
#[derive(Debug, Default)]
pub(super) struct Neighbours([Option<(u64, Nanos)>; FEW + 1]);

impl Neighbours {
    /// A resolver is heard.
    pub(super) fn note(&mut self, now: Nanos, resolver: u64) {
        let same = |place: &Option<(u64, Nanos)>| place.is_some_and(|(known, _)| known == resolver);
        let place = self
            .0
            .iter()
            .position(same)
            .or_else(|| self.0.iter().position(|place| !is_recent(now, *place)));
        if let Some(place) = place {
            self.0[place] = Some((resolver, now));
        }
    }

    /// Whether there are many.
    pub(super) fn are_many(&self, now: Nanos) -> bool {
        self.0.iter().all(|place| is_recent(now, *place))
    }
}

fn is_recent(now: Nanos, place: Option<(u64, Nanos)>) -> bool {
    place.is_some_and(|(_, heard)| now.saturating_sub(heard) < SILENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_are_many_until_they_fall_silent() {
        let mut neighbours = Neighbours::default();
        for round in 0..3 {
            (0..4).for_each(|resolver| neighbours.note(round, resolver));
        }
        assert!(!neighbours.are_many(3));
        (4..9).for_each(|resolver| neighbours.note(3, resolver));
        assert!(neighbours.are_many(3));
        assert!(!neighbours.are_many(3 + SILENT));
        neighbours.note(3 + SILENT, 77);
        assert!(!neighbours.are_many(3 + SILENT));
    }
}
