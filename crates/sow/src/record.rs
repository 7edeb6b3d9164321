//! The last message of a key.

use crate::key::{Identity, Key};
use std::sync::Arc;

/// The last message of a key. A copy of it shares the bytes.
#[derive(Clone, Debug)]
pub struct Record {
    bytes: Arc<[u8]>,
    name: Option<Arc<str>>,
    key: Key,
    identity: Identity,
    sequence: u64,
    expires_ns: u64,
}

/// When records expire that do not.
pub(crate) const NEVER: u64 = u64::MAX;

impl Record {
    pub(crate) fn new(
        bytes: Arc<[u8]>,
        name: Option<Arc<str>>,
        key: Key,
        identity: Identity,
        sequence: u64,
        expires_ns: u64,
    ) -> Self {
        Self { bytes, name, key, identity, sequence, expires_ns }
    }

    /// The message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The message, to be kept without being copied.
    pub fn shared_bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// The record's number within its topic.
    pub fn key(&self) -> Key {
        self.key
    }

    /// The key that its publisher has supplied, in topics where they do.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The number of the topic's change that made it what it is.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When it expires, if it does, in nanoseconds since 1970.
    pub fn expires_ns(&self) -> Option<u64> {
        Some(self.expires_ns).filter(|expires_ns| *expires_ns != NEVER)
    }

    /// The same, as it was before a restart.
    pub(crate) fn restored(self, sequence: u64, expires_ns: u64) -> Self {
        Self { sequence, expires_ns, ..self }
    }

    /// Another version of it.
    pub(crate) fn renewed(&self, bytes: Arc<[u8]>, sequence: u64) -> Self {
        Self { bytes, name: self.name.clone(), sequence, ..*self }
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }
}
