//! Filters that share one key, or have none.

use super::access_path::{RangeCondition, RangeMode};
use super::key::Key;
use super::ordinal;
use super::range_index::RangeIndex;
use super::target::Target;
use crate::fields::Slot;
use crate::message::Message;
use smallvec::SmallVec;

/// A bucket of filters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    /// Key and slot; `None` for the bucket without key.
    pub(crate) key: Option<(Key, Slot)>,
    /// Targets without further conditions.
    unconditional: Vec<u32>,
    /// Targets with a range on another field.
    ranges: SmallVec<[Ranged; 1]>,
    /// Targets with a residual condition, ordered by its number.
    residual: Vec<(u32, Target)>,
}

#[derive(Clone, Debug)]
struct Ranged {
    slot: Slot,
    mode: RangeMode,
    ranges: RangeIndex,
}

/// Position of a target in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketPosition {
    Unconditional,
    Range(RangeCondition),
    Residual(u32),
}

impl Bucket {
    /// An empty bucket for `key`.
    pub(crate) fn of(key: Key, slot: Slot) -> Self {
        Self { key: Some((key, slot)), ..Self::default() }
    }

    pub(crate) fn insert(&mut self, place: BucketPosition, target: Target) {
        match place {
            BucketPosition::Unconditional => self.unconditional.push(target.0),
            BucketPosition::Range(limits) => {
                // Usually one field per bucket has ranges, so a linear search suffices.
                let at = self.position(limits).unwrap_or_else(|| {
                    let RangeCondition { slot, mode, .. } = limits;
                    self.ranges.push(Ranged { slot, mode, ranges: RangeIndex::default() });
                    self.ranges.len() - 1
                });
                self.ranges[at].ranges.insert(limits.range, target);
            }
            BucketPosition::Residual(residual) => {
                // Sorted insertion keeps equal residuals adjacent.
                let at = self.residual.partition_point(|other| *other < (residual, target));
                self.residual.insert(at, (residual, target));
            }
        }
    }

    pub(crate) fn remove(&mut self, place: BucketPosition, target: Target) {
        match place {
            BucketPosition::Unconditional => {
                if let Some(at) = self.unconditional.iter().position(|other| *other == target.0) {
                    // The order of unconditional targets is free.
                    self.unconditional.swap_remove(at);
                }
            }
            BucketPosition::Range(limits) => {
                let Some(at) = self.position(limits) else { return };
                self.ranges[at].ranges.remove(limits.range, target);
                // Empty ranges go, because a match would still read the number of their field.
                if self.ranges[at].ranges.is_empty() {
                    self.ranges.swap_remove(at);
                }
            }
            BucketPosition::Residual(residual) => {
                // Equal pairs are interchangeable, so any of them may go.
                if let Ok(at) = self.residual.binary_search(&(residual, target)) {
                    self.residual.remove(at);
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unconditional.is_empty() && self.ranges.is_empty() && self.residual.is_empty()
    }

    /// Targets with a residual condition.
    pub(crate) fn residual_targets(&self) -> impl Iterator<Item = Target> {
        self.residual.iter().map(|(_, target)| *target)
    }

    fn position(&self, limits: RangeCondition) -> Option<usize> {
        let is_alike = |ranged: &Ranged| (ranged.slot, ranged.mode) == (limits.slot, limits.mode);
        self.ranges.iter().position(is_alike)
    }

    /// Adds the targets that `message` satisfies to `found`; `holds` evaluates a residual
    /// condition. Returns whether targets may repeat.
    #[inline]
    pub(crate) fn find(
        &self,
        message: &Message<'_>,
        mut holds: impl FnMut(u32) -> bool,
        found: &mut Vec<u32>,
    ) -> bool {
        // Unconditional targets are copied as one block, without a test for each.
        found.extend_from_slice(&self.unconditional);
        let mut repeats = false;
        for ranged in &self.ranges {
            repeats |= ranged.find(message, found);
        }
        let mut left = &*self.residual;
        while let Some(&(residual, _)) = left.first() {
            // Filters with equal residual conditions are adjacent: one evaluation serves all.
            let length = left.iter().take_while(|(other, _)| *other == residual).count();
            let (same, others) = left.split_at(length);
            if holds(residual) {
                found.extend(same.iter().map(|(_, target)| target.0));
            }
            left = others;
        }
        repeats
    }
}

impl Ranged {
    #[inline]
    fn find(&self, message: &Message<'_>, found: &mut Vec<u32>) -> bool {
        // The row parses the number once for all buckets with ranges on this field.
        let place = match message.row.only_number(self.slot, message.bytes) {
            Some(number) => ordinal::of_number(number),
            None if message.row.has_several(self.slot) => {
                return self.find_several(message, found);
            }
            None => ordinal::of_value(message.row.value(self.slot, message.bytes), None),
        };
        if let Some(place) = place {
            // One number is a range of length 0.
            self.ranges.find(place, place, found);
        }
        false
    }

    #[cold]
    fn find_several(&self, message: &Message<'_>, found: &mut Vec<u32>) -> bool {
        let values = message.row.values(self.slot, message.bytes);
        let places = values.filter_map(|value| ordinal::of_value(value, value.number()));
        if self.mode == RangeMode::Within {
            // Each value selects on its own, so one target may be found twice.
            places.for_each(|place| self.ranges.find(place, place, found));
            return true;
        }
        // One value above the lower end and another below the upper end: the extremes decide.
        let ends = places.fold(None, |ends: Option<(u64, u64)>, place| match ends {
            Some((least, most)) => Some((least.min(place), most.max(place))),
            None => Some((place, place)),
        });
        if let Some((least, most)) = ends {
            self.ranges.find(least, most, found);
        }
        false
    }
}
