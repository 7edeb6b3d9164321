//! Last sequences of clients.

use std::collections::HashMap;

/// Clients that have numbered their messages, by name.
pub(crate) type Clients = HashMap<Box<str>, ClientSequence>;

/// The last number of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientSequence {
    /// The number.
    pub sequence: u64,
    /// When it was given, in nanoseconds since 1970; 0 if that is not known.
    pub unix_ns: u64,
}

impl ClientSequence {
    /// The client gave this number as well.
    pub(crate) fn advance(&mut self, sequence: u64, unix_ns: u64) {
        self.sequence = self.sequence.max(sequence);
        self.unix_ns = self.unix_ns.max(unix_ns);
    }
}
