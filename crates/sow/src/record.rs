//! The last message of a key.

use crate::key::{Identity, Key};
use std::fmt::{self, Debug, Formatter};
use triomphe::ThinArc;

/// The last message of a key. A copy of it shares the bytes.
///
/// All that there is of it lies in one piece, behind one pointer: one record of a million is in no
/// cache, and each further piece would be another wait for memory.
#[derive(Clone)]
pub struct Record(ThinArc<Header, u8>);

/// What a record is, but for its message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) identity: Identity,
    pub(crate) key: Key,
    pub(crate) sequence: u64,
    pub(crate) expires_ns: u64,
    /// How many bytes behind the message are the key that its publisher has supplied.
    name_bytes: u32,
}

/// When records expire that do not.
pub(crate) const NEVER: u64 = u64::MAX;

impl Header {
    pub(crate) const fn new(identity: Identity, key: Key, sequence: u64, expires_ns: u64) -> Self {
        Self { identity, key, sequence, expires_ns, name_bytes: 0 }
    }
}

impl Record {
    /// A record; `name` is the key that its publisher has supplied, or empty.
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

    /// The message.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.parts().0
    }

    /// The record's number within its topic.
    pub fn key(&self) -> Key {
        self.header().key
    }

    /// The key that its publisher has supplied, in topics where they do.
    pub fn name(&self) -> Option<&str> {
        str::from_utf8(self.parts().1).ok().filter(|name| !name.is_empty())
    }

    /// The number of the topic's change that made it what it is.
    pub fn sequence(&self) -> u64 {
        self.header().sequence
    }

    /// When it expires, if it does, in nanoseconds since 1970.
    pub fn expires_ns(&self) -> Option<u64> {
        Some(self.header().expires_ns).filter(|expires_ns| *expires_ns != NEVER)
    }

    /// Another version of it.
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
