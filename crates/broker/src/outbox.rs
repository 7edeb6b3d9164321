//! What waits to be sent to a client.

use crate::sheet::{Part, Sheets};
use std::io::{self, IoSlice};

/// An outbox that was once this large gives its memory back when it is empty.
const KEPT_BYTES: usize = 1 << 20;
/// So many pieces are handed over at a time.
const SLICES: usize = 64;

/// A part of a sheet between the outbox's own bytes.
#[derive(Clone, Copy, Debug)]
struct Insert {
    /// It comes before the own byte of this number.
    at: usize,
    part: Part,
}

/// Bytes in the order in which they leave: its own, and within a round those that it shares with
/// other outboxes.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    own: Vec<u8>,
    /// How many of its own have left.
    sent: usize,
    inserts: Vec<Insert>,
    /// The first of them that has not left as a whole.
    first: usize,
    /// How many bytes of them wait.
    shared: usize,
}

impl Outbox {
    /// Where to write behind all else.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    /// Puts a part of a sheet behind all else.
    #[inline]
    pub(crate) fn share(&mut self, part: Part) {
        self.shared += part.len();
        let at = self.own.len();
        if let Some(last) = self.inserts.last_mut()
            && last.part.sheet == part.sheet
            && last.part.end == part.start
            && last.at == at
        {
            last.part.end = part.end;
        } else {
            self.inserts.push(Insert { at, part });
        }
    }

    /// How many bytes wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.own.len() - self.sent + self.shared
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends until nothing is left, or `write` takes no more: then says that it is not empty, and
    /// has made what is left its own.
    ///
    /// # Errors
    /// What `write` says, but `WouldBlock` and `Interrupted`.
    pub(crate) fn send(
        &mut self,
        sheets: &Sheets,
        mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        while !self.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.fill(sheets, &mut slices);
            match write(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.leave(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.settle(sheets);
                    return Ok(false);
                }
                Err(error) => return Err(error),
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

    /// The next bytes to leave; how many slices they fill.
    fn fill<'a>(&'a self, sheets: &'a Sheets, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
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
        while count > 0 {
            let insert = self.inserts.get_mut(self.first);
            let until = insert.as_ref().map_or(self.own.len(), |insert| insert.at);
            let own = count.min(until - self.sent);
            self.sent += own;
            count -= own;
            let Some(Insert { part, .. }) = insert else { return };
            let shared = count.min(part.len());
            part.start += shared;
            self.shared -= shared;
            count -= shared;
            self.first += usize::from(part.len() == 0);
        }
    }

    /// Copies what it shares: the round is about to end.
    fn settle(&mut self, sheets: &Sheets) {
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
        let (mut sheets, mut outbox) = (Sheets::default(), Outbox::default());
        let (mut taken, mut put) = (Vec::new(), Vec::new());
        for round in 0..2_000u32 {
            let pages = [sheets.fresh(), sheets.fresh()];
            for piece in 0..round % 150 {
                let bytes = (round << 8 | piece).to_le_bytes().repeat(piece as usize % 3);
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
            let mut room = (round as usize * 37) % 700;
            let sent = outbox.send(&sheets, |slices| take(slices, &mut room, &mut taken));
            assert_eq!(sent.expect("no error"), outbox.is_empty());
            assert_eq!(outbox.len(), put.len() - taken.len());
            sheets.end_round();
        }
        let mut room = usize::MAX;
        assert!(outbox.send(&sheets, |slices| take(slices, &mut room, &mut taken)).expect("room"));
        assert_eq!(taken, put);
        assert!(outbox.send(&sheets, |_| Ok(0)).expect("nothing to send"));
        outbox.bytes().push(1);
        let closed = outbox.send(&sheets, |_| Ok(0)).expect_err("closed");
        assert_eq!(closed.kind(), ErrorKind::WriteZero);
    }

    #[test]
    fn parts_that_stand_together_leave_as_one() {
        let (mut sheets, mut outbox) = (Sheets::default(), Outbox::default());
        let page = sheets.fresh();
        for _ in 0..1_000 {
            outbox.share(sheets.write(page, |out| out.extend_from_slice(b"frame")));
        }
        let sent = outbox.send(&sheets, |slices| {
            assert_eq!((slices.len(), slices[0].len()), (1, 5_000));
            Ok(5_000)
        });
        assert!(sent.expect("no error"));
    }
}
