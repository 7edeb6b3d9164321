//! The filters behind one key, or behind none.

use super::key::Key;
use super::order;
use super::ranges::Ranges;
use super::target::Target;
use super::way::{Form, Limits};
use crate::fields::Slot;
use crate::message::Message;
use smallvec::SmallVec;

/// Filters that are found at one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    /// The key that leads here, of the field in the slot.
    pub(crate) key: Option<(Key, Slot)>,
    /// Those that ask for nothing else.
    always: Vec<u32>,
    /// Those that ask for another field to be in a range.
    ranges: SmallVec<[Ranged; 1]>,
    /// Those that ask for something else, by the number of that residual condition.
    rest: Vec<(u32, Target)>,
}

#[derive(Clone, Debug)]
struct Ranged {
    slot: Slot,
    form: Form,
    ranges: Ranges,
}

/// Where in a bucket a filter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Always,
    Range(Limits),
    Rest(u32),
}

impl Bucket {
    /// An empty bucket for `key`.
    pub(crate) fn of(key: Key, slot: Slot) -> Self {
        Self { key: Some((key, slot)), ..Self::default() }
    }

    pub(crate) fn insert(&mut self, place: Place, target: Target) {
        match place {
            Place::Always => self.always.push(target.0),
            Place::Range(limits) => {
                let at = self.position(limits).unwrap_or_else(|| {
                    let Limits { slot, form, .. } = limits;
                    self.ranges.push(Ranged { slot, form, ranges: Ranges::default() });
                    self.ranges.len() - 1
                });
                self.ranges[at].ranges.insert(limits.range, target);
            }
            Place::Rest(residual) => {
                let at = self.rest.partition_point(|other| *other < (residual, target));
                self.rest.insert(at, (residual, target));
            }
        }
    }

    pub(crate) fn remove(&mut self, place: Place, target: Target) {
        match place {
            Place::Always => {
                if let Some(at) = self.always.iter().position(|other| *other == target.0) {
                    self.always.swap_remove(at);
                }
            }
            Place::Range(limits) => {
                let Some(at) = self.position(limits) else { return };
                self.ranges[at].ranges.remove(limits.range, target);
                if self.ranges[at].ranges.is_empty() {
                    self.ranges.swap_remove(at);
                }
            }
            Place::Rest(residual) => {
                if let Ok(at) = self.rest.binary_search(&(residual, target)) {
                    self.rest.remove(at);
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.always.is_empty() && self.ranges.is_empty() && self.rest.is_empty()
    }

    /// The targets that are found by evaluating a residual condition.
    pub(crate) fn rest(&self) -> impl Iterator<Item = Target> {
        self.rest.iter().map(|(_, target)| *target)
    }

    fn position(&self, limits: Limits) -> Option<usize> {
        let is_alike = |ranged: &Ranged| (ranged.slot, ranged.form) == (limits.slot, limits.form);
        self.ranges.iter().position(is_alike)
    }

    /// Adds the targets of those that `message` satisfies to `found`, where `holds` says of a
    /// residual condition whether it does. Whether one may have come twice.
    #[inline]
    pub(crate) fn find(
        &self,
        message: &Message<'_>,
        mut holds: impl FnMut(u32) -> bool,
        found: &mut Vec<u32>,
    ) -> bool {
        found.extend_from_slice(&self.always);
        let mut repeats = false;
        for ranged in &self.ranges {
            repeats |= ranged.find(message, found);
        }
        let mut rest = &*self.rest;
        while let Some(&(residual, _)) = rest.first() {
            // Many filters have the same residual condition. It is evaluated once.
            let length = rest.iter().take_while(|(other, _)| *other == residual).count();
            let (same, others) = rest.split_at(length);
            if holds(residual) {
                found.extend(same.iter().map(|(_, target)| target.0));
            }
            rest = others;
        }
        repeats
    }
}

impl Ranged {
    #[inline]
    fn find(&self, message: &Message<'_>, found: &mut Vec<u32>) -> bool {
        let place = match message.row.only_number(self.slot, message.bytes) {
            Some(number) => order::of_number(number),
            None if message.row.has_several(self.slot) => {
                return self.find_several(message, found);
            }
            None => order::of_value(message.row.value(self.slot, message.bytes), None),
        };
        if let Some(place) = place {
            self.ranges.find(place, place, found);
        }
        false
    }

    #[cold]
    fn find_several(&self, message: &Message<'_>, found: &mut Vec<u32>) -> bool {
        let values = message.row.values(self.slot, message.bytes);
        let places = values.filter_map(|value| order::of_value(value, value.number()));
        if self.form == Form::Within {
            places.for_each(|place| self.ranges.find(place, place, found));
            return true;
        }
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
