//! The set of fields to extract from messages of one format, each with a slot.

use crate::message_type::Format;
use crate::path::Path;
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use thiserror::Error;

/// Most slots of one field set.
pub const SLOTS_MAX: usize = 1_024;

/// Index of an extracted field in a [`Row`](crate::row::Row).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub(crate) u16);

impl Slot {
    /// Index, below [`SLOTS_MAX`].
    pub fn index(self) -> usize {
        self.0.into()
    }
}

impl Display for Slot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A field to extract.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    pub(crate) path: Path,
    /// Extract all FIX or NVFIX fields with this tag instead of the first only.
    pub(crate) wants_all: bool,
}

/// Fields to extract from messages of one format, reference counted.
///
/// A [`Reader`](crate::reader::Reader) is built from a field set and must be rebuilt when the set
/// changes. Paths that the format cannot contain, such as `/a/b` in FIX, are allowed and never
/// present.
#[derive(Clone, Debug)]
pub struct FieldSet {
    format: Format,
    held: Vec<Option<SlotUse>>,
    slots: HashMap<Wanted, Slot>,
}

#[derive(Clone, Debug)]
struct SlotUse {
    wanted: Wanted,
    /// Acquisitions not yet released.
    references: u32,
}

/// All slots are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("filters, keys and views name more than 1024 fields: have fewer, or end some")]
pub struct TooManyFields;

impl FieldSet {
    /// An empty set for messages of `format`.
    pub fn new(format: impl Into<Format>) -> Self {
        Self { format: format.into(), held: Vec::new(), slots: HashMap::new() }
    }

    /// The format of the messages.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Acquires a slot for `path`, shared with earlier acquisitions of the same path.
    ///
    /// For repeated FIX and NVFIX fields the slot receives the first value only; for other formats
    /// all values of `path`.
    ///
    /// # Errors
    ///
    /// If all slots are in use.
    pub fn slot(&mut self, path: &Path) -> Result<Slot, TooManyFields> {
        self.acquire(path, false)
    }

    /// Acquires a slot for all values of `path`. Unlike [`FieldSet::slot`] it includes repeated FIX
    /// and NVFIX fields, so the reader has to scan such messages to their end.
    ///
    /// # Errors
    ///
    /// If all slots are in use.
    pub fn slot_for_all_values(&mut self, path: &Path) -> Result<Slot, TooManyFields> {
        use crate::message_type::MessageType::{Fix, Nvfix};
        self.acquire(path, matches!(self.format.message_type(), Fix | Nvfix))
    }

    fn acquire(&mut self, path: &Path, wants_all: bool) -> Result<Slot, TooManyFields> {
        let wanted = Wanted { path: path.clone(), wants_all };
        if let Some(slot) = self.slots.get(&wanted) {
            let held = self.held[slot.index()].as_mut().expect("a slot that has a name is held");
            held.references += 1;
            return Ok(*slot);
        }
        // The lowest free slot keeps rows short.
        let free = self.held.iter().position(Option::is_none).unwrap_or(self.held.len());
        if free == SLOTS_MAX {
            return Err(TooManyFields);
        }
        if free == self.held.len() {
            self.held.push(None);
        }
        let slot = Slot(free as u16);
        self.slots.insert(wanted.clone(), slot);
        self.held[free] = Some(SlotUse { wanted, references: 1 });
        Ok(slot)
    }

    /// Releases one acquisition of `slot`. After the last one the slot can be reused for another
    /// path.
    pub fn release(&mut self, slot: Slot) {
        let Some(place) = self.held.get_mut(slot.index()) else { return };
        let Some(held) = place else { return };
        held.references -= 1;
        if held.references == 0 {
            self.slots.remove(&held.wanted);
            *place = None;
        }
    }

    /// One more than the highest slot in use.
    pub fn len(&self) -> usize {
        self.held.iter().rposition(Option::is_some).map_or(0, |last| last + 1)
    }

    /// Whether no field is in use.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The path of `slot`, if it is in use.
    pub fn path(&self, slot: Slot) -> Option<&Path> {
        Some(&self.held.get(slot.index())?.as_ref()?.wanted.path)
    }

    /// All fields in use, by slot.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (Slot, &Wanted)> {
        let held = self.held.iter().enumerate();
        held.filter_map(|(index, held)| Some((Slot(index as u16), &held.as_ref()?.wanted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_type::MessageType;

    fn path(text: &str) -> Path {
        text.parse().expect(text)
    }

    #[test]
    fn one_path_has_one_slot_however_it_is_spelt() {
        let mut fields = FieldSet::new(MessageType::Xml);
        let one = fields.slot(&path("/FIXML/Order@Sym")).expect("room");
        assert_eq!(fields.slot(&path("/FIXML/Order/@Sym")), Ok(one));
        assert_eq!(fields.slot_for_all_values(&path("/FIXML/Order/@Sym")), Ok(one));
        assert_ne!(fields.slot(&path("/FIXML/Order")), Ok(one));
        assert_eq!((fields.len(), fields.is_empty()), (2, false));
        assert_eq!(fields.path(one), Some(&path("/FIXML/Order/@Sym")));
    }

    #[test]
    fn the_first_field_of_fix_and_all_of_a_tag_differ() {
        let mut fields = FieldSet::new(MessageType::Fix);
        let first = fields.slot(&path("/448")).expect("room");
        let every = fields.slot_for_all_values(&path("/448")).expect("room");
        assert_ne!(first, every);
        assert_eq!(fields.path(first), fields.path(every));
    }

    #[test]
    fn released_slots_are_given_again() {
        let mut fields = FieldSet::new(MessageType::Json);
        let slots: Vec<_> =
            (0..SLOTS_MAX).map(|n| fields.slot(&path(&format!("/a{n}"))).expect("room")).collect();
        assert_eq!(fields.slot(&path("/b")), Err(TooManyFields));
        assert_eq!(fields.slot(&path("/a3")), Ok(slots[3]));
        fields.release(slots[3]);
        assert_eq!(fields.slot(&path("/b")), Err(TooManyFields), "it was asked for twice");
        fields.release(slots[3]);
        assert_eq!(fields.path(slots[3]), None);
        assert_eq!(fields.slot(&path("/b")), Ok(slots[3]));
        fields.release(*slots.last().expect("some"));
        assert_eq!(fields.len(), SLOTS_MAX - 1);
    }
}
