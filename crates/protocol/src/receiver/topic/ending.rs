//! The end of a topic's stream, and what goes on behind it if the sender was not dead after all.

use super::{Sink, Topic};
use crate::receiver::gap_tracker::GapTracker;
use crate::receiver::{Delivery, LossReason};
use crate::sequence::before;

impl Topic {
    /// Whether `Joined` was told, and `Left` was not.
    pub(in crate::receiver) const fn is_joined(&self) -> bool {
        self.number.is_some() && !self.has_left
    }

    /// Whether `Left` was told.
    pub(in crate::receiver) const fn has_left(&self) -> bool {
        self.has_left
    }

    /// Goes on after the end: messages are counted from here.
    pub(in crate::receiver) fn begin_again(&mut self) {
        self.base = self.message.wrapping_add(u64::from(self.skip));
        self.has_left = false;
    }

    /// Whether something in the datagrams up to `sequence` may be missing unknown to the topic.
    pub(in crate::receiver) fn is_in_doubt(&self, sequence: u64) -> bool {
        self.number.is_some() && !before(sequence, self.floor)
    }

    /// Nothing more will come: delivers what is there and tells what is not.
    pub(in crate::receiver) fn end(
        &mut self,
        tracker: &GapTracker,
        doubt: Option<u64>,
        sink: &mut Sink<'_>,
    ) {
        self.release(tracker, sink);
        self.flush(sink);
        let first = self.message.wrapping_add(u64::from(self.skip));
        let had_begun = self.drop_assembly(sink);
        let in_doubt = doubt.is_some_and(|sequence| self.is_in_doubt(sequence));
        if in_doubt || self.contradicted {
            let why = if in_doubt { sink.why } else { LossReason::Damaged };
            let (slot, first) = (sink.slot, first.wrapping_sub(self.base));
            sink.out.push(Delivery::Lost { slot, first, count: None, why });
        } else if had_begun {
            self.lose(first, 1, sink.why, sink);
            // Should the sender be heard again, the rest of this message is not lost once more.
            self.skip = true;
        }
        self.has_left = true;
    }
}
