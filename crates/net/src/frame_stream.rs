//! Frames in both directions over a TCP connection between a resolver and a daemon.

use crate::frame_reassembler::{BUFFER_BYTES_MIN, FrameReassembler, is_transient};
use crate::poller::Descriptor;
use lanecast_tls::ByteStream;
use lanecast_wire::net::Frame;
use std::io::{self, ErrorKind};

/// Size of read buffers. One read a turn, so that no client keeps the others waiting.
pub(crate) const READ_BYTES: usize = BUFFER_BYTES_MIN.next_multiple_of(64 << 10);
/// The longest frame that is written.
const FRAME_BYTES: usize = 16 << 10;
/// The most frames that are written in one turn.
const WRITES_MAX: usize = 64;

/// A connection, and the incomplete frames in both directions.
#[derive(Debug)]
pub(crate) struct FrameStream {
    stream: ByteStream,
    incoming: FrameReassembler,
    unsent: Vec<u8>,
    sent: usize,
    /// There is more to write than the last turn could.
    has_more: bool,
}

impl FrameStream {
    pub(crate) fn new(stream: ByteStream) -> Self {
        Self {
            stream,
            incoming: FrameReassembler::strict(),
            unsent: Vec::new(),
            sent: 0,
            has_more: false,
        }
    }

    pub(crate) const fn stream(&self) -> &ByteStream {
        &self.stream
    }

    /// The connection alone; `None` while a frame is partly written, as another frame would then
    /// break the stream.
    pub(crate) fn into_stream(self) -> Option<ByteStream> {
        self.unsent.is_empty().then_some(self.stream)
    }

    /// Goes on with a TLS handshake; whether it is complete, or none is needed.
    ///
    /// # Errors
    /// If it fails.
    pub(crate) fn shake_hands(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        if !self.stream.is_open() {
            self.stream.flush()?;
            let bytes = self.incoming.read(&mut self.stream, buffer)?;
            // A daemon has nothing to say before it knows its client.
            if bytes.is_some_and(|bytes| !bytes.is_empty()) {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        Ok(self.stream.is_open())
    }

    /// The connection, and whether to wait for room to write.
    pub(crate) fn descriptor(&self) -> (Descriptor, bool) {
        (self.stream.socket().clone() as Descriptor, self.has_more())
    }

    /// Whether there is more to write than the last turn could.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more || self.stream.has_unsent()
    }

    /// Reads once, and calls `each` with each complete frame until it returns false. Returns the
    /// number of frames; `None` if nothing has come.
    ///
    /// # Errors
    /// If the connection has ended, or with [`ErrorKind::InvalidData`] if it carries no frames.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        each: impl FnMut(&Frame<'_>) -> bool,
    ) -> io::Result<Option<usize>> {
        let bytes = self.incoming.read(&mut self.stream, buffer)?;
        bytes.map(|bytes| self.incoming.split(bytes, each)).transpose()
    }

    /// Writes the frames that `next` returns, as many as fit; returns their number.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(crate) fn write(
        &mut self,
        mut next: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<usize> {
        // Set until `next` runs dry: every other way out leaves something to write.
        self.has_more = true;
        // Bounded: one client's answers must not keep the others waiting.
        for written in 0..WRITES_MAX {
            // The last frame has to be whole before another one begins.
            if !self.flush()? {
                return Ok(written);
            }
            self.unsent.resize(FRAME_BYTES, 0);
            let length = next(&mut self.unsent);
            self.unsent.truncate(length.unwrap_or(0));
            if length.is_none() {
                self.has_more = false;
                return Ok(written);
            }
        }
        Ok(WRITES_MAX)
    }

    /// Writes the rest of the last frame; returns whether all of it is written.
    fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.unsent.len() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => self.sent += length,
                Err(error) if is_transient(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        self.unsent.clear();
        self.stream.flush()
    }
}
