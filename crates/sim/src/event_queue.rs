//! Queue of future events, in the order of time.

use lanecast_protocol::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Future events. Events of the same time come in the order of insertion.
#[derive(Debug)]
pub struct EventQueue<T> {
    entries: BinaryHeap<Reverse<Entry<T>>>,
    entered: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Nanos,
    number: u64,
    what: T,
}

impl<T> EventQueue<T> {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self { entries: BinaryHeap::new(), entered: 0 }
    }

    /// Adds an event.
    pub fn add(&mut self, at: Nanos, what: T) {
        self.entered += 1;
        self.entries.push(Reverse(Entry { at, number: self.entered, what }));
    }

    /// Time of the next event.
    pub fn next_at(&self) -> Option<Nanos> {
        self.entries.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next event.
    pub fn take(&mut self) -> Option<(Nanos, T)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_in_order() {
        let mut events = EventQueue::new();
        for (at, what) in [(5, 'c'), (1, 'a'), (5, 'd'), (2, 'b')] {
            events.add(at, what);
        }
        assert_eq!(events.next_at(), Some(1));
        let order: Vec<_> = std::iter::from_fn(|| events.take()).collect();
        assert_eq!(order, [(1, 'a'), (2, 'b'), (5, 'c'), (5, 'd')]);
    }
}
