//! Reassembly of frames from a TCP connection: reads return any number of bytes, frames span them.
//!
//! All TCP connections use it: a publisher's to its receivers (`tcp_sender`), a subscriber's to a
//! publisher (`tcp_receiver`), and those between resolvers and daemons (`frame_stream`).

use lanecast_os::raw_io;
use lanecast_wire::net::{Frame, VERSION, frame_length, other_version};
use std::io::{self, ErrorKind};
use std::net::TcpStream;

/// The incomplete frame at the end of the last read.
#[derive(Debug)]
pub(crate) struct FrameReassembler {
    partial: Vec<u8>,
    /// Frames of unknown kinds are errors. Otherwise they are skipped, as newer versions may
    /// send them.
    rejects_unknown: bool,
}

impl FrameReassembler {
    /// A reassembler that skips frames of unknown kinds.
    pub(crate) const fn lenient() -> Self {
        Self { partial: Vec::new(), rejects_unknown: false }
    }

    /// A reassembler that rejects frames of unknown kinds.
    pub(crate) const fn strict() -> Self {
        Self { partial: Vec::new(), rejects_unknown: true }
    }

    /// Reads once, behind the incomplete frame of the last read. Returns the bytes in `buffer`, to
    /// be passed to [`split`](Self::split); `None` if there is nothing to read. `buffer` has to
    /// hold the longest frame.
    ///
    /// # Errors
    /// If the connection has failed, or with [`ErrorKind::UnexpectedEof`] if it has ended.
    pub(crate) fn read<'a>(
        &mut self,
        stream: &TcpStream,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<&'a [u8]>> {
        let kept = self.partial.len();
        // Room for the rest of the last frame stays in front: the frame is then whole in one piece.
        match raw_io::read(stream, &mut buffer[kept..]) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                buffer[..kept].copy_from_slice(&self.partial);
                self.partial.clear();
                Ok(Some(&buffer[..kept + length]))
            }
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Calls `each` with the complete frames of `bytes` until it returns false, and keeps the
    /// rest for the next read. Returns the number of frames.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if `bytes` does not continue with a frame; [`version_of`] names
    /// its version if it is one of another version.
    pub(crate) fn split(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&Frame<'_>) -> bool,
    ) -> io::Result<usize> {
        let (mut rest, mut frames) = (bytes, 0);
        while let Some(length) = frame_length(rest).map_err(|_| invalid(rest))?
            // A length beyond the bytes at hand belongs to a frame that is still on its way.
            && length <= rest.len()
        {
            let (bytes, after) = rest.split_at(length);
            rest = after;
            frames += 1;
            match Frame::split(bytes) {
                Some((frame, _)) if each(&frame) => {}
                None if !self.rejects_unknown => {}
                Some(_) => break,
                None => return Err(ErrorKind::InvalidData.into()),
            }
        }
        // Only the rest is copied: whole frames are handled in the buffer.
        self.partial.extend_from_slice(rest);
        Ok(frames)
    }

    /// Forgets the incomplete frame: its connection is gone.
    pub(crate) fn clear(&mut self) {
        self.partial.clear();
    }
}

/// A connection that carries frames of another version.
#[derive(Debug, thiserror::Error)]
#[error("frames of version {0}, this program reads version {VERSION}")]
struct OtherVersion(u8);

/// The error of a connection that continues with `bytes`, which are no frame of this version.
fn invalid(bytes: &[u8]) -> io::Error {
    match other_version(bytes) {
        Some(version) => io::Error::new(ErrorKind::InvalidData, OtherVersion(version)),
        None => ErrorKind::InvalidData.into(),
    }
}

/// The version of the frames, if `error` is that of a connection with those of another version.
pub(crate) fn version_of(error: &io::Error) -> Option<u8> {
    error.get_ref()?.downcast_ref::<OtherVersion>().map(|other| other.0)
}

/// Whether a non-blocking call failed only for now.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::net::{FrameWriter, Kind};
    use std::io::Write;
    use std::net::TcpListener;

    /// Two connected sockets; reads of the second do not block.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let sending = TcpStream::connect(address).expect("a connection");
        let (receiving, _) = listener.accept().expect("a connection");
        receiving.set_nonblocking(true).expect("non-blocking");
        (sending, receiving)
    }

    /// Sends `bytes` in pieces of `piece`, and gives the sequences of the frames that arrive.
    fn reassemble(
        mut frames: FrameReassembler,
        bytes: &[u8],
        piece: usize,
    ) -> io::Result<Vec<u64>> {
        let (mut sending, receiving) = pair();
        let (mut buffer, mut got) = (vec![0; 128 << 10], Vec::new());
        for piece in bytes.chunks(piece) {
            sending.write_all(piece).expect("room");
            loop {
                let Some(read) = frames.read(&receiving, &mut buffer)? else { continue };
                frames.split(read, |frame| {
                    got.push(frame.sequence);
                    true
                })?;
                break;
            }
        }
        Ok(got)
    }

    fn three_frames(kind: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        for sequence in 1..=3 {
            let mut frame = [0; 64];
            let writer = FrameWriter::new(&mut frame, Kind::Status, 0, 9, sequence);
            let length = writer.finish();
            bytes.extend_from_slice(&frame[..length]);
        }
        // The second frame's kind.
        let length = bytes.len() / 3;
        bytes[length + 3] = kind;
        bytes
    }

    #[test]
    fn frames_arrive_whole_in_pieces_of_any_length() {
        let bytes = three_frames(Kind::Status as u8);
        for piece in [1, 7, 23, 24, 25, bytes.len()] {
            let got = reassemble(FrameReassembler::strict(), &bytes, piece).expect("frames");
            assert_eq!(got, [1, 2, 3], "pieces of {piece}");
        }
    }

    #[test]
    fn frames_of_unknown_kinds_are_skipped_or_rejected() {
        let bytes = three_frames(200);
        let got = reassemble(FrameReassembler::lenient(), &bytes, bytes.len()).expect("frames");
        assert_eq!(got, [1, 3]);
        let rejected = reassemble(FrameReassembler::strict(), &bytes, bytes.len());
        assert_eq!(rejected.expect_err("an unknown kind").kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn bytes_that_are_no_frame_are_rejected() {
        let bytes = [7; 48];
        let rejected = reassemble(FrameReassembler::lenient(), &bytes, bytes.len());
        assert_eq!(rejected.expect_err("no frame").kind(), ErrorKind::InvalidData);
    }
}
