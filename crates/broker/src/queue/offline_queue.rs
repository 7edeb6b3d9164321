//! What waits for a client that has fallen behind: the oldest of it in memory, the rest on disk.

use crate::Nanos;
use crate::queue::disk_ring::DiskRing;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What is read back from disk at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Where it goes what a client does not read in time, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineSettings {
    /// The directory of files without names, one for each client that has fallen behind.
    pub directory: PathBuf,
    /// The most bytes on disk for a client.
    pub bytes_max: u64,
    /// How long a message may wait for its client.
    pub age_max: Duration,
}

impl OfflineSettings {
    /// The defaults, in that directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let age_max = Duration::from_secs(600);
        Self { directory: directory.into(), bytes_max: 1 << 30, age_max }
    }
}

/// What becomes of more than may wait in memory, for all clients.
#[derive(Debug, Default)]
pub(crate) struct OfflineLimits {
    /// Nothing is put by without.
    pub(crate) spooling: Option<OfflineSettings>,
    /// What may wait in memory for a client.
    pub(crate) memory_max: usize,
    /// How often clients have fallen behind.
    pub(crate) times: u64,
    /// What has gone to disk so far.
    pub(crate) bytes: u64,
}

impl OfflineLimits {
    /// The most bytes that may wait for a client in all.
    pub(crate) fn most(&self) -> usize {
        let disk = self.spooling.as_ref().map_or(0, |spooling| spooling.bytes_max);
        self.memory_max.saturating_add(usize::try_from(disk).unwrap_or(usize::MAX))
    }

    /// A place for what waits for one more client; none if nothing is put by.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn spool(&mut self) -> io::Result<Option<DiskRing>> {
        let Some(OfflineSettings { directory, bytes_max, .. }) = &self.spooling else {
            return Ok(None);
        };
        let spool = DiskRing::create(directory, *bytes_max)?;
        self.times += 1;
        Ok(Some(spool))
    }
}

/// Bytes in the order in which they leave.
#[derive(Debug)]
pub(crate) struct OfflineQueue {
    /// Those in memory, and how many of them have left.
    front: Vec<u8>,
    sent: usize,
    spool: DiskRing,
    /// How many have come and left so far.
    come: u64,
    left: u64,
    /// At these times so many had come.
    marks: VecDeque<(Nanos, u64)>,
}

impl OfflineQueue {
    /// Begins with bytes of which some have left already.
    pub(crate) fn new(front: Vec<u8>, sent: usize, spool: DiskRing) -> Self {
        let come = (front.len() - sent) as u64;
        Self { front, sent, spool, come, left: 0, marks: VecDeque::new() }
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.held() + self.spool.len() as usize
    }

    /// How many of them are in memory.
    pub(crate) fn held(&self) -> usize {
        self.front.len() - self.sent
    }

    /// Puts bytes behind all others, on disk.
    ///
    /// # Errors
    /// If there is no room.
    pub(crate) fn push(&mut self, bytes: &[u8], overflow: &mut OfflineLimits) -> io::Result<()> {
        self.spool.push(bytes)?;
        self.come += bytes.len() as u64;
        overflow.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Moves so many bytes from memory to disk, or all if there are fewer.
    ///
    /// # Errors
    /// If there is no room.
    pub(crate) fn shed(&mut self, count: usize, overflow: &mut OfflineLimits) -> io::Result<()> {
        let count = count.min(self.held());
        let kept = self.front.len() - count;
        self.spool.unshift(&self.front[kept..])?;
        self.front.truncate(kept);
        self.front.shrink_to_fit();
        overflow.bytes += count as u64;
        Ok(())
    }

    /// The next bytes to leave; none if none are left.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn next(&mut self) -> io::Result<&[u8]> {
        if self.sent == self.front.len() {
            self.sent = 0;
            self.front.clear();
            self.front.shrink_to(PIECE_BYTES);
            self.spool.take(PIECE_BYTES, &mut self.front)?;
        }
        Ok(&self.front[self.sent..])
    }

    /// So many bytes have left.
    pub(crate) fn leave(&mut self, count: usize) {
        self.sent += count;
        self.left += count as u64;
    }

    /// How long the oldest byte has waited at least, of those that were here the last time that it
    /// was asked. It is known to within `step`.
    pub(crate) fn age(&mut self, now: Nanos, step: Nanos) -> Nanos {
        let is_due = |(time, _): &(Nanos, u64)| now.saturating_sub(*time) >= step;
        if self.marks.back().is_none_or(is_due) {
            self.marks.push_back((now, self.come));
        }
        while self.marks.front().is_some_and(|(_, come)| *come <= self.left) {
            self.marks.pop_front();
        }
        self.marks.front().map_or(0, |(time, _)| now.saturating_sub(*time))
    }
}
