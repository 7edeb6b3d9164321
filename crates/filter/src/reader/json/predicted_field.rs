//! Names that are foreseen: those of the last message, in their order.

use crate::fields::Slot;
use crate::path_trie::{NO_NODE, NodeId};

/// Bytes of a name that are compared, with the quote and the colon behind it.
const LENGTH: usize = size_of::<u128>();

/// A name that a member of the last message had, and what is wanted of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredictedField {
    /// The name with the quote and the colon behind it, and which bytes those are.
    text: u128,
    mask: u128,
    /// What the object was that has it.
    parent: NodeId,
    target: NameTarget,
}

/// What is wanted of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NameTarget {
    /// Where it leads.
    pub(super) node: NodeId,
    /// Who takes a value that is neither object nor array, if that is all there is to know.
    pub(super) slot: Option<Slot>,
}

impl PredictedField {
    /// Fits no name.
    pub(super) const NEVER: Self = Self {
        text: 1,
        mask: 0,
        parent: NO_NODE,
        target: NameTarget { node: NO_NODE, slot: None },
    };

    /// That the next message has in the same place the name that stands from `start` to `end` and
    /// has no escapes, in an object of the same kind.
    pub(super) fn new(
        bytes: &[u8],
        (start, end): (usize, usize),
        parent: NodeId,
        target: NameTarget,
    ) -> Self {
        match text_at(bytes, start) {
            Some(text) if end + 2 - start <= LENGTH && bytes.get(end + 1) == Some(&b':') => {
                let mask = u128::MAX >> (8 * (LENGTH - (end + 2 - start)));
                Self { text: text & mask, mask, parent, target }
            }
            _ => Self::NEVER,
        }
    }

    /// What is wanted of the name that stands at `start`, if it is this one.
    #[inline(always)]
    pub(super) fn find(&self, bytes: &[u8], start: usize, parent: NodeId) -> Option<NameTarget> {
        let text = text_at(bytes, start)?;
        (text & self.mask == self.text && self.parent == parent).then_some(self.target)
    }
}

#[inline(always)]
fn text_at(bytes: &[u8], start: usize) -> Option<u128> {
    bytes.get(start..start + LENGTH)?.first_chunk().map(|text| u128::from_le_bytes(*text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_trie::ROOT;

    #[test]
    fn a_guess_fits_its_own_name_alone() {
        let target = NameTarget { node: ROOT, slot: Some(Slot(7)) };
        let message = |name: &str| format!("{name}\":1234567890123456").into_bytes();
        for name in ["", "a", "Symbol", "OrderQty", "fourteen bytes"] {
            let bytes = message(name);
            let guess = PredictedField::new(&bytes, (0, name.len()), ROOT, target);
            assert_eq!(guess.find(&bytes, 0, ROOT), Some(target));
            assert_eq!(guess.find(&bytes, 0, NO_NODE), None);
            assert_eq!(guess.find(&bytes[..15], 0, ROOT), None, "too little");
            for other in ["b", "Symbo", "Symbols", "fourteen byte", "fourteen bytes!", "\\"] {
                assert_eq!(guess.find(&message(other), 0, ROOT), None, "{other}");
            }
        }
        let bytes = message("fifteen bytes!!");
        assert_eq!(PredictedField::new(&bytes, (0, 15), ROOT, target).find(&bytes, 0, ROOT), None);
        assert_eq!(PredictedField::NEVER.find(&bytes, 0, NO_NODE), None);
    }
}
