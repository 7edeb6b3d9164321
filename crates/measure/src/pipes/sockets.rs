//! A pair of local sockets: the document's baseline.

use super::link::{Reads, Writes};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

const BYTES: usize = size_of::<u64>();

/// The writing end: a batch is one system call.
#[derive(Debug)]
pub(super) struct SocketWriter {
    socket: UnixStream,
    batch: Vec<u8>,
}

/// The reading end, which waits for a whole batch, as with `MSG_WAITALL`.
#[derive(Debug)]
pub(super) struct SocketReader {
    socket: UnixStream,
    batch: Vec<u8>,
}

/// Two ends of one direction, for batches of so many messages.
pub(super) fn pair(batch: usize) -> io::Result<(SocketWriter, SocketReader)> {
    let (here, there) = UnixStream::pair()?;
    let bytes = batch.max(1) * BYTES;
    let writer = SocketWriter { socket: here, batch: Vec::with_capacity(bytes) };
    Ok((writer, SocketReader { socket: there, batch: vec![0; bytes] }))
}

impl Writes for SocketWriter {
    fn write(&mut self, message: u64) {
        self.batch.extend_from_slice(&message.to_le_bytes());
    }

    fn flush(&mut self) {
        // A reader that has gone is noticed where messages are counted.
        let _ = self.socket.write_all(&self.batch);
        self.batch.clear();
    }

    fn close(self) -> Option<u64> {
        None
    }
}

impl Reads for SocketReader {
    fn read(&mut self, mut each: impl FnMut(u64)) -> bool {
        let mut filled = 0;
        while filled < self.batch.len() {
            match self.socket.read(&mut self.batch[filled..]) {
                // The end, possibly with an incomplete last batch.
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let (messages, _) = self.batch[..filled].as_chunks::<BYTES>();
        messages.iter().for_each(|message| each(u64::from_le_bytes(*message)));
        filled == self.batch.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_batches_arrive_and_then_what_is_left() {
        let (mut writer, mut reader) = pair(4).unwrap();
        (0..6).for_each(|message| {
            writer.write(message);
            if message % 4 == 3 {
                writer.flush();
            }
        });
        writer.flush();
        drop(writer);
        let mut seen = Vec::new();
        assert!(reader.read(|message| seen.push(message)));
        assert_eq!(seen, [0, 1, 2, 3]);
        assert!(!reader.read(|message| seen.push(message)));
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    }
}
