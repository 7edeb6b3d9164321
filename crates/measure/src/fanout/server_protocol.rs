//! Protocols of servers.

use super::load::{Load, Order};
use std::io;

/// Result of parsing a server's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParsedBytes {
    /// Bytes of complete frames.
    pub used: usize,
    /// Acknowledgements: a subscriber is ready after its first one.
    pub answers: u64,
}

/// Encoder and parser of a server's protocol, for publishing and subscribing.
pub trait ServerProtocol: Sync {
    /// The server's name.
    fn name(&self) -> &'static str;

    /// Appends the first bytes of a publisher.
    fn logon(&self, out: &mut Vec<u8>);

    /// Appends a subscribe command that asks for an acknowledgement.
    fn subscribe(&self, load: &Load, subscriber: usize, out: &mut Vec<u8>);

    /// Appends a publish command with an order; returns the position of the order's bytes.
    fn publish(&self, load: &Load, order: &Order, out: &mut Vec<u8>) -> usize;

    /// Parses received bytes and passes each order to `each`.
    ///
    /// # Errors
    /// If the server complains, or says what it should not.
    fn split(&self, bytes: &[u8], each: impl FnMut(&[u8])) -> io::Result<ParsedBytes>;
}
