//! Events that the application has not read yet.

use crate::event::Event;
use std::collections::VecDeque;

/// Unread events, and how many bytes they hold.
#[derive(Debug)]
pub(super) struct EventQueue {
    events: VecDeque<Event>,
    bytes: usize,
    bytes_max: usize,
}

impl EventQueue {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { events: VecDeque::new(), bytes: 0, bytes_max }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.bytes += event.bytes();
        self.events.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.bytes -= event.bytes();
        Some(event)
    }

    /// Whether too many bytes are unread.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > self.bytes_max
    }
}
