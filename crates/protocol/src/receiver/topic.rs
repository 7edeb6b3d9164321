//! One topic of the session: which piece is next, what waits for it, and what is lost.

mod ending;

use super::block::{Block, ITEMS_MAX, KeptBlock, Store};
use super::gap_tracker::GapTracker;
use super::{Delivery, LossReason, ReceiverCounters};
use crate::sequence::{ahead, before, later};
use lanecast_wire::net::{Item, Items, TOTAL_BYTES};
use std::collections::VecDeque;

/// A topic that the receiver wants.
#[derive(Debug)]
pub struct Topic {
    name: String,
    number: Option<u32>,
    /// The session is asked for it.
    pub(super) is_sought: bool,
    /// The next piece, and the message that it belongs to.
    piece: u64,
    message: u64,
    /// The first message.
    base: u64,
    /// No piece from `piece` on is in a datagram before this one.
    floor: u64,
    /// Nothing has come yet.
    fresh: bool,
    /// The session goes on after messages that the sender sent to no receiver: these took no
    /// datagrams, so the next head may be any number of pieces ahead.
    may_leap: bool,
    /// The rest of the message that `piece` belongs to is not wanted.
    skip: bool,
    assembly: Option<Assembly>,
    /// Blocks were dropped that contradict what came before: what they had is lost, unless what
    /// follows tells how much that was.
    contradicted: bool,
    /// Messages of a batch that goes on.
    held: Vec<Delivery>,
    held_bytes: Vec<usize>,
    kept: VecDeque<KeptBlock>,
    head: Option<Head>,
    /// `Left` was told.
    has_left: bool,
    /// It is in the list of those where something waits.
    pub(super) is_listed: bool,
}

/// A message in pieces.
#[derive(Debug)]
struct Assembly {
    bytes: Vec<u8>,
    total: usize,
}

/// How far the topic had come before a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) sequence: u64,
    pub(super) piece: u64,
    pub(super) message: u64,
}

/// Where a topic's deliveries go, and what it may use.
pub(super) struct Sink<'a> {
    pub(super) slot: u32,
    pub(super) out: &'a mut Vec<Delivery>,
    pub(super) store: &'a mut Store,
    /// For messages that are put together.
    pub(super) assemblies: &'a mut Store,
    pub(super) counters: &'a mut ReceiverCounters,
    /// Why what is lost now is lost.
    pub(super) why: LossReason,
    pub(super) longest: usize,
}

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Done,
    /// It waits.
    Kept,
    /// It should wait, but there is no room.
    NoRoom,
}

impl Topic {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            number: None,
            is_sought: true,
            piece: 0,
            message: 0,
            base: 0,
            floor: 0,
            fresh: true,
            may_leap: false,
            skip: false,
            assembly: None,
            contradicted: false,
            held: Vec::new(),
            held_bytes: Vec::new(),
            kept: VecDeque::new(),
            head: None,
            has_left: false,
            is_listed: false,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number within the session, once that is known.
    pub const fn number(&self) -> Option<u32> {
        self.number
    }

    pub(super) fn begin(&mut self, number: u32, head: Head) {
        self.number = Some(number);
        (self.piece, self.message, self.base) = (head.piece, head.message, head.message);
        self.floor = head.sequence;
    }

    /// Takes a block of this topic.
    #[inline]
    pub(super) fn take(
        &mut self,
        block: &Block<'_>,
        tracker: &GapTracker,
        sink: &mut Sink<'_>,
    ) -> Taken {
        if block.piece == self.piece && self.kept.is_empty() && self.head.is_none() {
            self.deliver(block, sink);
            return Taken::Done;
        }
        self.take_other(block, tracker, sink)
    }

    #[cold]
    fn take_other(
        &mut self,
        block: &Block<'_>,
        tracker: &GapTracker,
        sink: &mut Sink<'_>,
    ) -> Taken {
        if before(block.piece, self.piece) {
            return Taken::Done;
        }
        let head = Head { sequence: block.sequence, piece: block.piece, message: block.message };
        if !self.is_plausible(head) {
            sink.counters.malformed += 1;
            return Taken::Done;
        }
        let at = self.kept.partition_point(|kept| before(kept.piece, block.piece));
        if self.kept.get(at).is_some_and(|kept| kept.piece == block.piece) {
            return Taken::Done;
        }
        if block.piece == self.piece {
            self.deliver(block, sink);
            self.release(tracker, sink);
            return self.taken();
        }
        if !sink.store.take(block.items.len()) {
            return Taken::NoRoom;
        }
        self.kept.insert(at, KeptBlock::new(block));
        self.release(tracker, sink);
        self.taken()
    }

    fn taken(&self) -> Taken {
        if self.is_waiting() { Taken::Kept } else { Taken::Done }
    }

    /// Whether something waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.kept.is_empty() || self.head.is_some()
    }

    /// Learns how far the topic had come before a datagram; from the answer to a question even
    /// what is far off, since messages that nobody wanted for a while took no datagrams.
    pub(super) fn learn(
        &mut self,
        head: Head,
        is_answer: bool,
        tracker: &GapTracker,
        sink: &mut Sink<'_>,
    ) {
        if !(self.is_plausible(head) || (is_answer && self.is_ahead(head))) {
            // An old head is no news; one that cannot be is counted.
            sink.counters.malformed += u64::from(!before(head.piece, self.piece));
            return;
        }
        // A Welcome tells where its start is; only what the sender tells by itself is its present.
        self.may_leap &= is_answer;
        if self.head.is_none_or(|known| before(known.piece, head.piece)) {
            self.head = Some(head);
        }
        self.release(tracker, sink);
    }

    /// Whether a jump to `head` could be: every piece takes room, every message a piece.
    fn is_plausible(&self, head: Head) -> bool {
        let pieces = ahead(head.piece, self.piece);
        let datagrams = ahead(head.sequence, self.floor).max(0) as u64;
        let most = datagrams.saturating_add(1).saturating_mul(ITEMS_MAX);
        self.is_ahead(head) && (self.may_leap || pieces as u64 <= most)
    }

    /// Believes a jump of any length, once: see [`may_leap`](Self::may_leap).
    pub(super) const fn expect_leap(&mut self) {
        self.may_leap = true;
    }

    /// Whether `head` is here or later, and no message has less than a piece.
    fn is_ahead(&self, head: Head) -> bool {
        let pieces = ahead(head.piece, self.piece);
        let messages = ahead(head.message, self.message);
        // A fresh topic may begin within the message before its first.
        let least = -i64::from(self.fresh);
        pieces >= 0 && messages >= least && messages <= pieces
    }

    /// Delivers what no missing datagram can come before any more.
    pub(super) fn release(&mut self, tracker: &GapTracker, sink: &mut Sink<'_>) {
        loop {
            let first = self.kept.front().map(|kept| kept.piece);
            if let Some(head) = self.head
                && first.is_none_or(|first| !before(first, head.piece))
            {
                if before(self.piece, head.piece) {
                    if tracker.may_hold(self.floor, head.sequence) {
                        return;
                    }
                    self.jump(head, true, sink);
                }
                if self.piece == head.piece {
                    self.floor = later(self.floor, head.sequence);
                }
                self.head = None;
                continue;
            }
            let Some(kept) = self.kept.front() else { return };
            let behind = before(self.piece, kept.piece);
            // Its own datagram is missing while others of its blocks are.
            if behind && tracker.may_hold(self.floor, kept.sequence.wrapping_add(1)) {
                return;
            }
            let Some(kept) = self.kept.pop_front() else { return };
            sink.store.give(kept.items.len());
            let block = kept.as_block();
            let to = Head { sequence: block.sequence, piece: block.piece, message: block.message };
            if !behind || self.jump(to, block.shape.begins, sink) {
                // What is behind the topic by now came in other blocks.
                if block.piece == self.piece {
                    self.deliver(&block, sink);
                }
            }
        }
    }

    /// Goes on at `to`; tells what lies between as lost. False, and nothing happens, if that
    /// cannot be.
    fn jump(&mut self, to: Head, begins: bool, sink: &mut Sink<'_>) -> bool {
        let first = self.message.wrapping_add(u64::from(self.skip));
        let count = ahead(to.message, first) + i64::from(!begins);
        if count < 0 {
            sink.counters.malformed += 1;
            self.contradicted = true;
            return false;
        }
        self.flush(sink);
        self.drop_assembly(sink);
        self.contradicted = false;
        if count > 0 {
            self.lose(first, count as u64, sink.why, sink);
        }
        (self.piece, self.message, self.skip, self.fresh) = (to.piece, to.message, !begins, false);
        self.may_leap = false;
        true
    }

    fn lose(&mut self, first: u64, count: u64, why: LossReason, sink: &mut Sink<'_>) {
        sink.counters.lost += count;
        let first = first.wrapping_sub(self.base);
        sink.out.push(Delivery::Lost { slot: sink.slot, first, count: Some(count), why });
    }

    /// Delivers a block that begins with the next piece.
    #[inline]
    fn deliver(&mut self, block: &Block<'_>, sink: &mut Sink<'_>) {
        let amid = self.skip || self.assembly.is_some();
        let shape = block.shape;
        if shape.plain && !amid && self.held.is_empty() && block.message == self.message {
            sink.out.push(block.run(sink.slot, 0..block.items.len()));
            sink.counters.messages += shape.count;
            self.message = block.message.wrapping_add(shape.count);
        } else if !self.deliver_pieces(block, amid, sink) {
            sink.counters.malformed += 1;
            self.contradicted = true;
            return;
        }
        self.piece = self.piece.wrapping_add(shape.count);
        self.floor = later(self.floor, block.sequence);
        self.fresh = false;
    }

    /// The same for any block; false if it does not follow what came before.
    fn deliver_pieces(&mut self, block: &Block<'_>, amid: bool, sink: &mut Sink<'_>) -> bool {
        let begins = block.shape.begins;
        let cut = self.fresh && !begins && block.message == self.message.wrapping_sub(1);
        if (begins && amid) || (block.message != self.message && !cut) {
            return false;
        }
        self.message = block.message;
        if !begins && !amid {
            self.skip = true;
            if self.fresh {
                self.base = self.message.wrapping_add(1);
            } else {
                self.lose(self.message, 1, sink.why, sink);
            }
        }
        let (mut start, mut safe, mut at) = (0, 0, 0);
        let mut items = Items::new(block.items);
        while let Some(item) = items.next() {
            let end = block.items.len() - items.rest().len();
            if item.flags.is_whole() {
                self.message = self.message.wrapping_add(1);
                sink.counters.messages += 1;
                safe = if item.flags.goes_on() { safe } else { end };
            } else {
                self.emit(block, start, safe, at, sink);
                self.take_piece(item, sink);
                (start, safe) = (end, end);
            }
            at = end;
        }
        self.emit(block, start, safe, at, sink);
        true
    }

    /// Delivers `start..safe` of the block's items, and holds `safe..end`: their batch goes on.
    fn emit(
        &mut self,
        block: &Block<'_>,
        start: usize,
        safe: usize,
        end: usize,
        sink: &mut Sink<'_>,
    ) {
        if safe > start {
            self.flush(sink);
            sink.out.push(block.run(sink.slot, start..safe));
        }
        if end > safe {
            self.hold(block.copy(sink.slot, safe..end), end - safe, sink);
        }
    }

    /// Holds a delivery until its batch ends; without room it goes at once.
    fn hold(&mut self, delivery: Delivery, bytes: usize, sink: &mut Sink<'_>) {
        if sink.store.take(bytes) {
            self.held.push(delivery);
            self.held_bytes.push(bytes);
        } else {
            self.flush(sink);
            sink.out.push(delivery);
        }
    }

    /// Delivers what is held.
    fn flush(&mut self, sink: &mut Sink<'_>) {
        sink.out.append(&mut self.held);
        self.held_bytes.drain(..).for_each(|bytes| sink.store.give(bytes));
    }

    fn take_piece(&mut self, item: Item<'_>, sink: &mut Sink<'_>) {
        let bytes =
            if item.flags.begins() { self.begin_message(item.bytes, sink) } else { item.bytes };
        if let Some(assembly) = &mut self.assembly {
            if assembly.bytes.len() + bytes.len() <= assembly.total {
                assembly.bytes.extend_from_slice(bytes);
            } else {
                self.break_off(sink);
            }
        }
        if !item.flags.ends() {
            return;
        }
        match self.assembly.take() {
            Some(whole) if whole.bytes.len() == whole.total => {
                sink.assemblies.give(whole.total);
                sink.counters.messages += 1;
                let delivery = Delivery::Message { slot: sink.slot, bytes: whole.bytes.into() };
                if item.flags.goes_on() {
                    self.hold(delivery, whole.total, sink);
                } else {
                    self.flush(sink);
                    sink.out.push(delivery);
                }
            }
            Some(short) => {
                self.assembly = Some(short);
                self.break_off(sink);
            }
            None => {}
        }
        self.skip = false;
        self.message = self.message.wrapping_add(1);
    }

    /// Begins a message in pieces; gives the first one's bytes without the total.
    fn begin_message<'a>(&mut self, bytes: &'a [u8], sink: &mut Sink<'_>) -> &'a [u8] {
        let total = bytes.first_chunk::<TOTAL_BYTES>().map(|total| u32::from_le_bytes(*total));
        match total.map(|total| total as usize).filter(|total| *total <= sink.longest) {
            Some(total) if sink.assemblies.take(total) => {
                self.assembly = Some(Assembly { bytes: Vec::with_capacity(total), total });
                &bytes[TOTAL_BYTES..]
            }
            _ => {
                self.break_off(sink);
                &[]
            }
        }
    }

    /// Gives the room of a message up that is not put together any more; whether there is one.
    fn drop_assembly(&mut self, sink: &mut Sink<'_>) -> bool {
        let dropped = self.assembly.take();
        dropped.iter().for_each(|it| sink.assemblies.give(it.total));
        dropped.is_some()
    }

    /// Tells the current message as lost: it cannot be put together.
    fn break_off(&mut self, sink: &mut Sink<'_>) {
        sink.counters.malformed += 1;
        self.drop_assembly(sink);
        self.skip = true;
        self.flush(sink);
        self.lose(self.message, 1, LossReason::Damaged, sink);
    }
}
