//! UDP with messages packed into datagrams, and many datagrams handed to the kernel at once.

use std::io;

use anyhow::{Context, Result};
use nix::sys::socket::{setsockopt, sockopt};

use super::batch::Batch;
use super::frames::{Assembly, DATAGRAM, Outbox};
use super::socket::{Pair, is_harmless};
use crate::end::End;

/// The longest message.
const LONGEST: usize = 65_000;
/// Bytes of one receiving call.
const ROOM: usize = 1 << 16;

/// Way of handing datagrams to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Several with one call, each of which goes its way alone
    Several,
    /// As one piece, which is cut as late as possible, and joined as early
    Segments,
}

impl Way {
    /// Datagrams that are gathered: as many as one piece may have, or as made no difference
    /// beyond.
    fn most(self) -> usize {
        match self {
            Way::Several => 32,
            Way::Segments => 44,
        }
    }
}

/// An end that packs.
#[derive(Debug)]
pub struct Packed {
    sockets: Pair,
    way: Way,
    outbox: Outbox,
    /// Bytes that the kernel has not taken yet.
    leaving: Vec<u8>,
    left: usize,
    assembly: Assembly,
    batch: Batch,
    room: Vec<u8>,
}

impl Packed {
    /// Over these sockets.
    ///
    /// # Errors
    ///
    /// When the kernel does not cut and join datagrams.
    pub fn new(sockets: Pair, way: Way) -> Result<Self> {
        if way == Way::Segments {
            let size = DATAGRAM as i32;
            setsockopt(&sockets.out, sockopt::UdpGsoSegment, &size).context("no UDP_SEGMENT")?;
            setsockopt(&sockets.inward, sockopt::UdpGroSegment, &true).context("no UDP_GRO")?;
        }
        Ok(Self {
            sockets,
            way,
            outbox: Outbox::new(way.most(), LONGEST),
            leaving: Vec::new(),
            left: 0,
            assembly: Assembly::default(),
            batch: Batch::default(),
            room: vec![0; ROOM],
        })
    }

    /// Hands gathered datagrams to the kernel; false if it has no room for all of them.
    fn push(&mut self) -> Result<bool> {
        if self.left == self.leaving.len() {
            self.leaving.clear();
            self.leaving.extend_from_slice(self.outbox.take());
            self.left = 0;
        }
        let most = self.way.most() * DATAGRAM;
        while self.left < self.leaving.len() {
            let rest = &self.leaving[self.left..];
            let part = &rest[..rest.len().min(most)];
            let sent = match self.way {
                Way::Segments => self.sockets.out.send(part),
                Way::Several => {
                    let count = self.batch.send(&self.sockets.out, part, DATAGRAM);
                    count.map(|count| (count * DATAGRAM).min(part.len()))
                }
            };
            match sent {
                Ok(bytes) => self.left += bytes,
                Err(error) if is_harmless(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

impl End for Packed {
    #[inline]
    fn send(&mut self, size: usize, fill: impl FnMut(&mut [u8])) -> Result<bool> {
        if self.outbox.has(self.way.most()) && !self.push()? {
            return Ok(false);
        }
        self.outbox.add(size, fill);
        Ok(true)
    }

    fn flush(&mut self) -> Result<bool> {
        // The first may finish an earlier push only.
        Ok(self.push()? && self.push()?)
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<usize> {
        let Self { sockets, assembly, batch, room, way, .. } = self;
        let mut count = 0;
        let taken: io::Result<usize> = match way {
            Way::Several => batch.receive(&sockets.inward, |datagram| {
                count += assembly.take(datagram, &mut each);
            }),
            // All but the last datagram of a piece are full.
            Way::Segments => sockets.inward.recv(room).inspect(|length| {
                for datagram in room[..*length].chunks(DATAGRAM) {
                    count += assembly.take(datagram, &mut each);
                }
            }),
        };
        match taken {
            Ok(_) => Ok(count),
            Err(error) if is_harmless(&error) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}
