//! The last message of a key. Clones share the bytes.

use crate::key::{Identity, Key};
use std::fmt::{self, Debug, Formatter};
use triomphe::ThinArc;

/// The last message of a key. Clones share the bytes.
///
/// Header, message and name share one allocation: in a topic of a million records each further
/// pointer would be another cache miss.
#[derive(Clone)]
pub struct Record(ThinArc<Header, u8>);

/// Header of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) identity: Identity,
    pub(crate) key: Key,
    pub(crate) sequence: u64,
    pub(crate) expires_ns: u64,
    /// Length of the publisher's key, which follows the message.
    name_bytes: u32,
}

/// Expiry time of records without a lifetime.
pub(crate) const NEVER: u64 = u64::MAX;

impl Header {
    pub(crate) const fn new(identity: Identity, key: Key, sequence: u64, expires_ns: u64) -> Self {
        Self { identity, key, sequence, expires_ns, name_bytes: 0 }
    }
}

impl Record {
    /// A record; `name` is the key supplied by its publisher, or empty.
    #[inline]
    pub(crate) fn new(header: Header, bytes: &[u8], name: &str) -> Self {
        if name.is_empty() {
            return Self(ThinArc::from_header_and_slice(header, bytes));
        }
        let header = Header { name_bytes: name.len() as u32, ..header };
        Self(ThinArc::from_header_and_slice(header, &[bytes, name.as_bytes()].concat()))
    }

    #[inline]
    fn header(&self) -> &Header {
        &self.0.header.header
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        let all = &self.0.slice;
        all.split_at(all.len() - self.header().name_bytes as usize)
    }

    /// Payload.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.parts().0
    }

    /// Key within the topic.
    pub fn key(&self) -> Key {
        self.header().key
    }

    /// Key supplied by the publisher, in topics without key fields.
    pub fn name(&self) -> Option<&str> {
        str::from_utf8(self.parts().1).ok().filter(|name| !name.is_empty())
    }

    /// Sequence of the change that made this version.
    pub fn sequence(&self) -> u64 {
        self.header().sequence
    }

    /// Expiry time in nanoseconds since 1970; `None` if it does not expire.
    pub fn expires_ns(&self) -> Option<u64> {
        Some(self.header().expires_ns).filter(|expires_ns| *expires_ns != NEVER)
    }

    /// The next version, with other bytes.
    pub(crate) fn renewed(&self, bytes: &[u8], sequence: u64) -> Self {
        let header = Header { sequence, ..*self.header() };
        Self::new(header, bytes, self.name().unwrap_or_default())
    }

    #[inline]
    pub(crate) fn identity(&self) -> Identity {
        self.header().identity
    }
}

impl Debug for Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let message = String::from_utf8_lossy(self.bytes());
        f.debug_struct("Record")
            .field("header", self.header())
            .field("name", &self.name())
            .field("bytes", &message)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_and_its_name_are_told_apart() {
        let identity = Identity { checksum: 1, proof: 2 };
        let header = Header::new(identity, Key(3), 4, NEVER);
        for (bytes, name) in [("message", "name"), ("message", ""), ("", "name"), ("", "")] {
            let record = Record::new(header, bytes.as_bytes(), name);
            assert_eq!(record.bytes(), bytes.as_bytes());
            assert_eq!(record.name().unwrap_or_default(), name);
            let renewed = record.renewed(b"another", 5);
            assert_eq!((renewed.bytes(), renewed.sequence()), (&b"another"[..], 5));
            assert_eq!((renewed.name(), renewed.key()), (record.name(), Key(3)));
        }
        assert_eq!(size_of::<Option<Record>>(), size_of::<usize>());
    }
}
