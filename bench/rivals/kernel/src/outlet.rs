//! The publishing end.

use std::{hint, thread};

use anyhow::Result;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, write};

use rivals_kit::{Load, Sender, Wait};

use crate::frame::{self, PREFIX};
use crate::{Means, Over};

/// Full channels are asked so often before the CPU is given away.
const SPINS_BEFORE_YIELD: u32 = 20;

/// Gathers messages and writes them to every subscriber.
#[derive(Debug)]
pub struct Outlet {
    readers: Vec<Reader>,
    gathered: Box<[u8]>,
    end: usize,
    prefix: usize,
    wait: Wait,
}

#[derive(Debug)]
struct Reader {
    channel: OwnedFd,
    written: usize,
}

impl Outlet {
    /// An outlet to the subscribers that have come.
    pub fn new(load: &Load, means: Means, channels: Vec<OwnedFd>) -> Self {
        // A packet is one message and needs no length.
        let (prefix, room) = match means.over {
            Over::Packets => (0, load.size),
            Over::Stream | Over::Pipe => (PREFIX, means.batch.max(PREFIX + load.size)),
        };
        Self {
            readers: channels.into_iter().map(|channel| Reader { channel, written: 0 }).collect(),
            gathered: vec![0; room].into_boxed_slice(),
            end: 0,
            prefix,
            wait: load.wait,
        }
    }
}

impl Sender for Outlet {
    #[inline]
    fn send(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        if self.end + self.prefix + size > self.gathered.len() {
            self.flush()?;
        }
        if self.prefix > 0 {
            frame::write_length(&mut self.gathered, self.end, size);
        }
        let start = self.end + self.prefix;
        fill(&mut self.gathered[start..start + size]);
        self.end = start + size;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let gathered = &self.gathered[..self.end];
        let mut refused = 0;
        let mut left = self.readers.len();
        while left > 0 {
            left = 0;
            for reader in &mut self.readers {
                left += usize::from(!reader.write_on(gathered)?);
            }
            refused += 1;
            match self.wait {
                Wait::Yield if refused > SPINS_BEFORE_YIELD => thread::yield_now(),
                _ => hint::spin_loop(),
            }
        }
        self.readers.iter_mut().for_each(|reader| reader.written = 0);
        self.end = 0;
        Ok(())
    }

    /// The kernel keeps what was written until it has been read.
    fn linger(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Reader {
    /// Writes what the channel takes; tells whether that was all of it.
    fn write_on(&mut self, gathered: &[u8]) -> Result<bool> {
        let rest = &gathered[self.written..];
        if rest.is_empty() {
            return Ok(true);
        }
        match write(&self.channel, rest) {
            Ok(written) => self.written += written,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.written == gathered.len())
    }
}
