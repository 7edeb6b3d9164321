//! Names that are foreseen: those of the last message, in their order.

use crate::fields::Slot;
use crate::tree::{NOWHERE, Node};

/// Bytes of a name that are compared, with the quote and the colon behind it.
const LENGTH: usize = size_of::<u128>();

/// A name that a member of the last message had, and what is wanted of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guess {
    /// The name with the quote and the colon behind it, and which bytes those are.
    text: u128,
    mask: u128,
    /// What the object was that has it.
    parent: Node,
    known: Known,
}

/// What is wanted of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    /// Where it leads.
    pub(super) node: Node,
    /// Who takes a value that is neither object nor array, if that is all there is to know.
    pub(super) slot: Option<Slot>,
}

impl Guess {
    /// Fits no name.
    pub(super) const NEVER: Self =
        Self { text: 1, mask: 0, parent: NOWHERE, known: Known { node: NOWHERE, slot: None } };

    /// That the next message has in the same place the name that stands from `start` to `end` and
    /// has no escapes, in an object of the same kind.
    pub(super) fn new(
        bytes: &[u8],
        (start, end): (usize, usize),
        parent: Node,
        known: Known,
    ) -> Self {
        match text_at(bytes, start) {
            Some(text) if end + 2 - start <= LENGTH && bytes.get(end + 1) == Some(&b':') => {
                let mask = u128::MAX >> (8 * (LENGTH - (end + 2 - start)));
                Self { text: text & mask, mask, parent, known }
            }
            _ => Self::NEVER,
        }
    }

    /// What is wanted of the name that stands at `start`, if it is this one.
    #[inline(always)]
    pub(super) fn find(&self, bytes: &[u8], start: usize, parent: Node) -> Option<Known> {
        let text = text_at(bytes, start)?;
        (text & self.mask == self.text && self.parent == parent).then_some(self.known)
    }
}

#[inline(always)]
fn text_at(bytes: &[u8], start: usize) -> Option<u128> {
    bytes.get(start..start + LENGTH)?.first_chunk().map(|text| u128::from_le_bytes(*text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::ROOT;

    #[test]
    fn a_guess_fits_its_own_name_alone() {
        let known = Known { node: ROOT, slot: Some(Slot(7)) };
        let message = |name: &str| format!("{name}\":1234567890123456").into_bytes();
        for name in ["", "a", "Symbol", "OrderQty", "fourteen bytes"] {
            let bytes = message(name);
            let guess = Guess::new(&bytes, (0, name.len()), ROOT, known);
            assert_eq!(guess.find(&bytes, 0, ROOT), Some(known));
            assert_eq!(guess.find(&bytes, 0, NOWHERE), None);
            assert_eq!(guess.find(&bytes[..15], 0, ROOT), None, "too little");
            for other in ["b", "Symbo", "Symbols", "fourteen byte", "fourteen bytes!", "\\"] {
                assert_eq!(guess.find(&message(other), 0, ROOT), None, "{other}");
            }
        }
        let bytes = message("fifteen bytes!!");
        assert_eq!(Guess::new(&bytes, (0, 15), ROOT, known).find(&bytes, 0, ROOT), None);
        assert_eq!(Guess::NEVER.find(&bytes, 0, NOWHERE), None);
    }
}
