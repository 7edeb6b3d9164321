//! What is published.

use std::time::Duration;

/// A message that is published.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publication<'a> {
    /// The message.
    pub bytes: &'a [u8],
    /// Its key, in topics whose publishers supply keys.
    pub key: Option<&'a str>,
    /// How long its record lives, if not as long as the topic says.
    pub lifetime: Option<Duration>,
    /// Who publishes it.
    pub client: &'a str,
    /// Its publisher's own number of it, which a durable topic remembers by this name.
    pub client_sequence: Option<(&'a str, u64)>,
}

impl<'a> Publication<'a> {
    /// A message and nothing else.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, ..Self::default() }
    }
}
