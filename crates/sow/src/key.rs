//! Keys of records, hashed from the topic's name and the key values.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::fmt::{self, Display, Formatter};
use std::hash::Hasher;

/// The longest key that a publisher may supply, in bytes. Records keep it, while key fields are
/// only hashed.
pub const KEY_BYTES_MAX: usize = 4 << 10;

/// Key of a record within its topic. It prints in decimal.
///
/// A 64-bit hash of the topic's name and the key values, so it is the same after a restart. On a
/// collision the later record gets the next free key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

impl Display for Key {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 128-bit hash of the key values, taken as their identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// First half: the record's key, unless it is taken.
    pub(crate) checksum: u64,
    pub(crate) proof: u64,
}

/// Hashes key values.
#[derive(Clone, Debug)]
pub(crate) struct KeyHasher(SipHasher13);

impl KeyHasher {
    /// A hasher for a topic.
    pub(crate) fn new(topic: &str) -> Self {
        Self(SipHasher13::new()).with(topic.as_bytes())
    }

    /// Adds a value.
    pub(crate) fn with(mut self, value: &[u8]) -> Self {
        self.add(value);
        self
    }

    /// Adds a value. The length goes first, so that ("a", "bc") differs from ("ab", "c").
    #[inline]
    pub(crate) fn add(&mut self, value: &[u8]) {
        self.0.write(&(value.len() as u64).to_le_bytes());
        self.0.write(value);
    }

    #[inline]
    pub(crate) fn identity(&self) -> Identity {
        let hasher = self.0.finish128();
        Identity { checksum: hasher.h1, proof: hasher.h2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_tell_topics_and_values_apart_and_never_change() {
        let identity = |topic: &str, values: &[&[u8]]| {
            values.iter().fold(KeyHasher::new(topic), |hasher, value| hasher.with(value)).identity()
        };
        let one = identity("orders", &[b"1", b"23"]);
        assert_eq!(one, identity("orders", &[b"1", b"23"]));
        assert_ne!(one, identity("orders", &[b"12", b"3"]));
        assert_ne!(one, identity("trades", &[b"1", b"23"]));
        assert_eq!(Key(one.checksum).to_string(), "3310812846591964825");
    }
}
