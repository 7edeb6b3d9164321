//! Interface of the experiments to sockets.

use std::io;
use std::time::Duration;

/// Longest sleep of a receive, between checks for the end.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// One of two ends.
pub(super) trait SocketEnd: Send {
    /// Sends `bytes`, whole messages one behind the other; returns the number of bytes the system
    /// took, 0 if it has no space.
    fn send(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Passes received bytes, whole messages one behind the other, to `each`; true if there were
    /// any. A sleeping end waits for [`LONGEST_SLEEP`] at most.
    fn receive(&mut self, each: impl FnMut(&[u8])) -> io::Result<bool>;

    /// Size of the receiver's buffer, in bytes.
    fn room_bytes(&self) -> usize;

    /// Most messages in flight without loss.
    fn window(&self) -> u64;
}

/// Turns harmless errors into 0 bytes: no space, no data, an interrupted call.
pub(super) fn unless_busy(result: io::Result<usize>) -> io::Result<usize> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    match result {
        Err(error) if matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused) => Ok(0),
        other => other,
    }
}
