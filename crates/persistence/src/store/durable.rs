//! The durable part of a stream: the log's positions of its last messages.

use std::collections::VecDeque;

/// Translates the log's progress into the stream's.
#[derive(Clone, Debug, Default)]
pub(super) struct DurableTrail {
    /// Positions of records that are not durable yet, with the sequence after each message.
    pending: VecDeque<(u64, u64)>,
    next: u64,
}

impl DurableTrail {
    /// Sequence after the last durable message.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The message before `next` was appended at `position`.
    pub(super) fn push(&mut self, position: u64, next: u64) {
        self.pending.push_back((position, next));
    }

    /// Everything up to `position` is durable; returns whether the stream has come further.
    pub(super) fn advance(&mut self, position: u64) -> bool {
        let before = self.next;
        while let Some(&(at, next)) = self.pending.front()
            && at <= position
        {
            self.next = next;
            self.pending.pop_front();
        }
        self.next != before
    }

    pub(super) fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// The stream ends at `next`: later messages are void.
    pub(super) fn truncate(&mut self, next: u64) {
        self.pending.retain(|(_, it)| *it <= next);
        self.next = self.next.min(next);
    }

    /// Everything before `next` is durable, or not part of the stream.
    pub(super) fn restart(&mut self, next: u64) {
        self.pending.clear();
        self.next = next;
    }
}
