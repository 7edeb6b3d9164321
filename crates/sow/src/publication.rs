//! A published message.

use std::time::Duration;

/// A published message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publication<'a> {
    /// Payload.
    pub bytes: &'a [u8],
    /// Key, in topics without key fields; at most [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX).
    pub key: Option<&'a str>,
    /// Lifetime of the record, in place of the topic's default.
    pub lifetime: Option<Duration>,
    /// Name of the publisher.
    pub client: &'a str,
    /// Publisher's name and sequence for it. A durable topic stores the last sequence of each name,
    /// to detect duplicates.
    pub client_sequence: Option<(&'a str, u64)>,
}

impl<'a> Publication<'a> {
    /// A publication with a payload only.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, ..Self::default() }
    }
}
