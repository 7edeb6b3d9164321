//! How a server is spoken to.

use super::load::{Load, Order};
use std::io;

/// What a server's bytes were taken apart into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParsedBytes {
    /// Bytes that were whole.
    pub used: usize,
    /// Answers among them: a subscriber is ready after its first.
    pub answers: u64,
}

/// A server's protocol, as far as publishing and subscribing take it.
pub trait ServerProtocol: Sync {
    /// The server's name.
    fn name(&self) -> &'static str;

    /// What a publisher says first.
    fn logon(&self, out: &mut Vec<u8>);

    /// What a subscriber says to get what it wants, and to get an answer.
    fn subscribe(&self, load: &Load, subscriber: usize, out: &mut Vec<u8>);

    /// Publishes an order: puts it behind `out`; where its own bytes begin.
    fn publish(&self, load: &Load, order: &Order, out: &mut Vec<u8>) -> usize;

    /// Takes apart what came, and hands over each order's bytes.
    ///
    /// # Errors
    /// If the server complains, or says what it should not.
    fn split(&self, bytes: &[u8], each: impl FnMut(&[u8])) -> io::Result<ParsedBytes>;
}
