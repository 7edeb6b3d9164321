//! Packetizer: lays messages out as datagrams in the send window; staged messages follow the
//! published ones.
//!
//! A message that fits in one datagram is written in place, into the bytes that will be sent. A
//! longer one is written to a scratch buffer and split into fragments when the next message is
//! staged or the batch is published.

use super::error::StageError;
use super::layout::{LastStaged, NOT_LAID, NOWHERE, Position, TopicState, WriteAt};
use super::window::{MANY, Window};
use crate::sequence::earlier;
use lanecast_wire::net::{
    BlockHeader, DATA_OFFSET, DataHeader, FrameHeader, ItemFlags, ItemHeader, Kind, MAGIC,
    TOTAL_BYTES, VERSION, item_bytes,
};
use std::mem::offset_of;
use std::ops::Range;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

const BLOCK: usize = size_of::<BlockHeader>();
const ITEM: usize = size_of::<ItemHeader>();
/// Datagrams are padded to a multiple of this, so that they stay contiguous and aligned.
const ALIGN: usize = 8;
/// Shortest fragment worth adding to an open datagram, in bytes.
const FRAGMENT_MIN: usize = 64;
/// The send window, its open datagram and the positions of the topics.
#[derive(Debug)]
pub(super) struct Packetizer {
    pub(super) window: Window,
    pub(super) topics: Vec<TopicState>,
    /// Topics with staged messages.
    touched: Vec<u32>,
    /// Scratch buffer for messages that are not written in place.
    scratch: Box<[u8]>,
    at: WriteAt,
    /// `at` as of the last publish: an aborted batch rewinds to it.
    mark: WriteAt,
    /// A block or datagram was begun or ended since `mark`, so all of `mark` is stale.
    mark_is_stale: bool,
    last: LastStaged,
    pub(super) staged: usize,
    /// Messages counted without being written, since the count was last taken.
    unsubscribed: usize,
    flush_later: bool,
    session: u64,
    /// Longest datagram.
    limit: usize,
    /// Length of the previous datagram: equal lengths make longer runs.
    previous: usize,
}

impl Packetizer {
    /// Creates a packetizer of datagrams of up to `limit` bytes and messages of up to `longest`.
    pub(super) fn new(window: Window, session: u64, limit: usize, longest: usize) -> Self {
        let at = WriteAt::new(window.next(), window.end());
        Self {
            window,
            topics: Vec::new(),
            touched: Vec::new(),
            scratch: vec![0; longest].into(),
            at,
            mark: at,
            mark_is_stale: true,
            last: LastStaged::None,
            staged: 0,
            unsubscribed: 0,
            flush_later: false,
            session,
            limit: limit - limit % ALIGN,
            previous: 0,
        }
    }

    /// Adds the next topic.
    pub(super) fn add_topic(&mut self, subscribed: bool) {
        self.topics.push(TopicState::new(subscribed));
        // Staging must not allocate.
        self.touched.reserve(self.topics.len());
    }

    /// Sets whether messages on the topic are written at all.
    pub(super) fn set_subscribed(&mut self, topic: u32, subscribed: bool) {
        self.topics[topic as usize].subscribed = subscribed;
    }

    /// The longest message.
    pub(super) const fn longest(&self) -> usize {
        self.scratch.len()
    }

    /// Sequence before which all datagrams are published and closed.
    pub(super) const fn visible(&self) -> u64 {
        self.mark.next
    }

    /// Whether the open datagram holds published messages.
    pub(super) const fn has_open(&self) -> bool {
        self.mark.used > 0
    }

    /// Published position of a topic.
    pub(super) fn position(&self, topic: u32) -> Position {
        self.topics[topic as usize].published
    }

    /// Fast path of nearly all messages: stages one in the open block of its topic. False, without
    /// an effect, if it does not fit there.
    #[inline(always)]
    pub(super) fn stage_in_block(&mut self, topic: u32, len: usize) -> bool {
        let fits = self.at.topic == topic
            && topic != MANY
            && len <= self.limit
            && self.at.used + item_bytes(len) <= self.limit
            && !matches!(self.last, LastStaged::Long { .. });
        if fits {
            self.last = LastStaged::InPlace(self.write_item(topic, ItemFlags::WHOLE, len));
            self.staged += 1;
        }
        fits
    }

    /// Stages a message. May overwrite datagrams before `floor`, or any published one without it.
    pub(super) fn stage(
        &mut self,
        topic: u32,
        len: usize,
        floor: Option<u64>,
    ) -> Result<(), StageError> {
        if matches!(self.last, LastStaged::Long { .. }) {
            self.split_long();
        }
        let known = self.topics.get(topic as usize).ok_or(StageError::NoSuchTopic)?;
        let subscribed = known.subscribed;
        if len > self.longest() {
            return Err(StageError::TooLong { longest: self.longest() });
        }
        let bytes = item_bytes(len);
        if !subscribed {
            self.count_unsubscribed(topic);
            self.last = LastStaged::Discarded(len);
        } else if DATA_OFFSET + BLOCK + bytes > self.limit {
            let room = self.has_room(None, self.datagrams_of(len), floor);
            room.then_some(()).ok_or(StageError::WindowFull)?;
            self.last = LastStaged::Long { topic, len };
        } else {
            if self.at.topic != topic || self.at.used + bytes > self.limit {
                self.open_block(topic, bytes, floor)?;
            }
            self.last = LastStaged::InPlace(self.write_item(topic, ItemFlags::WHOLE, len));
        }
        self.staged += 1;
        Ok(())
    }

    /// Whether `count` messages on `topic` of `bytes` bytes in all have room, however they are
    /// packed, and also if the open datagram is closed before. The room stays until something is
    /// staged, unless `floor` goes back. Makes room as [`stage`](Self::stage) does.
    pub(super) fn has_room_for(
        &mut self,
        topic: u32,
        (count, bytes): (usize, usize),
        floor: Option<u64>,
    ) -> Result<(), StageError> {
        let known = self.topics.get(topic as usize).ok_or(StageError::NoSuchTopic)?;
        let limit = self.limit;
        let header = DATA_OFFSET + BLOCK;
        let items = bytes + count * (ITEM + ALIGN);
        let open = (self.at.used > 0).then(|| self.at.position + limit as u64);
        let has_room = if !known.subscribed {
            true
        } else if count <= 1 {
            let open = open.map(|_| self.at.position + self.length(false) as u64);
            self.has_room(open, self.datagrams_of(bytes), floor)
        } else if header + items <= limit {
            self.has_room(open, 1, floor)
        } else {
            // Two datagrams in a row have more items than fit into one. A long message leaves less
            // than a shortest fragment free, and adds an item to each of its datagrams.
            let fragment = ITEM + TOTAL_BYTES + ALIGN;
            let datagrams = 1 + (2 * items).div_ceil(limit - header - fragment - FRAGMENT_MIN);
            let used = items + datagrams * (header + fragment);
            // Padding adds at most an eighth of the result. A long message finds room before it is
            // split: for the open datagram, and for its own at their full length.
            let length = used + used / 7 + datagrams * ALIGN + 2 * limit;
            let until = self.floor(floor);
            self.window.make_room_for(open, (datagrams, length), limit, until)
        };
        has_room.then_some(()).ok_or(StageError::WindowFull)
    }

    /// Datagrams for which a message needs room beside the open one.
    fn datagrams_of(&self, len: usize) -> usize {
        if DATA_OFFSET + BLOCK + item_bytes(len) <= self.limit {
            return 1;
        }
        // Room for the open datagram and for all that the message may need, although it is split
        // only later: splitting must not fail.
        let each = (self.limit - DATA_OFFSET - BLOCK - ITEM) & !3;
        1 + (len + TOTAL_BYTES).div_ceil(each)
    }

    /// The bytes of the last staged message; empty without one.
    #[inline(always)]
    pub(super) fn staged(&mut self) -> &mut [u8] {
        match self.last {
            LastStaged::InPlace(ref range) => &mut self.window.bytes[range.clone()],
            LastStaged::Long { len, .. } | LastStaged::Discarded(len) => &mut self.scratch[..len],
            LastStaged::None => &mut [],
        }
    }

    /// As [`staged`](Self::staged), read-only.
    #[inline]
    pub(super) fn staged_bytes(&self) -> &[u8] {
        match self.last {
            LastStaged::InPlace(ref range) => &self.window.bytes[range.clone()],
            LastStaged::Long { len, .. } | LastStaged::Discarded(len) => &self.scratch[..len],
            LastStaged::None => &[],
        }
    }

    /// Publishes all staged messages; returns how many.
    #[inline(always)]
    pub(super) fn publish(&mut self) -> usize {
        if matches!(self.last, LastStaged::Long { .. }) {
            self.split_long();
        }
        // A loop and `clear`, not `drain`, which costs more than the rest of this function.
        for topic in &self.touched {
            let state = &mut self.topics[*topic as usize];
            state.published = state.staged;
            state.last = NOWHERE;
        }
        self.touched.clear();
        if std::mem::take(&mut self.mark_is_stale) {
            self.mark = self.at;
        } else {
            // Only these two have changed. Copying the whole struct would wait for their stores:
            // the load is wider than they are, so the CPU cannot forward them.
            (self.mark.used, self.mark.count) = (self.at.used, self.at.count);
        }
        debug_assert_eq!(self.mark, self.at, "nothing else has changed");
        self.end_batch()
    }

    /// Discards all staged messages.
    pub(super) fn unstage(&mut self) {
        for topic in self.touched.drain(..) {
            let state = &mut self.topics[topic as usize];
            state.staged = state.published;
            state.last = NOWHERE;
        }
        self.at = self.mark;
        self.window.rewind(self.at.next, self.at.end);
        self.unsubscribed = 0;
        self.end_batch();
    }

    #[inline(always)]
    fn end_batch(&mut self) -> usize {
        self.last = LastStaged::None;
        let count = std::mem::take(&mut self.staged);
        if self.flush_later {
            self.flush();
        }
        count
    }

    /// Messages published without a subscriber since the last call.
    #[inline]
    pub(super) fn take_unsubscribed(&mut self) -> usize {
        // Read first: an unconditional store would delay the next message.
        if self.unsubscribed == 0 { 0 } else { std::mem::take(&mut self.unsubscribed) }
    }

    /// Closes the open datagram, or does so after the batch if messages are staged.
    ///
    /// Returns whether a receiver's stream can begin here: no datagram is open, and no staged
    /// message was counted without being written, which the new receiver would miss.
    pub(super) fn flush(&mut self) -> bool {
        self.flush_later = self.staged > 0 && self.has_open();
        if self.staged == 0 && self.at.used > 0 {
            self.close(false);
            self.mark = self.at;
        }
        let has_unwritten = self.staged > 0 && self.unsubscribed > 0;
        !self.flush_later && !has_unwritten
    }

    /// Counts a message on a topic without subscribers: a receiver that was dropped and comes back
    /// learns from the numbers what it has missed.
    fn count_unsubscribed(&mut self, topic: u32) {
        self.unsubscribed += 1;
        if self.at.topic == topic {
            self.end_block();
        }
        if self.topics[topic as usize].count_unwritten() == NOWHERE {
            self.touched.push(topic);
        }
    }

    /// Whether `count` datagrams fit, after the open one if that will end at `open`.
    fn has_room(&mut self, open: Option<u64>, count: usize, floor: Option<u64>) -> bool {
        let until = self.floor(floor);
        self.window.make_room(open, count, self.limit, until)
    }

    /// The first datagram that may not be overwritten.
    fn floor(&self, floor: Option<u64>) -> u64 {
        floor.map_or(self.mark.next, |floor| earlier(floor, self.mark.next))
    }

    /// Opens a block on `topic` with room for `bytes`, in a new datagram if necessary.
    fn open_block(
        &mut self,
        topic: u32,
        bytes: usize,
        floor: Option<u64>,
    ) -> Result<(), StageError> {
        if self.at.used == 0 {
            // Checked before anything changes: an error must leave no trace.
            self.has_room(None, 1, floor).then_some(()).ok_or(StageError::WindowFull)?;
            self.open_datagram();
        } else if self.at.used + BLOCK + bytes <= self.limit {
            self.end_block();
        } else {
            // Prefer padding to the previous length, if the window has room for that, too.
            let end = |full| Some(self.at.position + self.length(full) as u64);
            let ends = [(true, end(true)), (false, end(false))];
            let room = ends.into_iter().find(|(_, open)| self.has_room(*open, 1, floor));
            self.close(room.ok_or(StageError::WindowFull)?.0);
            self.open_datagram();
        }
        self.begin_block(topic);
        Ok(())
    }

    /// Opens the next datagram; the caller has made room.
    fn open_datagram(&mut self) {
        let (position, start) = self.window.place(self.limit);
        let header = FrameHeader {
            magic: MAGIC.into(),
            version: VERSION,
            kind: Kind::Data as u8,
            flags: 0.into(),
            length: 0.into(),
            session: self.session.into(),
            sequence: self.window.next().into(),
        };
        self.window.write(start, &header);
        let data = DataHeader { skipped: 0.into(), retained: 0.into() };
        self.window.write(start + size_of::<FrameHeader>(), &data);
        self.mark_is_stale = true;
        self.at =
            WriteAt { position, start, used: DATA_OFFSET, topic: MANY, only: MANY, ..self.at };
    }

    fn begin_block(&mut self, topic: u32) {
        let at = self.at.start + self.at.used;
        let Position { fragment, message } = self.topics[topic as usize].staged;
        let header = BlockHeader {
            topic: topic.into(),
            length: 0.into(),
            count: 0.into(),
            fragment: fragment.into(),
            message: message.into(),
        };
        self.window.write(at, &header);
        let is_first = self.at.used == DATA_OFFSET;
        self.at.only = if is_first || self.at.only == topic { topic } else { MANY };
        self.at.used += BLOCK;
        self.mark_is_stale = true;
        (self.at.block, self.at.topic, self.at.count) = (at, topic, 0);
    }

    fn end_block(&mut self) {
        if self.at.topic == MANY {
            return;
        }
        let length = self.at.start + self.at.used - self.at.block - BLOCK;
        let at = self.at.block + offset_of!(BlockHeader, length);
        self.window.write(at, &[U16::new(length as u16), U16::new(self.at.count)]);
        self.at.topic = MANY;
        self.mark_is_stale = true;
    }

    /// Final length of the open datagram. A full one is padded to the previous length or the limit
    /// where that adds at most an eighth: equal lengths make longer runs.
    fn length(&self, full: bool) -> usize {
        let used = self.at.used;
        let acceptable = |length: &usize| *length >= used && length - used <= length / 8;
        let padded = [self.previous, self.limit].into_iter().filter(|_| full).find(acceptable);
        padded.unwrap_or(used.next_multiple_of(ALIGN))
    }

    /// Closes the open datagram; a `full` one may be padded.
    fn close(&mut self, full: bool) {
        self.end_block();
        let (used, length) = (self.at.used, self.length(full));
        self.previous = length;
        let start = self.at.start;
        self.window.bytes[start + used..start + length].fill(0);
        self.window.write(start + offset_of!(FrameHeader, length), &U16::new(length as u16));
        self.window.close(self.at.position, length, self.at.only);
        let (next, end) = (self.window.next(), self.window.end());
        self.mark_is_stale = true;
        self.at = WriteAt { next, end, used: 0, topic: MANY, ..self.at };
    }

    /// Writes an item's header to the open block; returns the range of its bytes.
    #[inline(always)]
    fn write_item(&mut self, topic: u32, flags: u16, len: usize) -> Range<usize> {
        let item = self.at.start + self.at.used;
        let header = ItemHeader { length: (len as u16).into(), flags: flags.into() };
        self.window.write(item, &header);
        self.at.used += item_bytes(len);
        self.at.count += 1;
        let state = &mut self.topics[topic as usize];
        // One store of both numbers, without a branch between them: the next message loads them
        // together, and the CPU cannot forward two narrow stores to one wide load.
        let ends = u64::from(flags & ItemFlags::END != 0);
        let Position { fragment, message } = state.staged;
        state.staged =
            Position { fragment: fragment.wrapping_add(1), message: message.wrapping_add(ends) };
        let before = std::mem::replace(&mut state.last, item);
        if before == NOWHERE {
            self.touched.push(topic);
        } else if flags & ItemFlags::BEGIN != 0 && before != NOT_LAID {
            // The previous message was not the last of the batch on its topic after all.
            self.window.bytes[before + offset_of!(ItemHeader, flags)] |= ItemFlags::MORE as u8;
        }
        item + ITEM..item + ITEM + len
    }

    /// Splits the message in the scratch buffer; `stage` has made room for the fragments.
    pub(super) fn split_long(&mut self) {
        let LastStaged::Long { topic, len } = std::mem::replace(&mut self.last, LastStaged::None)
        else {
            return;
        };
        // Taken out for the loop: it borrows `self` mutably.
        let scratch = std::mem::take(&mut self.scratch);
        let mut rest = &scratch[..len];
        let mut flags = ItemFlags::BEGIN;
        loop {
            let total = if flags == ItemFlags::BEGIN { TOTAL_BYTES } else { 0 };
            let room = self.room_for_fragment(topic) - total;
            let (fragment, left) = rest.split_at(room.min(rest.len()));
            rest = left;
            if rest.is_empty() {
                flags |= ItemFlags::END;
            }
            let range = self.write_item(topic, flags, total + fragment.len());
            let (begin, bytes) = self.window.bytes[range].split_at_mut(total);
            begin.copy_from_slice(&U32::new(len as u32).as_bytes()[..total]);
            bytes.copy_from_slice(fragment);
            if rest.is_empty() {
                break;
            }
            flags = 0;
        }
        self.scratch = scratch;
    }

    /// Opens a block on `topic` if none is open; returns the longest item that fits.
    fn room_for_fragment(&mut self, topic: u32) -> usize {
        let header = if self.at.topic == topic { 0 } else { BLOCK };
        let left = self.limit.saturating_sub(self.at.used + header + ITEM);
        if self.at.used > 0 && left < FRAGMENT_MIN {
            self.close(true);
        }
        if self.at.used == 0 {
            self.open_datagram();
        }
        if self.at.topic != topic {
            self.end_block();
            self.begin_block(topic);
        }
        (self.limit - self.at.used - ITEM) & !3
    }
}

#[cfg(test)]
mod tests;
