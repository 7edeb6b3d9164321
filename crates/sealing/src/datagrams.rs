//! Datagrams of one socket between hosts: sealed as they leave, opened as they come.

use crate::key_ring::KeyRing;
use crate::key_schedule::KeySchedule;
use crate::opener::{Opener, Refusal};
use crate::sealer::{SealMark, Sealer};
use lanecast_wire::net::{SealedDestination, SealedHeader};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

const HEADER_BYTES: usize = size_of::<SealedHeader>();

/// Seals what one socket sends, and opens what it receives.
///
/// Belongs to the socket: a sender's number stands for one socket of one run of a program, so
/// neither a restart nor a second thread uses a nonce again.
pub struct DatagramSealing {
    ring: Arc<KeyRing>,
    version: u64,
    sealer: Sealer,
    opener: Opener,
    /// The address that datagrams must have been sent to.
    here: SealedDestination,
}

impl DatagramSealing {
    /// Sealing for a socket bound to `here`. Both numbers of `random` come from the system's random
    /// numbers: the sender's number, and its first counter, so that even two senders of one number
    /// would hardly share a nonce.
    pub fn new(ring: Arc<KeyRing>, here: SocketAddr, random: (u64, u64)) -> Self {
        let (version, keys) = ring.keys();
        let sealer = sealer(&keys, random);
        Self { ring, version, sealer, opener: Opener::new(keys), here: here.into() }
    }

    #[cold]
    fn take_new_keys(&mut self) {
        let (version, keys) = self.ring.keys();
        self.sealer.set_keys(&keys);
        self.opener.set_keys(keys);
        self.version = version;
    }

    #[inline]
    fn follow_the_ring(&mut self) {
        if self.ring.version() != self.version {
            self.take_new_keys();
        }
    }

    /// Seals a run of datagrams to `to`: `segment` bytes each, the last one at most as many. Writes
    /// them into `sealed`, whose old content is dropped. Each is longer by
    /// [`SEALED_OVERHEAD`](lanecast_wire::net::SEALED_OVERHEAD).
    ///
    /// # Panics
    /// If a datagram is too long for UDP, or `segment` is 0.
    pub fn seal(&mut self, run: &[u8], segment: usize, to: SocketAddr, sealed: &mut Vec<u8>) {
        self.follow_the_ring();
        sealed.clear();
        let to = SealedDestination::from(to);
        for datagram in run.chunks(segment) {
            let SealMark { key, sender, counter } = self.sealer.next();
            let header = SealedHeader::new(key, sender, counter, datagram.len());
            let covered = header.covered(to);
            sealed.extend_from_slice(&covered[..HEADER_BYTES]);
            let start = sealed.len();
            sealed.extend_from_slice(datagram);
            let tag = self.sealer.seal(&covered, &mut sealed[start..]);
            sealed.extend_from_slice(&tag);
        }
    }

    /// Opens the datagrams in `bytes`, one behind the other as the system gathers them (GRO):
    /// `segment` bytes each, the last one at most as many. Calls `refused` for each that cannot be
    /// opened. Returns the length of their frames, which now begin `bytes` without gaps.
    ///
    /// # Panics
    /// If `segment` is 0.
    pub fn open(
        &mut self,
        bytes: &mut [u8],
        segment: usize,
        mut refused: impl FnMut(Refusal),
    ) -> usize {
        self.follow_the_ring();
        let mut end = 0;
        for start in (0..bytes.len()).step_by(segment) {
            let limit = bytes.len().min(start + segment);
            end = self.open_one(&mut bytes[..limit], start, end, &mut refused);
        }
        end
    }

    /// Opens the datagram at `start`, up to the end of `bytes`, and moves its frame to `end`;
    /// returns the frame's end. Nothing that it states leads beyond it.
    #[inline]
    fn open_one(
        &mut self,
        bytes: &mut [u8],
        mut start: usize,
        mut end: usize,
        refused: &mut impl FnMut(Refusal),
    ) -> usize {
        while start < bytes.len() {
            let Some((header, length)) = SealedHeader::split(&bytes[start..]) else {
                refused(Refusal::NotSealed);
                break;
            };
            let mark = SealMark {
                key: header.key.get(),
                sender: header.sender.get(),
                counter: header.counter.get(),
            };
            let covered = header.covered(self.here);
            let buffer = &mut bytes[end..start + length];
            match self.opener.open(mark, &covered, buffer, start + HEADER_BYTES - end) {
                Ok(opened) => end += opened,
                Err(reason) => refused(reason),
            }
            start += length;
        }
        end
    }
}

/// Half of all counters are left at least: a sender does not live to see the last one.
fn sealer(keys: &KeySchedule, (sender, first): (u64, u64)) -> Sealer {
    Sealer::new(keys, sender, first >> 1)
}

impl fmt::Debug for DatagramSealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatagramSealing")
            .field("sealer", &self.sealer)
            .field("opener", &self.opener)
            .finish_non_exhaustive()
    }
}
