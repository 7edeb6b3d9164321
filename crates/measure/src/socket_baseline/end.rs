//! What the experiments ask of a socket.

use std::io;
use std::time::Duration;

/// A receive that sleeps wakes up so often, to look whether it is over.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// One of two ends.
pub(super) trait SocketEnd: Send {
    /// Hands `bytes`, whole messages one behind the other, to the system; returns how many of
    /// the bytes it took, which may be none if it has no room now.
    fn send(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Gives what has come, whole messages one behind the other, to `each`; whether there was
    /// any. Sleeps until there is some, if that is how it waits, for [`LONGEST_SLEEP`] at most.
    fn receive(&mut self, each: impl FnMut(&[u8])) -> io::Result<bool>;

    /// How much may wait for the receiver, in bytes.
    fn room_bytes(&self) -> usize;

    /// How many messages may be under way without being lost.
    fn window(&self) -> u64;
}

/// What is no error of the experiment: no room, nothing there, a call cut short.
pub(super) fn unless_busy(result: io::Result<usize>) -> io::Result<usize> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    match result {
        Err(error) if matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused) => Ok(0),
        other => other,
    }
}
