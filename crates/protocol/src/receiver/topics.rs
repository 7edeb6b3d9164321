//! Subscribed topics of a receiver, found by name, slot or number.

use super::block::{Block, BlockShape, ByteBudget, EarlyParts};
use super::config::{DeliveryOrder, ReceiverSettings};
use super::counters::ReceiverCounters;
use super::delivery::Delivery;
use super::gap_tracker::GapTracker;
use super::output::{BlockResult, Head, Output};
use super::reassembly::TopicReassembly;
use super::slots::Slots;
use super::topic_requests::TopicRequests;
use crate::Nanos;
use lanecast_transport::LossReason;
use lanecast_wire::net::{BlockHeader, Blocks, Items};
use std::collections::HashMap;

/// Subscribed topics, by slot and by number.
#[derive(Debug)]
pub(super) struct Topics {
    topics: Vec<TopicReassembly>,
    /// Slots by name.
    names: HashMap<Box<str>, u32>,
    requests: TopicRequests,
    /// Slots by number, of the topics that have begun.
    slots: Slots,
    /// Slots of topics with queued blocks or a pending head.
    waiting: Vec<u32>,
    /// Bytes of queued blocks and held batches.
    reorder: ByteBudget,
    /// Bytes of messages being reassembled.
    assemblies: ByteBudget,
    longest: usize,
    order: DeliveryOrder,
}

/// Longest messages that can be reassembled at once: more than one at a time only happens where
/// datagrams are missing.
const ASSEMBLIES: usize = 4;

/// Datagram of a block, and the offset of its items in the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockOrigin {
    pub(super) sequence: u64,
    pub(super) at: u32,
}

impl Topics {
    pub(super) fn new(settings: &ReceiverSettings, wanted: &[&str]) -> Self {
        let mut topics = Self {
            topics: Vec::new(),
            names: HashMap::new(),
            requests: TopicRequests::default(),
            slots: Slots::default(),
            waiting: Vec::new(),
            reorder: ByteBudget::new(settings.reorder_bytes_max),
            assemblies: ByteBudget::for_messages(ASSEMBLIES, settings.longest_message_max),
            longest: settings.longest_message_max,
            order: settings.order,
        };
        wanted.iter().for_each(|name| _ = topics.subscribe(name));
        topics
    }

    /// Adds a topic, or requests it again; false if no request is necessary.
    pub(super) fn subscribe(&mut self, name: &str) -> bool {
        let Some(slot) = self.names.get(name) else {
            self.names.insert(name.into(), self.topics.len() as u32);
            self.topics.push(TopicReassembly::new(name, self.order));
            self.requests.add();
            return true;
        };
        self.requests.announced(*slot)
    }

    /// Requests of the topics whose numbers are unknown.
    pub(super) const fn requests(&mut self) -> &mut TopicRequests {
        &mut self.requests
    }

    /// Names topics in the Join with clock `echo`: those that no Join has named yet, as long as
    /// they fit.
    pub(super) fn ask(&mut self, echo: Nanos, mut fits: impl FnMut(&str) -> bool) {
        let Self { requests, topics, .. } = self;
        requests.ask(echo, |slot| fits(topics[slot as usize].name()));
    }

    pub(super) fn get(&self, slot: u32) -> &TopicReassembly {
        &self.topics[slot as usize]
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    pub(super) const fn len(&self) -> usize {
        self.topics.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().map(TopicReassembly::name)
    }

    /// Number of joined topics: their begin is known.
    pub(super) const fn begun(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Slots of the topics that have joined and not left.
    fn joined(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        let known =
            |(slot, topic): (usize, &TopicReassembly)| topic.is_joined().then_some(slot as u32);
        self.topics.iter().enumerate().filter_map(known).collect::<Vec<_>>().into_iter()
    }

    /// Begins a subscribed topic; returns its slot, or `None` if it has begun already.
    pub(super) fn begin(&mut self, name: &str, number: u32, head: Head) -> Option<u32> {
        let slot = *self.names.get(name)?;
        let topic = &mut self.topics[slot as usize];
        // A number from the network is never given to two topics.
        if topic.number().is_some() || !self.slots.add(number, slot) {
            return None;
        }
        topic.begin(number, head);
        self.requests.begin(slot);
        Some(slot)
    }

    /// Revives the topics that had left; returns their slots.
    pub(super) fn begin_again(&mut self) -> impl Iterator<Item = u32> + use<> {
        let mut again = Vec::new();
        for (slot, topic) in self.topics.iter_mut().enumerate() {
            let Some(number) = topic.number().filter(|_| topic.has_left()) else { continue };
            topic.begin_again();
            // Free still: the topic has kept its number.
            let _ = self.slots.add(number, slot as u32);
            again.push(slot as u32);
        }
        again.into_iter()
    }

    /// Allows one jump of any length in each topic.
    pub(super) fn allow_jump(&mut self) {
        self.topics.iter_mut().for_each(TopicReassembly::allow_jump);
    }

    /// Whether some topics have left.
    pub(super) fn have_left(&self) -> bool {
        self.topics.iter().any(TopicReassembly::has_left)
    }

    /// Delivers or queues a block; false if the reorder buffer has no room for it.
    #[inline]
    pub(super) fn take(
        &mut self,
        (header, items): (&BlockHeader, Items<'_>),
        origin: BlockOrigin,
        (tracker, loss_reason): (&GapTracker, LossReason),
        counters: &mut ReceiverCounters,
        out: &mut Vec<Delivery>,
    ) -> bool {
        // Topics of other receivers are normal in a group.
        let Some(slot) = self.slots.get(header.topic.get()) else { return true };
        // Validated once, before any of it is delivered.
        let Some(shape) = BlockShape::of(header, items) else {
            counters.malformed += 1;
            return true;
        };
        let block = Block {
            sequence: origin.sequence,
            fragment: header.fragment.get(),
            message: header.message.get(),
            shape,
            items: items.rest(),
            at: Some(origin.at),
            early: EarlyParts::default(),
        };
        let (reorder, assemblies) = (&mut self.reorder, &mut self.assemblies);
        let longest = self.longest;
        let mut output = Output { slot, out, reorder, assemblies, counters, loss_reason, longest };
        match self.topics[slot as usize].take(&block, tracker, &mut output) {
            BlockResult::Done => true,
            BlockResult::Queued => {
                self.wait(slot);
                true
            }
            BlockResult::NoRoom => false,
        }
    }

    /// Number of messages of subscribed topics that end in a datagram.
    pub(super) fn messages_in(&self, bytes: &[u8]) -> u64 {
        let mut messages = 0;
        for (header, items) in Blocks::new(bytes) {
            if self.slots.get(header.topic.get()).is_some() {
                messages += items.filter(|item| item.flags.ends()).count();
            }
        }
        messages as u64
    }

    fn wait(&mut self, slot: u32) {
        // Listed once: `release` visits only topics that wait, not all of them.
        if !std::mem::replace(&mut self.topics[slot as usize].is_listed, true) {
            self.waiting.push(slot);
        }
    }

    /// Learns a topic's position at a sequence; `is_answer`: from a Welcome.
    pub(super) fn learn(
        &mut self,
        number: u32,
        (head, is_answer): (Head, bool),
        (tracker, loss_reason): (&GapTracker, LossReason),
        counters: &mut ReceiverCounters,
        out: &mut Vec<Delivery>,
    ) {
        let Some(slot) = self.slots.get(number) else { return };
        let (reorder, assemblies) = (&mut self.reorder, &mut self.assemblies);
        let longest = self.longest;
        let mut output = Output { slot, out, reorder, assemblies, counters, loss_reason, longest };
        let topic = &mut self.topics[slot as usize];
        topic.learn(head, is_answer, tracker, &mut output);
        if topic.is_waiting() {
            self.wait(slot);
        }
    }

    /// Delivers blocks that no longer wait for missing datagrams.
    pub(super) fn release(
        &mut self,
        (tracker, loss_reason): (&GapTracker, LossReason),
        counters: &mut ReceiverCounters,
        out: &mut Vec<Delivery>,
    ) {
        let Self { topics, waiting, reorder, assemblies, longest, .. } = self;
        waiting.retain(|&slot| {
            let longest = *longest;
            let output =
                &mut Output { slot, out, reorder, assemblies, counters, loss_reason, longest };
            let topic = &mut topics[slot as usize];
            topic.release(tracker, output);
            topic.is_listed = topic.is_waiting();
            topic.is_listed
        });
    }

    /// Whether a topic may have lost messages up to `sequence` without knowing.
    pub(super) fn are_uncertain(&self, sequence: u64) -> bool {
        self.topics.iter().any(|topic| topic.is_uncertain(sequence))
    }

    /// Ends all topics; returns the slots of those that had joined.
    pub(super) fn end(
        &mut self,
        (tracker, loss_reason): (&GapTracker, LossReason),
        counters: &mut ReceiverCounters,
        out: &mut Vec<Delivery>,
    ) -> impl Iterator<Item = u32> + Clone + use<> {
        self.waiting.clear();
        let joined = self.joined();
        for slot in joined.clone() {
            let (reorder, assemblies) = (&mut self.reorder, &mut self.assemblies);
            let longest = self.longest;
            let mut output =
                Output { slot, out, reorder, assemblies, counters, loss_reason, longest };
            let topic = &mut self.topics[slot as usize];
            topic.end(tracker, &mut output);
            // Blocks after the end are ignored.
            topic.number().into_iter().for_each(|number| self.slots.remove(number));
        }
        joined
    }

    /// Bytes in the reorder buffer.
    pub(super) const fn reorder_bytes(&self) -> usize {
        self.reorder.used()
    }
}
