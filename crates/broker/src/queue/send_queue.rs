//! A client's send queue: bytes in the order in which they are sent.
//!
//! Within a round the queue refers to frames in the [`FrameArena`], which the fan-out writes once
//! for all their receivers. The round ends when every queue has sent its frames, or copied the ones
//! that the socket did not accept. The client record owns the queue. It calls the socket through a
//! closure, so it knows neither TCP nor WebSocket.

use crate::queue::offline_queue::{OfflineLimits, OfflineQueue};
use crate::queue::unread_replies::UnreadReplies;
use std::io::{self, IoSlice};

/// Buffers of the arena that keep their memory between rounds.
const BUFFERS_KEPT: usize = 64;
/// The most memory that an empty buffer keeps, of the arena or of a queue.
const BUFFER_KEPT_BYTES: usize = 1 << 20;
/// Slices of one vectored write.
const SLICES: usize = 64;
/// After sending so many bytes to a client, other clients get their turn.
const TURN_BYTES: usize = 1 << 20;
/// New bytes for an offline client go to disk in pieces of at least this size.
const SPILL_BYTES: usize = 64 << 10;
/// The most bytes of unread replies; beyond it, the server does not read from the client.
const REPLIES_MAX: usize = 1 << 20;

/// A range of the arena, valid until the round ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameRange {
    pub(crate) buffer: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl FrameRange {
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Buffers of encoded frames. Frames for one subscription name go into one buffer, so that the
/// frames of a client are adjacent, and leave in one slice.
#[derive(Debug, Default)]
pub(crate) struct FrameArena {
    buffers: Vec<Vec<u8>>,
    /// Buffers used in this round.
    used: usize,
    bytes: usize,
    round: u64,
}

impl FrameArena {
    /// The number of this round.
    #[inline]
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// Takes an empty buffer for this round.
    pub(crate) fn new_buffer(&mut self) -> usize {
        // Buffers of earlier rounds are empty but allocated: a busy server allocates nothing here.
        if self.used == self.buffers.len() {
            self.buffers.push(Vec::new());
        }
        self.used += 1;
        self.used - 1
    }

    /// Appends a frame to a buffer.
    #[inline]
    pub(crate) fn write(&mut self, buffer: usize, write: impl FnOnce(&mut Vec<u8>)) -> FrameRange {
        let bytes = &mut self.buffers[buffer];
        let start = bytes.len();
        write(bytes);
        let end = bytes.len();
        self.bytes += end - start;
        FrameRange { buffer, start, end }
    }

    #[inline]
    pub(crate) fn get(&self, range: FrameRange) -> &[u8] {
        &self.buffers[range.buffer][range.start..range.end]
    }

    /// Bytes in all buffers.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Starts the next round. All ranges become invalid: no send queue may hold one.
    pub(crate) fn end_round(&mut self) {
        // Nothing was encoded: no range exists that a new number would invalidate.
        if self.used == 0 {
            return;
        }
        // One round with many names must not hold memory forever.
        self.buffers.truncate(BUFFERS_KEPT);
        for buffer in self.buffers.iter_mut().take(self.used) {
            buffer.clear();
            buffer.shrink_to(BUFFER_KEPT_BYTES);
        }
        (self.used, self.bytes) = (0, 0);
        self.round += 1;
    }
}

/// A range of the arena between the queue's own bytes.
#[derive(Clone, Copy, Debug)]
struct SharedSlice {
    /// Index of the own byte that follows it.
    at: usize,
    range: FrameRange,
}

/// Bytes that wait for a client.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    /// Bytes for this client alone.
    own: Vec<u8>,
    /// Own bytes already sent.
    sent: usize,
    shared: Vec<SharedSlice>,
    /// Index of the first shared slice that is not sent completely.
    first: usize,
    /// Bytes in shared slices that wait.
    shared_bytes: usize,
    /// Older bytes, sent first, if the client is offline.
    offline: Option<Box<OfflineQueue>>,
    replies: UnreadReplies,
}

impl SendQueue {
    /// The buffer to append own bytes to.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    /// Appends a range of the arena.
    #[inline]
    pub(crate) fn share(&mut self, range: FrameRange) {
        self.shared_bytes += range.len();
        let at = self.own.len();
        // Adjacent ranges merge into one slice, so that a burst needs one entry.
        if let Some(last) = self.shared.last_mut()
            && last.range.buffer == range.buffer
            && last.range.end == range.start
            && last.at == at
        {
            last.range.end = range.end;
        } else {
            self.shared.push(SharedSlice { at, range });
        }
    }

    /// Bytes that wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.recent_len() + self.offline.as_ref().map_or(0, |offline| offline.len())
    }

    /// Bytes that wait in memory.
    #[inline]
    pub(crate) fn memory_len(&self) -> usize {
        self.recent_len() + self.offline.as_ref().map_or(0, |offline| offline.memory_len())
    }

    /// Bytes that wait outside the offline queue.
    #[inline]
    fn recent_len(&self) -> usize {
        self.own.len() - self.sent + self.shared_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the last `bytes` as replies to the client's own commands.
    pub(crate) fn count_replies(&mut self, bytes: usize, memory_max: usize) {
        let queued = self.len();
        self.replies.count(bytes, queued, REPLIES_MAX.min(memory_max / 2));
    }

    /// Flow control of the client's replies.
    #[inline]
    pub(crate) fn replies(&self) -> &UnreadReplies {
        &self.replies
    }

    /// Whether the client is offline: part of its queue is on disk.
    pub(crate) fn is_offline(&self) -> bool {
        self.offline.is_some()
    }

    /// The offline part of the queue.
    pub(crate) fn offline(&mut self) -> Option<&mut OfflineQueue> {
        self.offline.as_deref_mut()
    }

    /// Passes slices to `write` until the queue is empty, `write` accepts no more (an error other
    /// than `Interrupted`), or this client's turn ends. In the latter cases copies what it shares,
    /// and returns false.
    ///
    /// # Errors
    /// If the client's bytes cannot be written to disk or read back.
    pub(crate) fn send(
        &mut self,
        arena: &FrameArena,
        limits: &mut OfflineLimits,
        mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        // A client that reads as fast as the server writes must not hold up all others.
        let mut budget = TURN_BYTES;
        while !self.is_empty() {
            let written = match &mut self.offline {
                Some(offline) => {
                    // Older bytes first: the recent ones stay behind until the disk is empty.
                    write(&[IoSlice::new(offline.next()?)])
                }
                None => {
                    let mut slices = [IoSlice::new(&[]); SLICES];
                    let count = self.fill(arena, &mut slices);
                    write(&slices[..count])
                }
            };
            match written {
                Ok(count) => {
                    self.advance(count);
                    budget = budget.saturating_sub(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Ends the loop by the path that copies shared bytes.
                Err(_) => budget = 0,
            }
            if budget == 0 && !self.is_empty() {
                // The arena is reused in the next round: no range may outlive this one.
                self.copy_shared(arena);
                self.enforce_memory(limits)?;
                return Ok(false);
            }
        }
        // All is sent: the ranges point to nothing that is needed.
        self.shared.clear();
        (self.sent, self.first) = (0, 0);
        // One long backlog is no reason to keep its memory.
        if self.own.capacity() > BUFFER_KEPT_BYTES {
            self.own = Vec::new();
        } else {
            self.own.clear();
        }
        Ok(true)
    }

    /// Moves bytes beyond the memory limit to disk.
    fn enforce_memory(&mut self, limits: &mut OfflineLimits) -> io::Result<()> {
        let recent = self.recent_len();
        match &mut self.offline {
            None if recent > limits.memory_max => self.go_offline(limits),
            Some(offline) if recent >= SPILL_BYTES => {
                // In larger pieces: a system call per message would cost more than the message.
                offline.push(&self.own[self.sent..], limits)?;
                (self.own, self.sent) = (Vec::new(), 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Moves all bytes into an offline queue, if the policy has one. Nothing may be shared.
    fn go_offline(&mut self, limits: &mut OfflineLimits) -> io::Result<()> {
        // Without a policy the bytes stay in memory, and the limit disconnects the client.
        if let Some(ring) = limits.create_ring()? {
            let (front, sent) = (std::mem::take(&mut self.own), std::mem::take(&mut self.sent));
            self.offline = Some(Box::new(OfflineQueue::new(front, sent, ring)));
        }
        Ok(())
    }

    /// Moves `count` bytes from memory to disk, if the policy allows. Nothing may be shared.
    ///
    /// # Errors
    /// If the client's limit is reached or the disk is full.
    pub(crate) fn spill(&mut self, count: usize, limits: &mut OfflineLimits) -> io::Result<()> {
        if self.offline.is_none() {
            self.go_offline(limits)?;
        }
        match &mut self.offline {
            Some(offline) => offline.spill(count, limits),
            None => Ok(()),
        }
    }

    /// Fills slices with the next bytes; returns how many slices.
    fn fill<'a>(&'a self, arena: &'a FrameArena, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let (mut count, mut at) = (0, self.sent);
        for shared in &self.shared[self.first..] {
            // A shared slice may need two entries: the own bytes before it, and itself.
            if count + 2 > SLICES {
                return count;
            }
            if shared.at > at {
                slices[count] = IoSlice::new(&self.own[at..shared.at]);
                (count, at) = (count + 1, shared.at);
            }
            slices[count] = IoSlice::new(arena.get(shared.range));
            count += 1;
        }
        if at < self.own.len() && count < SLICES {
            slices[count] = IoSlice::new(&self.own[at..]);
            count += 1;
        }
        count
    }

    /// Removes sent bytes.
    fn advance(&mut self, mut count: usize) {
        // Counts every byte, since replies and messages leave through one queue.
        self.replies.advance(count);
        if let Some(offline) = &mut self.offline {
            offline.advance(count);
            // The client caught up: it is online again.
            if offline.len() == 0 {
                self.offline = None;
            }
            return;
        }
        while count > 0 {
            let shared = self.shared.get_mut(self.first);
            let until = shared.as_ref().map_or(self.own.len(), |shared| shared.at);
            let own = count.min(until - self.sent);
            self.sent += own;
            count -= own;
            // A write may end within a slice: the rest of the range stays.
            let Some(SharedSlice { range, .. }) = shared else { return };
            let taken = count.min(range.len());
            range.start += taken;
            self.shared_bytes -= taken;
            count -= taken;
            self.first += usize::from(range.len() == 0);
        }
    }

    /// Copies shared slices into the own bytes: the round is about to end.
    fn copy_shared(&mut self, arena: &FrameArena) {
        let left = &self.shared[self.first..];
        if let Some(first) = left.first() {
            let base = first.at;
            // Own bytes before the first range stay in place; only the rest is interleaved again.
            let rest = self.own.split_off(base);
            let mut copied = 0;
            for shared in left {
                self.own.extend_from_slice(&rest[copied..shared.at - base]);
                self.own.extend_from_slice(arena.get(shared.range));
                copied = shared.at - base;
            }
            self.own.extend_from_slice(&rest[copied..]);
        }
        self.shared.clear();
        (self.first, self.shared_bytes) = (0, 0);
        // Draining moves the rest, so it waits until most of the buffer is sent.
        if self.sent > self.own.len() / 2 {
            self.own.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::offline::OfflineSettings;
    use std::io::ErrorKind;

    /// A socket that accepts at most `room` bytes.
    fn take(slices: &[IoSlice<'_>], room: &mut usize, taken: &mut Vec<u8>) -> io::Result<usize> {
        let before = taken.len();
        for slice in slices {
            let count = slice.len().min(*room);
            *room -= count;
            taken.extend_from_slice(&slice[..count]);
        }
        let count = taken.len() - before;
        if count == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    #[test]
    fn all_leaves_in_order_however_it_is_taken() {
        leaves_in_order(OfflineLimits { memory_max: usize::MAX, ..OfflineLimits::default() });
    }

    #[test]
    fn all_leaves_in_order_by_way_of_the_disk() {
        let settings = Some(OfflineSettings::at(std::env::temp_dir()));
        let limits = leaves_in_order(OfflineLimits {
            settings,
            memory_max: 30_000,
            ..OfflineLimits::default()
        });
        assert!(limits.went_offline > 0 && limits.disk_bytes > 1_000_000, "{limits:?}");
    }

    /// Includes rounds that spill to disk.
    fn leaves_in_order(mut limits: OfflineLimits) -> OfflineLimits {
        let (mut arena, mut queue) = (FrameArena::default(), SendQueue::default());
        let (mut taken, mut put) = (Vec::new(), Vec::new());
        for round in 0..2_000u32 {
            let buffers = [arena.new_buffer(), arena.new_buffer()];
            for piece in 0..round % 150 {
                let bytes = (round << 8 | piece).to_le_bytes().repeat(piece as usize % 3 * 40);
                match (round ^ piece.wrapping_mul(0x9e37_79b9)) >> 7 & 3 {
                    0 => queue.buffer().extend_from_slice(&bytes),
                    which => {
                        let buffer = buffers[which as usize % 2];
                        // Bytes between belong to other queues.
                        if piece % 5 == 0 {
                            arena.write(buffer, |out| out.push(0));
                        }
                        queue.share(arena.write(buffer, |out| out.extend_from_slice(&bytes)));
                    }
                }
                put.extend_from_slice(&bytes);
            }
            let mut room = (round as usize * 1_480) % 28_000;
            let write = |slices: &[IoSlice<'_>]| take(slices, &mut room, &mut taken);
            let sent = queue.send(&arena, &mut limits, write);
            assert_eq!(sent.expect("no error"), queue.is_empty());
            assert_eq!(queue.len(), put.len() - taken.len());
            arena.end_round();
            if round % 17 == 0 && !queue.is_empty() {
                queue.spill(round as usize * 50, &mut limits).expect("room");
                assert_eq!(queue.len(), put.len() - taken.len());
            }
            // From time to time the socket takes everything.
            if round % 400 == 399 {
                let mut write =
                    |slices: &[IoSlice<'_>]| take(slices, &mut { usize::MAX }, &mut taken);
                while !queue.send(&arena, &mut limits, &mut write).expect("room") {}
                assert!(!queue.is_offline() && queue.memory_len() == 0);
            }
        }
        let mut room = usize::MAX;
        let mut write = |slices: &[IoSlice<'_>]| take(slices, &mut room, &mut taken);
        while !queue.send(&arena, &mut limits, &mut write).expect("room") {}
        assert_eq!(taken, put);
        assert!(queue.send(&arena, &mut limits, |_| Ok(0)).expect("nothing to send"));
        limits
    }

    #[test]
    fn parts_that_stand_together_leave_as_one() {
        let (mut arena, mut queue) = (FrameArena::default(), SendQueue::default());
        let buffer = arena.new_buffer();
        for _ in 0..1_000 {
            queue.share(arena.write(buffer, |out| out.extend_from_slice(b"frame")));
        }
        let sent = queue.send(&arena, &mut OfflineLimits::default(), |slices| {
            assert_eq!((slices.len(), slices[0].len()), (1, 5_000));
            Ok(5_000)
        });
        assert!(sent.expect("no error"));
    }
}
