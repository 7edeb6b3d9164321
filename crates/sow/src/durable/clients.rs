//! Last sequences of clients.

use std::collections::HashMap;

/// Last sequence of each client, by name.
pub(crate) type Clients = HashMap<Box<str>, ClientSequence>;

/// Last sequence of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientSequence {
    /// The sequence.
    pub sequence: u64,
    /// Time of it, in nanoseconds since 1970; 0 if unknown.
    pub unix_ns: u64,
}

impl ClientSequence {
    /// Raises the sequence and time.
    pub(crate) fn advance(&mut self, sequence: u64, unix_ns: u64) {
        self.sequence = self.sequence.max(sequence);
        self.unix_ns = self.unix_ns.max(unix_ns);
    }
}
