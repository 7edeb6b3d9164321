//! The fields of a format that somebody wants, each with a slot.

use crate::message_type::Format;
use crate::path::Path;
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use thiserror::Error;

/// Slots that one registry hands out.
pub const SLOTS_MAX: usize = 1_024;

/// The number of a wanted field: where a [`Row`](crate::row::Row) keeps what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub(crate) u16);

impl Slot {
    /// Its number, below [`SLOTS_MAX`].
    pub fn index(self) -> usize {
        self.0.into()
    }
}

impl Display for Slot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// What somebody wants to know of each message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    pub(crate) path: Path,
    /// Whether all fields of one tag are wanted, where otherwise only the first is.
    pub(crate) wants_all: bool,
}

/// The wanted fields of one format.
///
/// A [`Reader`](crate::reader::Reader) is made of it, and has to be made anew when it changes.
/// Paths that the format cannot have, such as `/a/b` in FIX, are allowed, and never present.
#[derive(Clone, Debug)]
pub struct FieldSet {
    format: Format,
    held: Vec<Option<SlotUse>>,
    slots: HashMap<Wanted, Slot>,
}

#[derive(Clone, Debug)]
struct SlotUse {
    wanted: Wanted,
    /// How often it was asked for and not yet released.
    references: u32,
}

/// There is no room for another field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("filters, keys and views name more than 1024 fields: have fewer, or end some")]
pub struct TooManyFields;

impl FieldSet {
    /// A registry for messages of `format`, empty.
    pub fn new(format: impl Into<Format>) -> Self {
        Self { format: format.into(), held: Vec::new(), slots: HashMap::new() }
    }

    /// What messages are written in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The slot of `path`, a new one if it has none yet.
    ///
    /// Of several FIX or NVFIX fields with the same name this means the first; of all other
    /// formats, whatever `path` leads to.
    ///
    /// # Errors
    ///
    /// If all slots are taken.
    pub fn slot(&mut self, path: &Path) -> Result<Slot, TooManyFields> {
        self.acquire(path, false)
    }

    /// The slot for all values of `path`: other than [`FieldSet::slot`] also of repeated FIX and
    /// NVFIX fields. The reader then never stops before the end of such a message.
    ///
    /// # Errors
    ///
    /// If all slots are taken.
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

    /// Takes one asking for `slot` back. When all are, the slot may go to another path.
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

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The path of `slot`, if it is in use.
    pub fn path(&self, slot: Slot) -> Option<&Path> {
        Some(&self.held.get(slot.index())?.as_ref()?.wanted.path)
    }

    /// Everything wanted, by slot.
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
