//! Predicted member names: the names of the previous message, in order.

use crate::fields::Slot;
use crate::path_trie::{NO_NODE, NodeId};

/// Bytes compared: the name with its closing quote and colon.
const LENGTH: usize = size_of::<u128>();

/// Predicted name at one position, with its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredictedField {
    /// Name, quote and colon, and the mask of their bytes.
    text: u128,
    mask: u128,
    /// Trie node of the containing object.
    parent: NodeId,
    target: NameTarget,
}

/// Target of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NameTarget {
    /// Trie node of the name.
    pub(super) node: NodeId,
    /// Slot for scalar values, if nothing else is wanted of the name.
    pub(super) slot: Option<Slot>,
}

impl PredictedField {
    /// Prediction that matches no name.
    pub(super) const NEVER: Self = Self {
        // A text under a mask of 0 is 0 and never 1.
        text: 1,
        mask: 0,
        parent: NO_NODE,
        target: NameTarget { node: NO_NODE, slot: None },
    };

    /// Predicts the unescaped name from `start` to `end` at this position in an object of the same
    /// node.
    pub(super) fn new(
        bytes: &[u8],
        (start, end): (usize, usize),
        parent: NodeId,
        target: NameTarget,
    ) -> Self {
        match text_at(bytes, start) {
            // Quote and colon belong to the prediction: one comparison checks name, end and syntax.
            Some(text) if end + 2 - start <= LENGTH && bytes.get(end + 1) == Some(&b':') => {
                // The length is between 2 and 16, so the shift is less than 128.
                let mask = u128::MAX >> (8 * (LENGTH - (end + 2 - start)));
                Self { text: text & mask, mask, parent, target }
            }
            _ => Self::NEVER,
        }
    }

    /// Target of the name at `start`, if the prediction is right.
    #[inline(always)]
    pub(super) fn find(&self, bytes: &[u8], start: usize, parent: NodeId) -> Option<NameTarget> {
        // Names in the last bytes of a message have no 16 bytes to load and are looked up.
        let text = text_at(bytes, start)?;
        // The same name means another field in another object, hence the parent.
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
    fn a_prediction_matches_its_own_name_alone() {
        let target = NameTarget { node: ROOT, slot: Some(Slot(7)) };
        let message = |name: &str| format!("{name}\":1234567890123456").into_bytes();
        for name in ["", "a", "Symbol", "OrderQty", "fourteen bytes"] {
            let bytes = message(name);
            let prediction = PredictedField::new(&bytes, (0, name.len()), ROOT, target);
            assert_eq!(prediction.find(&bytes, 0, ROOT), Some(target));
            assert_eq!(prediction.find(&bytes, 0, NO_NODE), None);
            assert_eq!(prediction.find(&bytes[..15], 0, ROOT), None, "too little");
            for other in ["b", "Symbo", "Symbols", "fourteen byte", "fourteen bytes!", "\\"] {
                assert_eq!(prediction.find(&message(other), 0, ROOT), None, "{other}");
            }
        }
        let bytes = message("fifteen bytes!!");
        assert_eq!(PredictedField::new(&bytes, (0, 15), ROOT, target).find(&bytes, 0, ROOT), None);
        assert_eq!(PredictedField::NEVER.find(&bytes, 0, NO_NODE), None);
    }
}
