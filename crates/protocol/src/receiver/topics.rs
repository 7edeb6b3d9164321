//! The topics that a receiver wants, found by their numbers.

use super::block::{Block, Shape, Store};
use super::gap_tracker::GapTracker;
use super::topic::{Head, Sink, Taken, Topic};
use super::{Delivery, LossReason, ReceiverCounters, ReceiverSettings};
use lanecast_wire::net::{BlockHeader, Blocks, Items};
use std::collections::HashMap;

/// The highest topic number that is believed.
const NUMBER_MAX: u32 = 1 << 20;
/// In the table of numbers: not wanted.
const NO_SLOT: u32 = u32::MAX;

/// The topics, by slot and by number.
#[derive(Debug)]
pub(super) struct Topics {
    topics: Vec<Topic>,
    /// Slots by name.
    names: HashMap<Box<str>, u32>,
    slots: Vec<u32>,
    /// How many have one.
    numbered: u32,
    /// The slots where something waits.
    waiting: Vec<u32>,
    store: Store,
    assemblies: Store,
    longest: usize,
}

/// So many messages of the longest can be under way at once: what comes in order is one at a time,
/// and more are only where datagrams are missing.
const ASSEMBLIES: usize = 4;

/// Where a block was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) sequence: u64,
    pub(super) at: u32,
}

impl Topics {
    pub(super) fn new(settings: &ReceiverSettings, wanted: &[&str]) -> Self {
        let mut topics = Self {
            topics: Vec::new(),
            names: HashMap::new(),
            slots: Vec::new(),
            numbered: 0,
            waiting: Vec::new(),
            store: Store::new(settings.reorder_bytes_max),
            assemblies: Store::for_messages(ASSEMBLIES, settings.longest_message_max),
            longest: settings.longest_message_max,
        };
        wanted.iter().for_each(|name| _ = topics.subscribe(name));
        topics
    }

    /// Adds a topic, or seeks it anew; false if the session need not be asked for it.
    pub(super) fn subscribe(&mut self, name: &str) -> bool {
        let Some(slot) = self.names.get(name) else {
            self.names.insert(name.into(), self.topics.len() as u32);
            self.topics.push(Topic::new(name));
            return true;
        };
        let topic = &mut self.topics[*slot as usize];
        topic.number().is_none() && !std::mem::replace(&mut topic.is_sought, true)
    }

    /// Seeks no more what the session does not have: it tells should that change. Whether there
    /// is such a topic.
    pub(super) fn rest(&mut self) -> bool {
        self.topics.iter_mut().for_each(|topic| topic.is_sought = false);
        self.topics.iter().any(|topic| topic.number().is_none())
    }

    /// Seeks all anew that the session did not have.
    pub(super) fn seek(&mut self) {
        self.topics.iter_mut().for_each(|topic| topic.is_sought = true);
    }

    pub(super) fn get(&self, slot: u32) -> &Topic {
        &self.topics[slot as usize]
    }

    pub(super) const fn len(&self) -> usize {
        self.topics.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().map(Topic::name)
    }

    /// How many of them the beginning is known of.
    pub(super) const fn numbered(&self) -> u32 {
        self.numbered
    }

    /// The names of the topics that are sought, and whose numbers are not known yet.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        let unknown = |topic: &&Topic| topic.is_sought && topic.number().is_none();
        self.topics.iter().filter(unknown).map(Topic::name)
    }

    /// The slots of the topics that have joined, and not left.
    fn joined(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        let known = |(slot, topic): (usize, &Topic)| topic.is_joined().then_some(slot as u32);
        self.topics.iter().enumerate().filter_map(known).collect::<Vec<_>>().into_iter()
    }

    /// Learns a wanted topic's number and where it begins; gives its slot if that was not known.
    pub(super) fn begin(&mut self, name: &str, number: u32, head: Head) -> Option<u32> {
        let slot = *self.names.get(name)?;
        if number >= NUMBER_MAX
            || self.topics[slot as usize].number().is_some()
            || self.slot(number).is_some()
        {
            return None;
        }
        let at = number as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, NO_SLOT);
        }
        self.slots[at] = slot;
        self.topics[slot as usize].begin(number, head);
        self.numbered += 1;
        Some(slot)
    }

    /// The session goes on after all, and the topics that had left with it; gives their slots.
    pub(super) fn begin_again(&mut self) -> impl Iterator<Item = u32> + use<> {
        let mut again = Vec::new();
        for (slot, topic) in self.topics.iter_mut().enumerate() {
            let Some(number) = topic.number().filter(|_| topic.has_left()) else { continue };
            topic.begin_again();
            self.slots[number as usize] = slot as u32;
            again.push(slot as u32);
        }
        self.numbered += again.len() as u32;
        again.into_iter()
    }

    /// Believes a jump of any length in each of them, once.
    pub(super) fn expect_leap(&mut self) {
        self.topics.iter_mut().for_each(Topic::expect_leap);
    }

    /// Whether some have left.
    pub(super) fn have_left(&self) -> bool {
        self.topics.iter().any(Topic::has_left)
    }

    #[inline]
    fn slot(&self, number: u32) -> Option<u32> {
        self.slots.get(number as usize).copied().filter(|slot| *slot != NO_SLOT)
    }

    /// Takes one block; false if it should have been kept, but there was no room.
    #[inline]
    pub(super) fn take(
        &mut self,
        (header, items): (&BlockHeader, Items<'_>),
        origin: Origin,
        (tracker, why): (&GapTracker, LossReason),
        counters: &mut ReceiverCounters,
        out: &mut Vec<Delivery>,
    ) -> bool {
        let Some(slot) = self.slot(header.topic.get()) else { return true };
        let Some(shape) = Shape::of(header, items) else {
            counters.malformed += 1;
            return true;
        };
        let block = Block {
            sequence: origin.sequence,
            piece: header.piece.get(),
            message: header.message.get(),
            shape,
            items: items.rest(),
            at: Some(origin.at),
        };
        let (store, assemblies) = (&mut self.store, &mut self.assemblies);
        let longest = self.longest;
        let mut sink = Sink { slot, out, store, assemblies, counters, why, longest };
        match self.topics[slot as usize].take(&block, tracker, &mut sink) {
            Taken::Done => true,
            Taken::Kept => {
                self.wait(slot);
                true
            }
            Taken::NoRoom => false,
        }
    }

    /// How many messages of wanted topics end in a datagram's blocks.
    pub(super) fn messages_in(&self, bytes: &[u8]) -> u64 {
        let mut messages = 0;
        for (header, items) in Blocks::new(bytes) {
            if self.slot(header.topic.get()).is_some() {
                messages += items.filter(|item| item.flags.ends()).count();
            }
        }
        messages as u64
    }

    fn wait(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.topics[slot as usize].is_listed, true) {
            self.waiting.push(slot);
        }
    }

    /// Learns how far the topic with `number` has come, perhaps from the answer to a question.
    pub(super) fn learn(
        &mut self,
        number: u32,
        (head, is_answer): (Head, bool),
        (tracker, why): (&GapTracker, LossReason),
        counters: &mut ReceiverCounters,
        out: &mut Vec<Delivery>,
    ) {
        let Some(slot) = self.slot(number) else { return };
        let (store, assemblies) = (&mut self.store, &mut self.assemblies);
        let longest = self.longest;
        let mut sink = Sink { slot, out, store, assemblies, counters, why, longest };
        let topic = &mut self.topics[slot as usize];
        topic.learn(head, is_answer, tracker, &mut sink);
        if topic.is_waiting() {
            self.wait(slot);
        }
    }

    /// Delivers whatever need not wait any more.
    pub(super) fn release(
        &mut self,
        (tracker, why): (&GapTracker, LossReason),
        counters: &mut ReceiverCounters,
        out: &mut Vec<Delivery>,
    ) {
        let Self { topics, waiting, store, assemblies, longest, .. } = self;
        waiting.retain(|&slot| {
            let longest = *longest;
            let sink = &mut Sink { slot, out, store, assemblies, counters, why, longest };
            let topic = &mut topics[slot as usize];
            topic.release(tracker, sink);
            topic.is_listed = topic.is_waiting();
            topic.is_listed
        });
    }

    /// Whether a topic may have lost something up to `sequence` that it does not know of.
    pub(super) fn are_in_doubt(&self, sequence: u64) -> bool {
        self.topics.iter().any(|topic| topic.is_in_doubt(sequence))
    }

    /// Ends all topics; gives the slots of those that had joined.
    pub(super) fn end(
        &mut self,
        (tracker, why): (&GapTracker, LossReason),
        doubt: Option<u64>,
        counters: &mut ReceiverCounters,
        out: &mut Vec<Delivery>,
    ) -> impl Iterator<Item = u32> + Clone + use<> {
        self.waiting.clear();
        let joined = self.joined();
        for slot in joined.clone() {
            let (store, assemblies) = (&mut self.store, &mut self.assemblies);
            let longest = self.longest;
            let mut sink = Sink { slot, out, store, assemblies, counters, why, longest };
            let topic = &mut self.topics[slot as usize];
            topic.end(tracker, doubt, &mut sink);
            // What still comes of it comes behind its end.
            let number = topic.number().map(|number| number as usize);
            number.into_iter().for_each(|number| self.slots[number] = NO_SLOT);
            self.numbered -= 1;
        }
        joined
    }

    /// How many bytes wait.
    pub(super) const fn reorder_bytes(&self) -> usize {
        self.store.used()
    }
}
