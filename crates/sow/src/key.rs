//! Which record a message belongs to.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::fmt::{self, Display, Formatter};
use std::hash::Hasher;

/// The number of a record within its topic. It prints in decimal.
///
/// It is a checksum of the topic's name and the values of the key fields, so it is the same after a
/// restart. Where two records would have the same number, the later one has the next free number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

impl Display for Key {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What key values are, in place of them: two lists of values with one identity do not occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The key, if it is free.
    pub(crate) checksum: u64,
    pub(crate) proof: u64,
}

/// Makes identities out of key values.
#[derive(Clone, Debug)]
pub(crate) struct KeyHasher(SipHasher13);

impl KeyHasher {
    /// Starts with the topic's name.
    pub(crate) fn new(topic: &str) -> Self {
        Self(SipHasher13::new()).with(topic.as_bytes())
    }

    /// The same with a value more.
    pub(crate) fn with(mut self, value: &[u8]) -> Self {
        self.add(value);
        self
    }

    /// Adds a value. Its length is part of it, so that neighbours do not flow together.
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
