//! Frames over a connection, both ways: between a resolver and a daemon.

use crate::presence::Descriptor;
use crate::streams::is_passing;
use lanecast_wire::net::{Frame, frame_length};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// The most that is read in one turn, so that nobody keeps the others waiting.
const READ_BYTES: usize = 64 << 10;
/// Room for a frame to be written.
const FRAME_BYTES: usize = 16 << 10;
/// The most frames that are written in one turn.
const WRITES_MAX: usize = 64;

/// A connection, and the parts of frames that are under way on it.
#[derive(Debug)]
pub(crate) struct FrameStream {
    stream: Arc<TcpStream>,
    partial: Vec<u8>,
    unsent: Vec<u8>,
    sent: usize,
    /// There is more to write than the last turn took.
    has_more: bool,
}

impl FrameStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream: Arc::new(stream),
            partial: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
            has_more: false,
        }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The connection alone, unless a frame is under way: what is written next would break it.
    pub(crate) fn into_stream(self) -> Option<TcpStream> {
        if self.unsent.is_empty() { Arc::into_inner(self.stream) } else { None }
    }

    /// The connection, and whether to wait for room as well.
    pub(crate) fn descriptor(&self) -> (Descriptor, bool) {
        (Descriptor::Tcp(Arc::clone(&self.stream)), self.has_more)
    }

    /// Whether there is more to write than the last turn took.
    pub(crate) const fn has_more(&self) -> bool {
        self.has_more
    }

    /// Reads once, and hands over each whole frame until `each` says that it is enough; gives how
    /// many frames came.
    ///
    /// # Errors
    /// If the connection has ended, or with [`ErrorKind::InvalidData`] if what comes is no frame.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        mut each: impl FnMut(&Frame<'_>) -> bool,
    ) -> io::Result<usize> {
        let room = buffer.len().min(READ_BYTES);
        let length = match (&*self.stream).read(&mut buffer[..room]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if is_passing(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        self.partial.extend_from_slice(&buffer[..length]);
        let (mut used, mut frames) = (0, 0);
        while let Some(length) = whole_frame(&self.partial[used..])? {
            let bytes = &self.partial[used..used + length];
            let (frame, _) = Frame::split(bytes).ok_or(ErrorKind::InvalidData)?;
            used += length;
            frames += 1;
            if !each(&frame) {
                break;
            }
        }
        self.partial.drain(..used);
        Ok(frames)
    }

    /// Writes the frames that `next` gives, as many as there is room for; gives how many.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(crate) fn write(
        &mut self,
        mut next: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<usize> {
        self.has_more = true;
        for written in 0..WRITES_MAX {
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

    /// Writes the rest of the last frame; gives whether nothing is left of it.
    fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.unsent.len() {
            match (&*self.stream).write(&self.unsent[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => self.sent += length,
                Err(error) if is_passing(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        self.unsent.clear();
        Ok(true)
    }
}

/// The length of the first frame of `bytes`, if all of it is there.
fn whole_frame(bytes: &[u8]) -> io::Result<Option<usize>> {
    let length = frame_length(bytes).map_err(|_| ErrorKind::InvalidData)?;
    Ok(length.filter(|length| *length <= bytes.len()))
}
