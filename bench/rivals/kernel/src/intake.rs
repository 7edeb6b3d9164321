//! The subscribing end.

use anyhow::{Result, ensure};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read};

use rivals_kit::{Load, Receiver, Tally};

use crate::Over;
use crate::frame::{self, PREFIX};

/// Bytes that are read at once flat out.
const READ: usize = 256 << 10;
/// At a fixed rate: what falls due in 5 µs, and one message. A read of a stream goes on as long as
/// more arrives, and what it has already taken waits.
const PACED_READS_PER_S: u64 = 200_000;

/// Reads many messages at a time and hands each to the tally.
#[derive(Debug)]
pub struct Intake {
    channel: OwnedFd,
    bytes: Box<[u8]>,
    end: usize,
    framed: bool,
}

impl Intake {
    /// An intake from the publisher that was joined.
    pub fn new(load: &Load, over: Over, channel: OwnedFd) -> Self {
        let size = PREFIX + load.size;
        let read = match load.rate {
            0 => READ.max(size),
            rate => (rate * size as u64 / PACED_READS_PER_S) as usize + size,
        };
        let bytes = vec![0; read].into_boxed_slice();
        Self { channel, bytes, end: 0, framed: over != Over::Packets }
    }

    /// Hands over the whole messages and keeps the beginning of the next.
    fn take_whole(&mut self, tally: &mut Tally) -> usize {
        let (mut start, mut taken) = (0, 0);
        while let Some(message) = frame::first(&self.bytes[start..self.end]) {
            start += PREFIX + message.len();
            taken += 1;
            tally.take(message);
        }
        self.bytes.copy_within(start..self.end, 0);
        self.end -= start;
        taken
    }
}

impl Receiver for Intake {
    #[inline]
    fn poll(&mut self, tally: &mut Tally) -> Result<usize> {
        let read = match read(&self.channel, &mut self.bytes[self.end..]) {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        ensure!(read > 0, "the publisher went before it had sent everything");
        self.end += read;
        if self.framed {
            return Ok(self.take_whole(tally));
        }
        tally.take(&self.bytes[..self.end]);
        self.end = 0;
        Ok(1)
    }
}
