//! A client's connection.

use lanecast_os::direct;
use lanecast_wire::command::{LENGTH_BYTES, frame_bytes};
use std::io::{self, ErrorKind};
use std::net::TcpStream;

/// Reads at a time from one client, so that nobody keeps the others waiting.
const READS_MAX: usize = 4;

/// A socket, and the beginning of a frame.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    partial: Vec<u8>,
    /// Whether the poller waits until it takes bytes.
    pub(crate) wants_write: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, partial: Vec::new(), wants_write: false })
    }

    /// Hands over the payload of each frame that has come whole.
    ///
    /// # Errors
    /// If the connection has ended, or a frame is longer than `limit`.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        limit: usize,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        for _ in 0..READS_MAX {
            let length = match direct::read(&self.stream, buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let fresh = &buffer[..length];
            if self.partial.is_empty() {
                let used = frames(fresh, limit, &mut each)?;
                self.partial.extend_from_slice(&fresh[used..]);
            } else {
                self.partial.extend_from_slice(fresh);
                let used = frames(&self.partial, limit, &mut each)?;
                self.partial.drain(..used);
            }
            if length < buffer.len() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Hands over whole frames; how many bytes they took.
fn frames(bytes: &[u8], limit: usize, each: &mut impl FnMut(&[u8])) -> io::Result<usize> {
    let mut used = 0;
    while let Some(total) =
        frame_bytes(&bytes[used..], limit).map_err(|_| ErrorKind::InvalidData)?
    {
        // One without content is a sign of life.
        if total > LENGTH_BYTES {
            each(&bytes[used + LENGTH_BYTES..used + total]);
        }
        used += total;
    }
    Ok(used)
}
