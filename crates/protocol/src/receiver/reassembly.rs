//! Reassembly of one topic: delivers fragments in order, queues early blocks, and reports losses.
//!
//! Every block carries the numbers of its first fragment and message: the block with the next
//! fragment is delivered at once, whatever other topics miss. In order of arrival the messages of
//! queued blocks are delivered as well (`early_delivery`).

use super::block::{Block, ITEMS_MAX, QueuedBlock};
use super::config::DeliveryOrder;
use super::delivery::Delivery;
use super::early_delivery;
use super::gap_tracker::GapTracker;
use super::output::{Assembly, BlockResult, Head, HeldBatch, Output};
use crate::sequence::{ahead, before, later};
use lanecast_transport::LossReason;
use lanecast_wire::net::{Item, Items, TOTAL_BYTES};
use std::collections::VecDeque;

/// Reassembly of a subscribed topic.
#[derive(Debug)]
pub struct TopicReassembly {
    name: String,
    number: Option<u32>,
    order: DeliveryOrder,
    /// Number of the next fragment, and of its message.
    fragment: u64,
    message: u64,
    /// Sequence before which no datagram has the next fragment, nor any later one.
    floor: u64,
    /// No block was delivered yet.
    is_fresh: bool,
    /// The next head may be any number of fragments ahead: messages published while the topic had
    /// no subscriber took no datagrams.
    jump_allowed: bool,
    /// Discards fragments up to the end of the message: it was reported as lost.
    skipping: bool,
    assembly: Option<Assembly>,
    /// Blocks were dropped because they contradict earlier ones. Later numbers tell how many
    /// messages are lost; without any, the topic ends as damaged.
    contradicted: bool,
    batch: HeldBatch,
    /// Blocks after the next fragment, in order.
    queue: VecDeque<QueuedBlock>,
    /// Latest position reported by the sender that was not reached yet.
    head: Option<Head>,
    /// `Left` was delivered.
    has_left: bool,
    /// Member of the list of waiting topics.
    pub(super) is_listed: bool,
}

impl TopicReassembly {
    pub(super) fn new(name: &str, order: DeliveryOrder) -> Self {
        Self {
            name: name.to_owned(),
            number: None,
            order,
            fragment: 0,
            message: 0,
            floor: 0,
            is_fresh: true,
            jump_allowed: false,
            skipping: false,
            assembly: None,
            contradicted: false,
            batch: HeldBatch::default(),
            queue: VecDeque::new(),
            head: None,
            has_left: false,
            is_listed: false,
        }
    }

    /// Name of the topic.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number within the session, once known.
    pub const fn number(&self) -> Option<u32> {
        self.number
    }

    pub(super) fn begin(&mut self, number: u32, head: Head) {
        self.number = Some(number);
        (self.fragment, self.message) = (head.fragment, head.message);
        self.floor = head.sequence;
    }

    /// Delivers or queues a block of this topic.
    #[inline]
    pub(super) fn take(
        &mut self,
        block: &Block<'_>,
        tracker: &GapTracker,
        output: &mut Output<'_>,
    ) -> BlockResult {
        // Fast path: the next fragment, and nothing waits.
        if block.fragment == self.fragment && self.queue.is_empty() && self.head.is_none() {
            self.deliver(block, output);
            return BlockResult::Done;
        }
        self.take_other(block, tracker, output)
    }

    #[cold]
    fn take_other(
        &mut self,
        block: &Block<'_>,
        tracker: &GapTracker,
        output: &mut Output<'_>,
    ) -> BlockResult {
        if before(block.fragment, self.fragment) {
            return BlockResult::Done;
        }
        let head = Head::of(block);
        if !self.is_plausible(head) {
            output.counters.malformed += 1;
            return BlockResult::Done;
        }
        let at = self.queue.partition_point(|queued| before(queued.fragment, block.fragment));
        if self.queue.get(at).is_some_and(|queued| queued.fragment == block.fragment) {
            return BlockResult::Done;
        }
        if block.fragment == self.fragment {
            self.deliver(block, output);
            self.release(tracker, output);
            return self.block_result();
        }
        // Nothing before its datagram is missing: it goes on at once, also without room. Refused,
        // it would come again and again, and those behind it would hold the room.
        if !tracker.overlaps_gap(self.floor, block.sequence) {
            (0..at).for_each(|_| self.deliver_queued(output));
            self.deliver_at(block, output);
            self.release(tracker, output);
            return self.block_result();
        }
        if !output.reorder.reserve(block.items.len()) {
            return BlockResult::NoRoom;
        }
        self.queue.insert(at, QueuedBlock::new(block));
        if self.order == DeliveryOrder::Arrival {
            early_delivery::deliver(&mut self.queue, at, block, output);
        }
        self.release(tracker, output);
        self.block_result()
    }

    fn block_result(&self) -> BlockResult {
        if self.is_waiting() { BlockResult::Queued } else { BlockResult::Done }
    }

    /// Whether blocks or a head wait.
    pub(super) fn is_waiting(&self) -> bool {
        !self.queue.is_empty() || self.head.is_some()
    }

    /// Learns a position; from an answer (a Welcome) even one that is far off: messages published
    /// while the topic had no subscriber took no datagrams.
    pub(super) fn learn(
        &mut self,
        head: Head,
        is_answer: bool,
        tracker: &GapTracker,
        output: &mut Output<'_>,
    ) {
        if !(self.is_plausible(head) || (is_answer && self.is_ahead(head))) {
            // An old head tells nothing new; an impossible one is counted.
            output.counters.malformed += u64::from(!before(head.fragment, self.fragment));
            return;
        }
        // The allowance lasts until the first Session frame, which reports the present position.
        self.jump_allowed &= is_answer;
        if self.head.is_none_or(|known| before(known.fragment, head.fragment)) {
            self.head = Some(head);
        }
        self.release(tracker, output);
    }

    /// Whether a jump to `head` is possible: a datagram holds a limited number of fragments, and a
    /// message has at least one.
    fn is_plausible(&self, head: Head) -> bool {
        let fragments = ahead(head.fragment, self.fragment);
        let datagrams = ahead(head.sequence, self.floor).max(0) as u64;
        let most = datagrams.saturating_add(1).saturating_mul(ITEMS_MAX);
        self.is_ahead(head) && (self.jump_allowed || fragments as u64 <= most)
    }

    /// Allows one jump of any length: see [`jump_allowed`](Self::jump_allowed).
    pub(super) const fn allow_jump(&mut self) {
        self.jump_allowed = true;
    }

    /// Whether `head` is not before the next fragment, with at least a fragment per message.
    fn is_ahead(&self, head: Head) -> bool {
        let fragments = ahead(head.fragment, self.fragment);
        let messages = ahead(head.message, self.message);
        // A fresh topic may begin within the message before its first.
        let least = -i64::from(self.is_fresh);
        fragments >= 0 && messages >= least && messages <= fragments
    }

    /// Delivers queued blocks as far as no missing datagram can have an earlier fragment.
    pub(super) fn release(&mut self, tracker: &GapTracker, output: &mut Output<'_>) {
        loop {
            let first = self.queue.front().map(|queued| queued.fragment);
            if let Some(head) = self.head
                && first.is_none_or(|first| !before(first, head.fragment))
            {
                if before(self.fragment, head.fragment) {
                    if tracker.overlaps_gap(self.floor, head.sequence) {
                        return;
                    }
                    self.jump(head, true, output);
                }
                if self.fragment == head.fragment {
                    self.floor = later(self.floor, head.sequence);
                }
                self.head = None;
                continue;
            }
            let Some(queued) = self.queue.front() else { return };
            let behind = before(self.fragment, queued.fragment);
            // `+ 1`: the datagram of this block counts as missing until all its blocks are taken.
            if behind && tracker.overlaps_gap(self.floor, queued.sequence.wrapping_add(1)) {
                return;
            }
            self.deliver_queued(output);
        }
    }

    /// Delivers the first queued block.
    fn deliver_queued(&mut self, output: &mut Output<'_>) {
        let Some(queued) = self.queue.pop_front() else { return };
        output.reorder.release(queued.items.len());
        self.deliver_at(&queued.as_block(), output);
    }

    /// Delivers a block in front of which no datagram is missing: what lies between is lost.
    fn deliver_at(&mut self, block: &Block<'_>, output: &mut Output<'_>) {
        let is_behind = before(self.fragment, block.fragment);
        if !is_behind || self.jump(Head::of(block), block.shape.begins, output) {
            // Otherwise its fragments were delivered from other blocks.
            if block.fragment == self.fragment {
                self.deliver(block, output);
            }
        }
    }

    /// Continues at `to` and reports the messages in between as lost. False, without an effect, if
    /// the numbers contradict that.
    fn jump(&mut self, to: Head, begins: bool, output: &mut Output<'_>) -> bool {
        let first = self.message.wrapping_add(u64::from(self.skipping));
        // Saturating, as all sums of numbers from the network.
        let count = ahead(to.message, first).saturating_add(i64::from(!begins));
        if count < 0 {
            output.counters.malformed += 1;
            self.contradicted = true;
            return false;
        }
        self.batch.flush(output);
        self.drop_assembly(output);
        self.contradicted = false;
        if count > 0 {
            self.report_lost(first, count as u64, output.loss_reason, output);
        }
        (self.fragment, self.message, self.skipping, self.is_fresh) =
            (to.fragment, to.message, !begins, false);
        self.jump_allowed = false;
        true
    }

    fn report_lost(&mut self, first: u64, count: u64, why: LossReason, output: &mut Output<'_>) {
        output.counters.lost = output.counters.lost.saturating_add(count);
        output.out.push(Delivery::Lost { slot: output.slot, first, count, why });
    }

    /// Delivers a block that begins with the next fragment.
    #[inline]
    fn deliver(&mut self, block: &Block<'_>, output: &mut Output<'_>) {
        let within = self.skipping || self.assembly.is_some();
        let shape = block.shape;
        if block.is_delivered() {
            if block.message != self.message || (shape.begins && within) {
                output.counters.malformed += 1;
                self.contradicted = true;
                return;
            }
            self.message = block.message.wrapping_add(shape.ends);
            // The rest of an open message is passed over, too.
            self.skipping = shape.open;
        } else if shape.plain && !within && self.batch.is_empty() && block.message == self.message {
            output.out.push(block.run(output.slot, self.message, 0..block.items.len()));
            output.counters.messages += shape.count;
            self.message = block.message.wrapping_add(shape.count);
        } else if !self.deliver_fragments(block, within, output) {
            output.counters.malformed += 1;
            self.contradicted = true;
            return;
        }
        self.fragment = self.fragment.wrapping_add(shape.count);
        self.floor = later(self.floor, block.sequence);
        self.is_fresh = false;
    }

    /// Delivers a block with fragments or an open batch; false if it contradicts earlier ones.
    fn deliver_fragments(
        &mut self,
        block: &Block<'_>,
        within: bool,
        output: &mut Output<'_>,
    ) -> bool {
        let begins = block.shape.begins;
        // A receiver may join in the middle of a message: that is no loss, and it is not counted.
        let begins_within_message =
            self.is_fresh && !begins && block.message == self.message.wrapping_sub(1);
        if (begins && within) || (block.message != self.message && !begins_within_message) {
            return false;
        }
        self.message = block.message;
        if !begins && !within {
            self.skipping = true;
            if !self.is_fresh {
                self.report_lost(self.message, 1, output.loss_reason, output);
            }
        }
        // Numbers of the messages at `start` and at `safe`.
        let (mut first, mut held) = (self.message, self.message);
        let (mut start, mut safe, mut at) = (0, 0, 0);
        // Messages that end in the rest of the block.
        let mut ends = block.shape.ends;
        let mut items = Items::new(block.items);
        while let Some(item) = items.next() {
            let end = block.items.len() - items.rest().len();
            let is_delivered = block.early.whole && (ends > 0 || block.early.last);
            ends -= u64::from(item.flags.ends());
            if item.flags.is_whole() {
                self.message = self.message.wrapping_add(1);
                if block.early.whole {
                    start = end;
                } else {
                    output.counters.messages += 1;
                }
                if block.early.whole || !self.holds_back(item) {
                    (safe, held) = (end, self.message);
                }
            } else {
                self.emit(block, (start, first), (safe, held), at, output);
                self.take_fragment(item, is_delivered, output);
                (start, safe) = (end, end);
                (first, held) = (self.message, self.message);
            }
            at = end;
        }
        self.emit(block, (start, first), (safe, held), at, output);
        true
    }

    /// Delivers items `start..safe`, and holds back `safe..end`, whose batch continues. Both have
    /// the number of their first message.
    fn emit(
        &mut self,
        block: &Block<'_>,
        (start, first): (usize, u64),
        (safe, held): (usize, u64),
        end: usize,
        output: &mut Output<'_>,
    ) {
        if safe > start {
            self.batch.flush(output);
            output.out.push(block.run(output.slot, first, start..safe));
        }
        if end > safe {
            self.batch.hold_back(block.copy(output.slot, held, safe..end), end - safe, output);
        }
    }

    /// Whether a message waits for the end of its batch.
    fn holds_back(&self, item: Item<'_>) -> bool {
        item.flags.goes_on() && self.order == DeliveryOrder::Publication
    }

    /// Takes a fragment; of a message that it begins `is_delivered` tells whether it was delivered
    /// before its turn.
    fn take_fragment(&mut self, item: Item<'_>, is_delivered: bool, output: &mut Output<'_>) {
        let bytes: &[u8] = match item.flags.begins() {
            true if is_delivered => {
                self.skipping = true;
                &[]
            }
            true => self.begin_message(item.bytes, output),
            false => item.bytes,
        };
        if let Some(assembly) = &mut self.assembly {
            if assembly.bytes.len() + bytes.len() <= assembly.total {
                assembly.bytes.extend_from_slice(bytes);
            } else {
                self.abandon_message(output);
            }
        }
        if !item.flags.ends() {
            return;
        }
        match self.assembly.take() {
            Some(whole) if whole.bytes.len() == whole.total => {
                output.assemblies.release(whole.total);
                output.counters.messages += 1;
                let (slot, number) = (output.slot, self.message);
                let delivery = Delivery::Message { slot, number, bytes: whole.bytes.into() };
                if self.holds_back(item) {
                    self.batch.hold_back(delivery, whole.total, output);
                } else {
                    self.batch.flush(output);
                    output.out.push(delivery);
                }
            }
            Some(short) => {
                self.assembly = Some(short);
                self.abandon_message(output);
            }
            None => {}
        }
        self.skipping = false;
        self.message = self.message.wrapping_add(1);
    }

    /// Begins to reassemble a message; returns the first fragment's bytes without the total.
    fn begin_message<'a>(&mut self, bytes: &'a [u8], output: &mut Output<'_>) -> &'a [u8] {
        let total = bytes.first_chunk::<TOTAL_BYTES>().map(|total| u32::from_le_bytes(*total));
        match total.map(|total| total as usize).filter(|total| *total <= output.longest) {
            Some(total) if output.assemblies.reserve(total) => {
                self.assembly = Some(Assembly { bytes: Vec::with_capacity(total), total });
                &bytes[TOTAL_BYTES..]
            }
            _ => {
                self.abandon_message(output);
                &[]
            }
        }
    }

    /// Drops the message being reassembled; returns whether there was one.
    fn drop_assembly(&mut self, output: &mut Output<'_>) -> bool {
        let dropped = self.assembly.take();
        dropped.iter().for_each(|it| output.assemblies.release(it.total));
        dropped.is_some()
    }

    /// Reports the current message as lost: it cannot be reassembled.
    fn abandon_message(&mut self, output: &mut Output<'_>) {
        output.counters.malformed += 1;
        self.drop_assembly(output);
        self.skipping = true;
        self.batch.flush(output);
        self.report_lost(self.message, 1, LossReason::Damaged, output);
    }

    /// Whether `Joined` was delivered, and `Left` was not.
    pub(super) const fn is_joined(&self) -> bool {
        self.number.is_some() && !self.has_left
    }

    /// Whether `Left` was delivered.
    pub(super) const fn has_left(&self) -> bool {
        self.has_left
    }

    /// Continues after the end.
    pub(super) fn begin_again(&mut self) {
        self.has_left = false;
    }

    /// Whether blocks were dropped because they contradict earlier ones, and no number has told
    /// since how many messages they had.
    pub(super) const fn is_contradicted(&self) -> bool {
        self.contradicted
    }

    /// Whether lost datagrams up to `sequence` may have had messages that no number shows.
    pub(super) fn is_uncertain(&self, sequence: u64) -> bool {
        self.number.is_some() && !before(sequence, self.floor)
    }

    /// Ends the topic: delivers everything received and reports the losses whose number is known.
    pub(super) fn end(&mut self, tracker: &GapTracker, output: &mut Output<'_>) {
        self.release(tracker, output);
        self.batch.flush(output);
        let first = self.message.wrapping_add(u64::from(self.skipping));
        if self.drop_assembly(output) {
            self.report_lost(first, 1, output.loss_reason, output);
            // If the session is revived, the rest of this message must not be lost once more.
            self.skipping = true;
        }
        self.has_left = true;
    }
}
