//! A reader of one stream in the journal, which goes on where it stopped and reads ahead.

use crate::catalog::first_time;
use crate::index::{Place, StreamIndex};
use lanecast_journal::{Cursor, ReadError, Storage};
use lanecast_wire::store::KeptMessage;

/// A place in a stream, and the messages that were read from there on and not taken yet.
#[derive(Debug)]
pub(crate) struct Reading<S: Storage> {
    pub(crate) stream: u32,
    /// Generation of the stream's index: in a later one the messages are others.
    pub(crate) generation: u64,
    /// Bytes of the journal that may still be read ahead.
    pub(crate) ahead_left: usize,
    /// The last fill has found no message.
    is_seeking: bool,
    place: Place,
    cursor: Cursor<S>,
    ahead: MessagesAhead,
}

/// Messages with consecutive sequences, in one piece of memory.
#[derive(Debug)]
struct MessagesAhead {
    /// Sequence of the first message that is left.
    next: u64,
    /// Time of each message, and the end of its bytes.
    messages: Vec<(u64, usize)>,
    bytes: Vec<u8>,
    /// Messages that were taken, and their bytes.
    taken: (usize, usize),
}

impl MessagesAhead {
    const fn new(next: u64) -> Self {
        Self { next, messages: Vec::new(), bytes: Vec::new(), taken: (0, 0) }
    }

    /// Sequence after the last message.
    const fn end(&self) -> u64 {
        self.next + (self.messages.len() - self.taken.0) as u64
    }

    #[inline]
    fn push(&mut self, unix_ns: u64, body: &[u8]) {
        let (count, bytes) = self.taken;
        if count * 2 >= self.messages.len() && bytes * 2 >= self.bytes.len() {
            self.forget_taken();
        }
        self.bytes.extend_from_slice(body);
        self.messages.push((unix_ns, self.bytes.len()));
    }

    /// Uses the memory of the messages that were taken again: no more is moved for it than was
    /// taken.
    fn forget_taken(&mut self) {
        let (count, bytes) = std::mem::take(&mut self.taken);
        self.messages.drain(..count);
        self.bytes.drain(..bytes);
        self.messages.iter_mut().for_each(|(_, end)| *end -= bytes);
    }

    /// Time and bytes of the first message that is left.
    #[inline]
    fn first(&self) -> Option<(u64, &[u8])> {
        let (count, start) = self.taken;
        let (unix_ns, end) = *self.messages.get(count)?;
        Some((unix_ns, &self.bytes[start..end]))
    }

    /// Takes the first message.
    #[inline]
    fn advance(&mut self) {
        if let Some((_, end)) = self.messages.get(self.taken.0) {
            self.taken = (self.taken.0 + 1, *end);
            self.next += 1;
        }
    }

    /// Bytes that are left.
    const fn len(&self) -> usize {
        self.bytes.len() - self.taken.1
    }
}

impl<S: Storage> Reading<S> {
    /// A reader whose next message is `next`: it is found from `place` on, where `cursor` stands.
    pub(crate) const fn new(
        (stream, generation): (u32, u64),
        next: u64,
        place: Place,
        cursor: Cursor<S>,
    ) -> Self {
        let ahead = MessagesAhead::new(next);
        Self { stream, generation, ahead_left: 0, is_seeking: false, place, cursor, ahead }
    }

    /// Sequence of the next message.
    pub(crate) const fn next(&self) -> u64 {
        self.ahead.next
    }

    /// Bytes of the messages that were read and not taken.
    pub(crate) const fn ahead_bytes(&self) -> usize {
        self.ahead.len()
    }

    /// Time and bytes of the next message, if it was read.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, &[u8])> {
        self.ahead.first()
    }

    /// Takes the next message.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.ahead.advance();
    }

    /// Whether the messages of this place were all read: the next one is elsewhere.
    pub(crate) fn is_at_end(&self) -> bool {
        self.ahead.end() >= self.place.end
    }

    /// Whether the next message is far from the one before in the journal.
    pub(crate) const fn is_seeking(&self) -> bool {
        self.is_seeking
    }

    /// Sequence of the next record in the journal.
    pub(crate) fn position(&self) -> Option<u64> {
        self.cursor.position()
    }

    /// Sequence of the message to read next.
    pub(crate) const fn unread(&self) -> u64 {
        self.ahead.end()
    }

    /// Goes on at `place`; `open` makes a cursor there, if this one does not stand there already.
    /// Returns whether there is one by now.
    pub(crate) fn go_on(
        &mut self,
        place: Place,
        open: impl FnOnce() -> Result<Option<Cursor<S>>, ReadError>,
    ) -> Result<bool, ReadError> {
        // Spans often follow each other at once.
        if self.cursor.position() != Some(place.position) {
            let Some(cursor) = open()? else { return Ok(false) };
            self.cursor = cursor;
        }
        self.place = place;
        Ok(true)
    }

    /// The span that is written to has grown since.
    pub(crate) fn extend(&mut self, index: &StreamIndex) {
        if let Some(place) = index.place(self.unread())
            && place.is_moved == self.place.is_moved
            && place.position <= self.cursor.position().unwrap_or(0)
        {
            self.place.end = place.end;
        }
    }

    /// Reads messages of this place, and stops behind `limit` bytes of the journal; returns how
    /// many bytes it has read, 0 at the end of the journal.
    pub(crate) fn fill(&mut self, limit: usize) -> Result<usize, ReadError> {
        let Self { stream, place, cursor, ahead, is_seeking, .. } = self;
        let first = ahead.end();
        let (mut read, mut next) = (0, first);
        if next >= place.end {
            return Ok(0);
        }
        cursor.read_while(|record| {
            // A record without a body counts, too.
            read += record.body.len().max(1);
            if record.topic == *stream
                && let Some(message) = KeptMessage::read(record.body)
                && (message.is_moved, message.sequence) == (place.is_moved, next)
            {
                ahead.push(first_time(message.unix_ns, record.unix_ns), message.body);
                next += 1;
            }
            read < limit && next < place.end
        })?;
        *is_seeking = next == first;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that never takes all that was read ahead, as one with short answers.
    #[test]
    fn messages_that_were_taken_take_no_memory() {
        for length in [0, 1_000] {
            let (mut ahead, body) = (MessagesAhead::new(5), vec![7; length]);
            (0..10).for_each(|time| ahead.push(time, &body));
            for time in 10..100_000 {
                assert_eq!(ahead.first(), Some((time - 10, body.as_slice())));
                ahead.advance();
                ahead.push(time, &body);
            }
            assert_eq!((ahead.next, ahead.end(), ahead.len()), (99_995, 100_005, 10 * length));
            assert!(ahead.messages.len() <= 32 && ahead.bytes.len() <= 32 * length);
        }
    }
}
