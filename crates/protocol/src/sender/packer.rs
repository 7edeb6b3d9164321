//! Lays messages out as datagrams, in place: what is staged lies behind what is published.
//!
//! A message that fits in one datagram is written where it will be sent from. A longer one is
//! written aside and cut into pieces as soon as something follows it.

mod piece;

use super::StageError;
use super::window::{MANY, Window};
use crate::sequence::earlier;
use lanecast_wire::net::{
    BlockHeader, DATA_OFFSET, DataHeader, FrameHeader, ItemFlags, ItemHeader, Kind, MAGIC,
    TOTAL_BYTES, VERSION, item_bytes,
};
use std::mem::offset_of;
use std::ops::Range;
use zerocopy::little_endian::U16;
use zerocopy::{Immutable, IntoBytes};

const BLOCK: usize = size_of::<BlockHeader>();
const ITEM: usize = size_of::<ItemHeader>();
/// Datagrams have a length that is a multiple of this, so that they lie one behind the other.
const ALIGN: usize = 8;
/// No item.
const NOWHERE: usize = usize::MAX;
/// An item that was not laid out, since nobody wants it.
const NOT_LAID: usize = usize::MAX - 1;

/// How far a topic has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) piece: u64,
    pub(super) message: u64,
}

#[derive(Debug)]
struct Head {
    staged: Numbers,
    published: Numbers,
    /// Where the header of its last staged item lies.
    last: usize,
    wanted: bool,
}

/// Where the next item goes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    /// The sequence of the open datagram, or of the one to be opened.
    next: u64,
    end: u64,
    position: u64,
    start: usize,
    /// The open datagram's bytes so far; 0 if none is open.
    used: usize,
    block: usize,
    /// The open block's topic; [`MANY`] if none is open.
    topic: u32,
    count: u16,
    only: u32,
}

#[derive(Debug)]
enum Last {
    None,
    InPlace(Range<usize>),
    Long { topic: u32, len: usize },
    Unwanted(usize),
}

/// The window, its open datagram and the numbers of the topics.
#[derive(Debug)]
pub(super) struct Packer {
    pub(super) window: Window,
    heads: Vec<Head>,
    touched: Vec<u32>,
    aside: Box<[u8]>,
    at: Place,
    /// As of the last publishing.
    mark: Place,
    /// A block or a datagram was begun or ended since.
    has_turned: bool,
    last: Last,
    staged: usize,
    unwanted: usize,
    flush_later: bool,
    session: u64,
    limit: usize,
    previous: usize,
}

impl Packer {
    /// Packs into datagrams of at most `limit` bytes.
    pub(super) fn new(window: Window, session: u64, limit: usize, longest: usize) -> Self {
        let at = Place {
            next: window.next(),
            end: window.end(),
            position: 0,
            start: 0,
            used: 0,
            block: 0,
            topic: MANY,
            count: 0,
            only: MANY,
        };
        Self {
            window,
            heads: Vec::new(),
            touched: Vec::new(),
            aside: vec![0; longest].into(),
            at,
            mark: at,
            has_turned: true,
            last: Last::None,
            staged: 0,
            unwanted: 0,
            flush_later: false,
            session,
            limit: limit - limit % ALIGN,
            previous: 0,
        }
    }

    /// Adds the next topic.
    pub(super) fn add_topic(&mut self, wanted: bool) {
        let zero = Numbers::default();
        self.heads.push(Head { staged: zero, published: zero, last: NOWHERE, wanted });
        // So that staging never allocates.
        self.touched.reserve(self.heads.len());
    }

    /// Whether messages on the topic are laid out at all.
    pub(super) fn set_wanted(&mut self, topic: u32, wanted: bool) {
        self.heads[topic as usize].wanted = wanted;
    }

    pub(super) fn is_wanted(&self, topic: u32) -> bool {
        self.heads.get(topic as usize).is_some_and(|head| head.wanted)
    }

    /// The longest message.
    pub(super) const fn longest(&self) -> usize {
        self.aside.len()
    }

    /// The datagrams before this one are published and closed.
    pub(super) const fn visible(&self) -> u64 {
        self.mark.next
    }

    /// Whether the open datagram holds published messages.
    pub(super) const fn has_open(&self) -> bool {
        self.mark.used > 0
    }

    /// How far the topic has come, as published.
    pub(super) fn numbers(&self, topic: u32) -> Numbers {
        self.heads[topic as usize].published
    }

    /// How many topics there are.
    pub(super) const fn topics(&self) -> usize {
        self.heads.len()
    }

    /// Room for a message behind the one before it, if that is open and there is some: what nearly
    /// all messages of a stream need.
    #[inline(always)]
    pub(super) fn stage_behind(&mut self, topic: u32, len: usize) -> bool {
        let fits = self.at.topic == topic
            && topic != MANY
            && len <= self.limit
            && self.at.used + item_bytes(len) <= self.limit
            && !matches!(self.last, Last::Long { .. });
        if fits {
            self.last = Last::InPlace(self.lay(topic, ItemFlags::WHOLE, len));
            self.staged += 1;
        }
        fits
    }

    /// Room for a message; datagrams before `floor` (any published one, if there is none) may be
    /// overwritten for it.
    pub(super) fn stage(
        &mut self,
        topic: u32,
        len: usize,
        floor: Option<u64>,
    ) -> Result<(), StageError> {
        if matches!(self.last, Last::Long { .. }) {
            self.cut();
        }
        let wanted = self.heads.get(topic as usize).ok_or(StageError::NoSuchTopic)?.wanted;
        if len > self.longest() {
            return Err(StageError::TooLong { longest: self.longest() });
        }
        let bytes = item_bytes(len);
        if !wanted {
            self.pass_over(topic);
            self.last = Last::Unwanted(len);
        } else if DATA_OFFSET + BLOCK + bytes > self.limit {
            // The open datagram, and those that the message may need.
            let each = (self.limit - DATA_OFFSET - BLOCK - ITEM) & !3;
            let room = self.has_room(None, 1 + (len + TOTAL_BYTES).div_ceil(each), floor);
            room.then_some(()).ok_or(StageError::WindowFull)?;
            self.last = Last::Long { topic, len };
        } else {
            if self.at.topic != topic || self.at.used + bytes > self.limit {
                self.turn_to(topic, bytes, floor)?;
            }
            self.last = Last::InPlace(self.lay(topic, ItemFlags::WHOLE, len));
        }
        self.staged += 1;
        Ok(())
    }

    /// The bytes of the last staged message; none if there is none.
    #[inline(always)]
    pub(super) fn staged(&mut self) -> &mut [u8] {
        match self.last {
            Last::InPlace(ref range) => &mut self.window.bytes[range.clone()],
            Last::Long { len, .. } | Last::Unwanted(len) => &mut self.aside[..len],
            Last::None => &mut [],
        }
    }

    /// As [`staged`](Self::staged), to look at.
    #[inline]
    pub(super) fn staged_bytes(&self) -> &[u8] {
        match self.last {
            Last::InPlace(ref range) => &self.window.bytes[range.clone()],
            Last::Long { len, .. } | Last::Unwanted(len) => &self.aside[..len],
            Last::None => &[],
        }
    }

    /// Publishes what is staged; how many messages that were.
    #[inline(always)]
    pub(super) fn publish(&mut self) -> usize {
        if matches!(self.last, Last::Long { .. }) {
            self.cut();
        }
        // Not drained: that costs more than the rest of this.
        for topic in &self.touched {
            let head = &mut self.heads[*topic as usize];
            head.published = head.staged;
            head.last = NOWHERE;
        }
        self.touched.clear();
        if std::mem::take(&mut self.has_turned) {
            self.mark = self.at;
        } else {
            // The rest is as it was, and copying all of it would wait for these two.
            (self.mark.used, self.mark.count) = (self.at.used, self.at.count);
        }
        debug_assert_eq!(self.mark, self.at, "nothing else has changed");
        self.end_batch()
    }

    /// Drops what is staged.
    pub(super) fn unstage(&mut self) {
        for topic in self.touched.drain(..) {
            let head = &mut self.heads[topic as usize];
            head.staged = head.published;
            head.last = NOWHERE;
        }
        self.at = self.mark;
        self.window.rewind(self.at.next, self.at.end);
        self.unwanted = 0;
        self.end_batch();
    }

    #[inline(always)]
    fn end_batch(&mut self) -> usize {
        self.last = Last::None;
        let count = std::mem::take(&mut self.staged);
        if self.flush_later {
            self.flush();
        }
        count
    }

    /// How many messages that were published nobody wanted, since the last time this was asked.
    #[inline]
    pub(super) fn take_unwanted(&mut self) -> usize {
        // Looked at first: to write it each time would make the next one wait.
        if self.unwanted == 0 { 0 } else { std::mem::take(&mut self.unwanted) }
    }

    /// Closes the open datagram; as long as something is staged, that waits. Whether a receiver can
    /// begin here: none is open, and nothing staged has a number that only a receiver that is not
    /// there yet would miss.
    pub(super) fn flush(&mut self) -> bool {
        self.flush_later = self.staged > 0 && self.has_open();
        if self.staged == 0 && self.at.used > 0 {
            self.close(false);
            self.mark = self.at;
        }
        let passes_over = self.staged > 0 && self.unwanted > 0;
        !self.flush_later && !passes_over
    }

    /// Counts a message that nobody wants, so that a receiver that was thought to be gone learns
    /// what it has missed.
    fn pass_over(&mut self, topic: u32) {
        self.unwanted += 1;
        if self.at.topic == topic {
            self.end_block();
        }
        let head = &mut self.heads[topic as usize];
        head.staged.piece = head.staged.piece.wrapping_add(1);
        head.staged.message = head.staged.message.wrapping_add(1);
        if std::mem::replace(&mut head.last, NOT_LAID) == NOWHERE {
            self.touched.push(topic);
        }
    }

    /// Whether `count` datagrams fit in, behind the open one if that will end at `open`.
    fn has_room(&mut self, open: Option<u64>, count: usize, floor: Option<u64>) -> bool {
        let until = floor.map_or(self.mark.next, |floor| earlier(floor, self.mark.next));
        self.window.make_room(open, count, self.limit, until)
    }

    /// Opens a block on `topic` with room for `bytes`.
    fn turn_to(&mut self, topic: u32, bytes: usize, floor: Option<u64>) -> Result<(), StageError> {
        if self.at.used == 0 {
            // Before anything changes.
            self.has_room(None, 1, floor).then_some(()).ok_or(StageError::WindowFull)?;
            self.turn_over();
        } else if self.at.used + BLOCK + bytes <= self.limit {
            self.end_block();
        } else {
            // Padded if there is room for that, too.
            let end = |full| Some(self.at.position + self.length(full) as u64);
            let ends = [(true, end(true)), (false, end(false))];
            let room = ends.into_iter().find(|(_, open)| self.has_room(*open, 1, floor));
            self.close(room.ok_or(StageError::WindowFull)?.0);
            self.turn_over();
        }
        self.begin_block(topic);
        Ok(())
    }

    /// Opens the next datagram, for which there is room.
    fn turn_over(&mut self) {
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
        self.write(start, &header);
        let data = DataHeader { skipped: 0.into(), retained: 0.into() };
        self.write(start + size_of::<FrameHeader>(), &data);
        self.has_turned = true;
        self.at = Place { position, start, used: DATA_OFFSET, topic: MANY, only: MANY, ..self.at };
    }

    fn begin_block(&mut self, topic: u32) {
        let at = self.at.start + self.at.used;
        let Numbers { piece, message } = self.heads[topic as usize].staged;
        let header = BlockHeader {
            topic: topic.into(),
            length: 0.into(),
            count: 0.into(),
            piece: piece.into(),
            message: message.into(),
        };
        self.write(at, &header);
        let is_first = self.at.used == DATA_OFFSET;
        self.at.only = if is_first || self.at.only == topic { topic } else { MANY };
        self.at.used += BLOCK;
        self.has_turned = true;
        (self.at.block, self.at.topic, self.at.count) = (at, topic, 0);
    }

    fn end_block(&mut self) {
        if self.at.topic == MANY {
            return;
        }
        let length = self.at.start + self.at.used - self.at.block - BLOCK;
        let at = self.at.block + offset_of!(BlockHeader, length);
        self.write(at, &[U16::new(length as u16), U16::new(self.at.count)]);
        self.at.topic = MANY;
        self.has_turned = true;
    }

    /// How long the open datagram will be.
    fn length(&self, full: bool) -> usize {
        let used = self.at.used;
        let bearable = |length: &usize| *length >= used && length - used <= length / 8;
        let padded = [self.previous, self.limit].into_iter().filter(|_| full).find(bearable);
        padded.unwrap_or(used.next_multiple_of(ALIGN))
    }

    /// Closes the open datagram; a full one may be padded, so that it is as long as others.
    fn close(&mut self, full: bool) {
        self.end_block();
        let (used, length) = (self.at.used, self.length(full));
        self.previous = length;
        let start = self.at.start;
        self.window.bytes[start + used..start + length].fill(0);
        self.write(start + offset_of!(FrameHeader, length), &U16::new(length as u16));
        self.window.close(self.at.position, length, self.at.only);
        let (next, end) = (self.window.next(), self.window.end());
        self.has_turned = true;
        self.at = Place { next, end, used: 0, topic: MANY, ..self.at };
    }

    /// Lays out one item in the open block; where its bytes go.
    #[inline(always)]
    fn lay(&mut self, topic: u32, flags: u16, len: usize) -> Range<usize> {
        let item = self.at.start + self.at.used;
        let header = ItemHeader { length: (len as u16).into(), flags: flags.into() };
        self.write(item, &header);
        self.at.used += item_bytes(len);
        self.at.count += 1;
        let head = &mut self.heads[topic as usize];
        // Both written as one, without a branch between them: they are soon read as one, and what
        // was written in two halves would have to reach the cache first.
        let ends = u64::from(flags & ItemFlags::END != 0);
        let Numbers { piece, message } = head.staged;
        head.staged = Numbers { piece: piece.wrapping_add(1), message: message.wrapping_add(ends) };
        let before = std::mem::replace(&mut head.last, item);
        if before == NOWHERE {
            self.touched.push(topic);
        } else if flags & ItemFlags::BEGIN != 0 && before != NOT_LAID {
            // The message before this one was not the batch's last on its topic.
            self.window.bytes[before + offset_of!(ItemHeader, flags)] |= ItemFlags::MORE as u8;
        }
        item + ITEM..item + ITEM + len
    }

    #[inline(always)]
    fn write<T: IntoBytes + Immutable + ?Sized>(&mut self, at: usize, part: &T) {
        let part = part.as_bytes();
        self.window.bytes[at..at + part.len()].copy_from_slice(part);
    }
}

#[cfg(test)]
mod tests;
