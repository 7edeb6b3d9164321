//! What waits to be sent to a client.

use crate::delivery::frame_arena::{FrameArena, FrameRange};
use crate::queue::offline_queue::{OfflineLimits, OfflineQueue};
use crate::queue::unread_replies::UnreadReplies;
use std::io::{self, IoSlice};

/// An outbox that was once this large gives its memory back when it is empty.
const KEPT_BYTES: usize = 1 << 20;
/// So many pieces are handed over at a time.
const SLICES: usize = 64;
/// When a client has taken so much at a time, others get their turn.
const TURN_BYTES: usize = 1 << 20;
/// What comes for a client that has fallen behind goes to disk in pieces of this size or more.
const SPILL_BYTES: usize = 64 << 10;
/// Answers that a client has not read take this much at most; then nothing is read from it.
const ANSWERS_MAX: usize = 1 << 20;

/// Why nothing can be sent to a client any more.
#[derive(Debug)]
pub(crate) enum SendError {
    /// Its connection has ended.
    Ended(io::Error),
    /// What it does not read in time cannot be put by, or not be read back.
    DurableStore(io::Error),
}

/// A part of a sheet between the outbox's own bytes.
#[derive(Clone, Copy, Debug)]
struct SharedSlice {
    /// It comes before the own byte of this number.
    at: usize,
    part: FrameRange,
}

/// Bytes in the order in which they leave: its own, and within a round those that it shares with
/// other outboxes.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    own: Vec<u8>,
    /// How many of its own have left.
    sent: usize,
    inserts: Vec<SharedSlice>,
    /// The first of them that has not left as a whole.
    first: usize,
    /// How many bytes of them wait.
    shared: usize,
    /// What is to leave before all this, if the client has fallen behind.
    backlog: Option<Box<OfflineQueue>>,
    answers: UnreadReplies,
}

impl SendQueue {
    /// Where to write behind all else.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    /// Puts a part of a sheet behind all else.
    #[inline]
    pub(crate) fn share(&mut self, part: FrameRange) {
        self.shared += part.len();
        let at = self.own.len();
        if let Some(last) = self.inserts.last_mut()
            && last.part.sheet == part.sheet
            && last.part.end == part.start
            && last.at == at
        {
            last.part.end = part.end;
        } else {
            self.inserts.push(SharedSlice { at, part });
        }
    }

    /// How many bytes wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.fresh() + self.backlog.as_ref().map_or(0, |backlog| backlog.len())
    }

    /// How many of them are in memory.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.fresh() + self.backlog.as_ref().map_or(0, |backlog| backlog.held())
    }

    /// How many of them are in no backlog.
    #[inline]
    fn fresh(&self) -> usize {
        self.own.len() - self.sent + self.shared
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the last `bytes` as answers to the client's own commands.
    pub(crate) fn count_answers(&mut self, bytes: usize, memory_max: usize) {
        let waiting = self.len();
        self.answers.count(bytes, waiting, ANSWERS_MAX.min(memory_max / 2));
    }

    /// The client's answers.
    #[inline]
    pub(crate) fn answers(&self) -> &UnreadReplies {
        &self.answers
    }

    /// Whether the client has fallen behind.
    pub(crate) fn is_behind(&self) -> bool {
        self.backlog.is_some()
    }

    /// What the client has fallen behind with, if it has.
    pub(crate) fn backlog(&mut self) -> Option<&mut OfflineQueue> {
        self.backlog.as_deref_mut()
    }

    /// Sends until nothing is left, `write` takes no more, or it is the turn of others: then says
    /// that it is not empty, and has made what is left its own.
    ///
    /// # Errors
    /// See [`SendError`]: what `write` says ends it, but for `WouldBlock` and `Interrupted`.
    pub(crate) fn send(
        &mut self,
        sheets: &FrameArena,
        overflow: &mut OfflineLimits,
        mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> Result<bool, SendError> {
        let mut room = TURN_BYTES;
        while !self.is_empty() {
            let taken = match &mut self.backlog {
                Some(backlog) => {
                    let next = backlog.next().map_err(SendError::DurableStore)?;
                    write(&[IoSlice::new(next)])
                }
                None => {
                    let mut slices = [IoSlice::new(&[]); SLICES];
                    let count = self.fill(sheets, &mut slices);
                    write(&slices[..count])
                }
            };
            match taken {
                Ok(0) => return Err(SendError::Ended(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    self.leave(count);
                    room = room.saturating_sub(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => room = 0,
                Err(error) => return Err(SendError::Ended(error)),
            }
            if room == 0 && !self.is_empty() {
                self.settle(sheets);
                self.overflow(overflow).map_err(SendError::DurableStore)?;
                return Ok(false);
            }
        }
        self.inserts.clear();
        (self.sent, self.first) = (0, 0);
        if self.own.capacity() > KEPT_BYTES {
            self.own = Vec::new();
        } else {
            self.own.clear();
        }
        Ok(true)
    }

    /// Sees to it that no more is held in memory than may be.
    fn overflow(&mut self, overflow: &mut OfflineLimits) -> io::Result<()> {
        let fresh = self.fresh();
        match &mut self.backlog {
            None if fresh > overflow.memory_max => self.fall_behind(overflow),
            Some(backlog) if fresh >= SPILL_BYTES => {
                backlog.push(&self.own[self.sent..], overflow)?;
                (self.own, self.sent) = (Vec::new(), 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Makes a backlog of all that waits, if there may be one. Nothing may be shared.
    fn fall_behind(&mut self, overflow: &mut OfflineLimits) -> io::Result<()> {
        if let Some(spool) = overflow.spool()? {
            let (front, sent) = (std::mem::take(&mut self.own), std::mem::take(&mut self.sent));
            self.backlog = Some(Box::new(OfflineQueue::new(front, sent, spool)));
        }
        Ok(())
    }

    /// Moves so many bytes from memory to disk, if they may be there. Nothing may be shared.
    ///
    /// # Errors
    /// If there is no room on disk.
    pub(crate) fn shed(&mut self, count: usize, overflow: &mut OfflineLimits) -> io::Result<()> {
        if self.backlog.is_none() {
            self.fall_behind(overflow)?;
        }
        match &mut self.backlog {
            Some(backlog) => backlog.shed(count, overflow),
            None => Ok(()),
        }
    }

    /// The next bytes to leave; how many slices they fill.
    fn fill<'a>(&'a self, sheets: &'a FrameArena, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let (mut count, mut at) = (0, self.sent);
        for insert in &self.inserts[self.first..] {
            if count + 2 > SLICES {
                return count;
            }
            if insert.at > at {
                slices[count] = IoSlice::new(&self.own[at..insert.at]);
                (count, at) = (count + 1, insert.at);
            }
            slices[count] = IoSlice::new(sheets.get(insert.part));
            count += 1;
        }
        if at < self.own.len() && count < SLICES {
            slices[count] = IoSlice::new(&self.own[at..]);
            count += 1;
        }
        count
    }

    /// So many bytes have left.
    fn leave(&mut self, mut count: usize) {
        self.answers.leave(count);
        if let Some(backlog) = &mut self.backlog {
            backlog.leave(count);
            if backlog.len() == 0 {
                self.backlog = None;
            }
            return;
        }
        while count > 0 {
            let insert = self.inserts.get_mut(self.first);
            let until = insert.as_ref().map_or(self.own.len(), |insert| insert.at);
            let own = count.min(until - self.sent);
            self.sent += own;
            count -= own;
            let Some(SharedSlice { part, .. }) = insert else { return };
            let shared = count.min(part.len());
            part.start += shared;
            self.shared -= shared;
            count -= shared;
            self.first += usize::from(part.len() == 0);
        }
    }

    /// Copies what it shares: the round is about to end.
    fn settle(&mut self, sheets: &FrameArena) {
        let left = &self.inserts[self.first..];
        if let Some(first) = left.first() {
            let base = first.at;
            let rest = self.own.split_off(base);
            let mut taken = 0;
            for insert in left {
                self.own.extend_from_slice(&rest[taken..insert.at - base]);
                self.own.extend_from_slice(sheets.get(insert.part));
                taken = insert.at - base;
            }
            self.own.extend_from_slice(&rest[taken..]);
        }
        self.inserts.clear();
        (self.first, self.shared) = (0, 0);
        // Forgets what has left, once that is most of it.
        if self.sent > self.own.len() / 2 {
            self.own.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::offline_queue::OfflineSettings;
    use std::io::ErrorKind;

    /// Takes at most so much of what is offered.
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
        let spooling = Some(OfflineSettings::at(std::env::temp_dir()));
        let overflow = leaves_in_order(OfflineLimits {
            spooling,
            memory_max: 30_000,
            ..OfflineLimits::default()
        });
        assert!(overflow.times > 0 && overflow.bytes > 1_000_000, "{overflow:?}");
    }

    /// Also where some of it is moved to disk now and then.
    fn leaves_in_order(mut overflow: OfflineLimits) -> OfflineLimits {
        let (mut sheets, mut outbox) = (FrameArena::default(), SendQueue::default());
        let (mut taken, mut put) = (Vec::new(), Vec::new());
        for round in 0..2_000u32 {
            let pages = [sheets.fresh(), sheets.fresh()];
            for piece in 0..round % 150 {
                let bytes = (round << 8 | piece).to_le_bytes().repeat(piece as usize % 3 * 40);
                match (round ^ piece.wrapping_mul(0x9e37_79b9)) >> 7 & 3 {
                    0 => outbox.bytes().extend_from_slice(&bytes),
                    which => {
                        let page = pages[which as usize % 2];
                        // What stands between is for others.
                        if piece % 5 == 0 {
                            sheets.write(page, |out| out.push(0));
                        }
                        outbox.share(sheets.write(page, |out| out.extend_from_slice(&bytes)));
                    }
                }
                put.extend_from_slice(&bytes);
            }
            let mut room = (round as usize * 1_480) % 28_000;
            let write = |slices: &[IoSlice<'_>]| take(slices, &mut room, &mut taken);
            let sent = outbox.send(&sheets, &mut overflow, write);
            assert_eq!(sent.expect("no error"), outbox.is_empty());
            assert_eq!(outbox.len(), put.len() - taken.len());
            sheets.end_round();
            if round % 17 == 0 && !outbox.is_empty() {
                outbox.shed(round as usize * 50, &mut overflow).expect("room");
                assert_eq!(outbox.len(), put.len() - taken.len());
            }
            // Now and then somebody takes it all.
            if round % 400 == 399 {
                let mut write =
                    |slices: &[IoSlice<'_>]| take(slices, &mut { usize::MAX }, &mut taken);
                while !outbox.send(&sheets, &mut overflow, &mut write).expect("room") {}
                assert!(!outbox.is_behind() && outbox.held() == 0);
            }
        }
        let mut room = usize::MAX;
        let mut write = |slices: &[IoSlice<'_>]| take(slices, &mut room, &mut taken);
        while !outbox.send(&sheets, &mut overflow, &mut write).expect("room") {}
        assert_eq!(taken, put);
        assert!(outbox.send(&sheets, &mut overflow, |_| Ok(0)).expect("nothing to send"));
        outbox.bytes().push(1);
        let closed = outbox.send(&sheets, &mut overflow, |_| Ok(0)).expect_err("closed");
        assert!(matches!(closed, SendError::Ended(error) if error.kind() == ErrorKind::WriteZero));
        overflow
    }

    #[test]
    fn parts_that_stand_together_leave_as_one() {
        let (mut sheets, mut outbox) = (FrameArena::default(), SendQueue::default());
        let page = sheets.fresh();
        for _ in 0..1_000 {
            outbox.share(sheets.write(page, |out| out.extend_from_slice(b"frame")));
        }
        let sent = outbox.send(&sheets, &mut OfflineLimits::default(), |slices| {
            assert_eq!((slices.len(), slices[0].len()), (1, 5_000));
            Ok(5_000)
        });
        assert!(sent.expect("no error"));
    }
}
