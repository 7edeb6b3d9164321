//! Events that wait for their program, with bytes of their own.

use lanecast_persistence::{PersistentMessage, ReceiverEvent};
use std::ops::Range;

/// Events of one poll, in order. Stores hand out messages inside a call only, so these are copies.
#[derive(Debug, Default)]
pub(crate) struct HeldEvents {
    events: Vec<HeldEvent>,
    /// Payloads of all of them.
    bytes: Vec<u8>,
    /// Events that the program has had.
    taken: usize,
    /// Index, source and first sequence of each event that tells of discarded messages.
    discarded: Vec<(usize, u64, u64)>,
}

#[derive(Debug)]
struct HeldEvent {
    /// The event; without payload, which stands in this range.
    event: ReceiverEvent<'static>,
    payload: Range<usize>,
}

impl HeldEvents {
    /// Number of events that the program has not had.
    pub(crate) const fn len(&self) -> usize {
        self.events.len() - self.taken
    }

    /// Adds a copy of an event. Those that the program has had give way.
    pub(crate) fn push(&mut self, event: ReceiverEvent<'_>) {
        if self.len() == 0 {
            self.events.clear();
            self.bytes.clear();
            self.discarded.clear();
            self.taken = 0;
        }
        let start = self.bytes.len();
        match &event {
            ReceiverEvent::Message(message) => self.bytes.extend_from_slice(message.bytes()),
            ReceiverEvent::Unkept { bytes, .. } => self.bytes.extend_from_slice(bytes),
            ReceiverEvent::Discarded { source, first, .. } => {
                self.discarded.push((self.events.len(), *source, *first));
            }
            _ => {}
        }
        let (event, payload) = (event.without_payload(), start..self.bytes.len());
        self.events.push(HeldEvent { event, payload });
    }

    /// The event with this index among those that the program has not had.
    pub(crate) fn get(&self, index: usize) -> Option<ReceiverEvent<'_>> {
        let HeldEvent { event, payload } = self.events.get(self.taken + index)?;
        let bytes = &self.bytes[payload.clone()];
        Some(match event {
            ReceiverEvent::Message(it) => {
                let (source, sequence) = (it.source(), it.sequence());
                let message = PersistentMessage::new(source, sequence, bytes, it.is_recovered());
                ReceiverEvent::Message(message)
            }
            ReceiverEvent::Unkept { session, number, .. } => {
                ReceiverEvent::Unkept { session: *session, number: *number, bytes }
            }
            other => other.clone(),
        })
    }

    /// Source and sequence up to which the program has consumed when it is done with the event of
    /// this index.
    pub(crate) fn position_after(&self, index: usize) -> Option<(u64, u64)> {
        let at = self.taken + index;
        let (source, next) = position_after(&self.events.get(at)?.event)?;
        Some((source, self.kept(source, next, at)))
    }

    /// Sequence up to which a program has consumed that is done with the messages before `next`,
    /// and has not had the events that wait.
    pub(crate) fn consumed(&self, source: u64, next: u64) -> u64 {
        self.kept(source, next, self.taken)
    }

    /// Leaves out messages that are discarded by an event from index `from` on: others follow under
    /// their sequences, which the program has not had.
    fn kept(&self, source: u64, next: u64, from: usize) -> u64 {
        let later = self.discarded.iter().filter(|(at, of, _)| *at >= from && *of == source);
        later.map(|(.., first)| *first).fold(next, u64::min)
    }

    /// The program has had this number of events.
    pub(crate) fn advance(&mut self, count: usize) {
        self.taken = (self.taken + count).min(self.events.len());
    }
}

/// Source and sequence up to which a program has consumed when it is done with `event`.
#[inline]
pub(crate) fn position_after(event: &ReceiverEvent<'_>) -> Option<(u64, u64)> {
    match event {
        ReceiverEvent::Message(message) => Some((message.source(), message.sequence() + 1)),
        ReceiverEvent::Lost { source, first, count, .. } => Some((*source, first + count)),
        _ => None,
    }
}
