//! Reassembly of frames from a TCP connection: reads return any number of bytes, frames span them.
//!
//! All TCP connections use it: a publisher's to its receivers (`tcp_sender`), a subscriber's to a
//! publisher (`tcp_receiver`), and those between resolvers and daemons (`frame_stream`).

use lanecast_tls::{ByteStream, READ_BYTES_MIN, is_tls};
use lanecast_wire::net::{FRAME_MAX, Frame, VERSION, frame_length, other_version};
use std::io::{self, ErrorKind};

/// The smallest buffer of a read: behind an incomplete frame there is room for TLS.
pub(crate) const BUFFER_BYTES_MIN: usize = FRAME_MAX + READ_BYTES_MIN;

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
    /// be passed to [`split`](Self::split), none if those that came are TLS's own; `None` if there
    /// is nothing to read. `buffer` has at least [`BUFFER_BYTES_MIN`].
    ///
    /// # Errors
    /// If the connection has failed, or with [`ErrorKind::UnexpectedEof`] if it has ended.
    pub(crate) fn read<'a>(
        &mut self,
        stream: &mut ByteStream,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<&'a [u8]>> {
        // Room for the rest of the last frame stays in front: the frame is then whole in one piece.
        let read = stream.read(&mut buffer[self.partial.len()..]);
        self.prepend(read.map(|(length, _)| length), buffer)
    }

    /// Same as [`read`](Self::read) from a plain stream, but the bytes stay in its socket. Also
    /// returns their number, without those of the incomplete frame.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn peek<'a>(
        &mut self,
        stream: &mut ByteStream,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<(&'a [u8], usize)>> {
        let kept = self.partial.len();
        let peeked = stream.peek(&mut buffer[kept..]);
        Ok(self.prepend(peeked, buffer)?.map(|bytes| (bytes, bytes.len() - kept)))
    }

    /// Puts the incomplete frame before the bytes that were read behind it.
    #[inline]
    fn prepend<'a>(
        &mut self,
        read: io::Result<usize>,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<&'a [u8]>> {
        let kept = self.partial.len();
        match read {
            // The incomplete frame stays where it is.
            Ok(0) => Ok(Some(&[])),
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
    /// [`ErrorKind::InvalidData`] if `bytes` does not continue with a frame: with an
    /// [`OtherFrames`] if it is clear with what else.
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
        // An alert is shorter than any frame: nothing would follow it.
        if self.partial.is_empty() && is_tls(rest) {
            return Err(invalid(rest));
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

/// A connection that carries something else than frames of this version: a predicate whose subject
/// is the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OtherFrames {
    #[error(
        "sends frames of version {0}, this program reads version {VERSION}: give both hosts the \
         same version of lanecast"
    )]
    Version(u8),
    #[error(
        "speaks TLS, and this program does not: set net.tls_authorities, and net.tls_certificate \
         with net.tls_key where it publishes or the other side requires it"
    )]
    Tls,
}

/// The error of a connection that continues with `bytes`, which are no frame of this version.
fn invalid(bytes: &[u8]) -> io::Error {
    let other = match other_version(bytes) {
        Some(version) => OtherFrames::Version(version),
        None if is_tls(bytes) => OtherFrames::Tls,
        None => return ErrorKind::InvalidData.into(),
    };
    io::Error::new(ErrorKind::InvalidData, other)
}

/// The frames of a connection with this error, if it is clear what they are.
pub(crate) fn other_frames(error: &io::Error) -> Option<OtherFrames> {
    error.get_ref()?.downcast_ref::<OtherFrames>().copied()
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
    use std::net::{TcpListener, TcpStream};

    /// Two connected sockets; reads of the second do not block.
    fn pair() -> (TcpStream, ByteStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let sending = TcpStream::connect(address).expect("a connection");
        let (receiving, _) = listener.accept().expect("a connection");
        receiving.set_nonblocking(true).expect("non-blocking");
        (sending, ByteStream::plain(receiving))
    }

    /// Sends `bytes` in pieces of `piece`, and gives the sequences of the frames that arrive.
    fn reassemble(
        mut frames: FrameReassembler,
        bytes: &[u8],
        piece: usize,
    ) -> io::Result<Vec<u64>> {
        let (mut sending, mut receiving) = pair();
        let (mut buffer, mut got) = (vec![0; 128 << 10], Vec::new());
        for piece in bytes.chunks(piece) {
            sending.write_all(piece).expect("room");
            loop {
                let Some(read) = frames.read(&mut receiving, &mut buffer)? else { continue };
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

    #[test]
    fn tls_is_told_apart_however_short_it_is() {
        for bytes in [&[21, 3, 3, 0, 2, 2, 70][..], &[22, 3, 1, 2, 0], &[3; 3]] {
            let read = reassemble(FrameReassembler::lenient(), bytes, bytes.len());
            let other = read.as_ref().err().and_then(other_frames);
            let is_tls = bytes[0] != 3;
            assert_eq!(other, is_tls.then_some(OtherFrames::Tls), "{bytes:?}");
        }
    }
}
