//! Messages that reports do not count: of layers above the transport that talk with subscribers
//! beside the program's messages. Each has datagrams of its own, because receivers report how far
//! they have read by datagrams.

/// The last uncounted messages, and the number of all.
#[derive(Debug, Default)]
pub(super) struct Uncounted {
    /// Sequences of the datagrams with the last ones: from `first` to before `end`.
    first: u64,
    end: u64,
    pub(super) messages: u64,
}

impl Uncounted {
    /// Adds `messages` in the datagrams from `first` to before `end`.
    pub(super) const fn add(&mut self, first: u64, end: u64, messages: u64) {
        if self.messages == 0 || self.end != first {
            self.first = first;
        }
        self.end = end;
        self.messages += messages;
    }

    /// Sequence to which the counted messages reach of a stream that ends at `end`.
    pub(super) const fn counted_end(&self, end: u64) -> u64 {
        if self.messages > 0 && self.end == end { self.first } else { end }
    }
}
