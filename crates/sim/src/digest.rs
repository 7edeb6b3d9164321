//! Digest of a state that an exploration knows again.

use foldhash::quality::FixedState;
use std::fmt::{Debug, Write};
use std::hash::{BuildHasher, Hash, Hasher};

/// Digest of the whole text of `state`. Hashed in one piece: a hasher that is fed each of the
/// formatter's small pieces costs more than the formatting.
pub(crate) fn digest(state: &impl Debug) -> u64 {
    let mut text = String::new();
    write!(text, "{state:?}").expect("a string takes all text");
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Digest of a state that is made of digests and a few values.
pub(crate) fn hash(state: &impl Hash) -> u64 {
    FixedState::default().hash_one(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_different_byte_is_another_state() {
        let state = |last: u8| (7_u64, vec![0_u8; 300], Some("text"), last);
        assert_eq!(digest(&state(1)), digest(&state(1)));
        assert_ne!(digest(&state(1)), digest(&state(2)));
    }
}
