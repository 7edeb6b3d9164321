//! The queue of an offline client: its oldest bytes in memory, the rest on disk.

use crate::config::offline::OfflineSettings;
use crate::queue::disk_ring::DiskRing;
use crate::time::Nanos;
use std::collections::VecDeque;
use std::io;

/// Bytes read back from disk at a time.
const READ_BYTES: usize = 256 << 10;

/// Memory limit of all send queues, and the offline policy beyond it.
#[derive(Debug, Default)]
pub(crate) struct OfflineLimits {
    /// `None` disconnects clients beyond the memory limit.
    pub(crate) settings: Option<OfflineSettings>,
    /// The most bytes in memory for a client.
    pub(crate) memory_max: usize,
    /// Times that a client went offline.
    pub(crate) went_offline: u64,
    /// Bytes written to disk so far.
    pub(crate) disk_bytes: u64,
}

impl OfflineLimits {
    /// The most bytes that may wait for a client, in memory and on disk.
    pub(crate) fn queue_max(&self) -> usize {
        let disk = self.settings.as_ref().map_or(0, |settings| settings.bytes_max);
        self.memory_max.saturating_add(usize::try_from(disk).unwrap_or(usize::MAX))
    }

    /// Creates the disk queue of a client; `None` if clients do not go offline.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create_ring(&mut self) -> io::Result<Option<DiskRing>> {
        let Some(OfflineSettings { directory, bytes_max, .. }) = &self.settings else {
            return Ok(None);
        };
        // Counted after the file exists, so that failures do not count.
        let ring = DiskRing::create(directory, *bytes_max)?;
        self.went_offline += 1;
        Ok(Some(ring))
    }
}

/// The queue of an offline client, oldest byte first.
#[derive(Debug)]
pub(crate) struct OfflineQueue {
    /// Bytes in memory, of which the first `sent` are sent.
    front: Vec<u8>,
    sent: usize,
    ring: DiskRing,
    /// Bytes appended and sent so far.
    appended_total: u64,
    sent_total: u64,
    /// Samples of `appended_total` by time, for the age of the oldest byte.
    samples: VecDeque<(Nanos, u64)>,
}

impl OfflineQueue {
    /// Starts with the bytes of a send queue, of which the first `sent` are sent.
    pub(crate) fn new(front: Vec<u8>, sent: usize, ring: DiskRing) -> Self {
        // The bytes taken over count as appended now: their age begins with the next sample.
        let appended_total = (front.len() - sent) as u64;
        Self { front, sent, ring, appended_total, sent_total: 0, samples: VecDeque::new() }
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.memory_len() + self.ring.len() as usize
    }

    /// Bytes that wait in memory.
    pub(crate) fn memory_len(&self) -> usize {
        self.front.len() - self.sent
    }

    /// Appends bytes on disk.
    ///
    /// # Errors
    /// If the client's limit is reached or the disk is full.
    pub(crate) fn push(&mut self, bytes: &[u8], limits: &mut OfflineLimits) -> io::Result<()> {
        // Always behind the ring's bytes, even if the front has room: the order must hold.
        self.ring.push(bytes)?;
        self.appended_total += bytes.len() as u64;
        limits.disk_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Moves the last `count` bytes in memory to disk, or all if there are fewer.
    ///
    /// # Errors
    /// If the client's limit is reached or the disk is full.
    pub(crate) fn spill(&mut self, count: usize, limits: &mut OfflineLimits) -> io::Result<()> {
        // The end of the front is taken: its beginning is sent next.
        let count = count.min(self.memory_len());
        let kept = self.front.len() - count;
        // Bytes in memory are older than those on disk, so they go before them.
        self.ring.unshift(&self.front[kept..])?;
        self.front.truncate(kept);
        // The point of a spill is memory, so the capacity goes back as well.
        self.front.shrink_to_fit();
        limits.disk_bytes += count as u64;
        Ok(())
    }

    /// The next bytes to send; empty if none are left.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn next(&mut self) -> io::Result<&[u8]> {
        // A block at a time: memory stays small however long the backlog.
        if self.sent == self.front.len() {
            self.sent = 0;
            self.front.clear();
            self.front.shrink_to(READ_BYTES);
            self.ring.take(READ_BYTES, &mut self.front)?;
        }
        Ok(&self.front[self.sent..])
    }

    /// Removes sent bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count;
        self.sent_total += count as u64;
    }

    /// A lower bound of the oldest byte's age, precise to `step`. Bytes count from the first call
    /// after they were appended.
    pub(crate) fn age(&mut self, now: Nanos, step: Nanos) -> Nanos {
        let is_due = |(time, _): &(Nanos, u64)| now.saturating_sub(*time) >= step;
        // One sample per step keeps the list short; an exact time per message would cost more than
        // the messages.
        if self.samples.back().is_none_or(is_due) {
            self.samples.push_back((now, self.appended_total));
        }
        while self.samples.front().is_some_and(|(_, appended)| *appended <= self.sent_total) {
            self.samples.pop_front();
        }
        self.samples.front().map_or(0, |(time, _)| now.saturating_sub(*time))
    }
}
