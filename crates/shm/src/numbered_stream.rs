//! A joined stream, and its place in the numbering of its publisher's messages.
//!
//! Owned by an image, used on the subscriber's thread.

use lanecast_transport::Stream;
use lanecast_wire::shm::TopicWord;

/// A stream, and its place in the numbering.
#[derive(Debug)]
pub(crate) struct NumberedStream {
    pub(crate) stream: Stream,
    /// Number of the next message; before the first message the largest that it can have.
    pub(crate) next: u64,
    /// No message was passed yet.
    is_new: bool,
}

impl NumberedStream {
    /// A stream whose first message has at most the number `first_max`.
    pub(crate) const fn new(stream: Stream, first_max: u64) -> Self {
        Self { stream, next: first_max, is_new: true }
    }

    /// Passes a message: returns its number, or `None` if it is not the next one.
    #[inline(always)]
    pub(crate) fn pass(&mut self, word: TopicWord) -> Option<u64> {
        if self.is_new || !word.fits(self.next) {
            return self.pass_first(word);
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        Some(number)
    }

    #[cold]
    #[inline(never)]
    fn pass_first(&mut self, word: TopicWord) -> Option<u64> {
        let number = word.number_up_to(self.next).filter(|_| self.is_new)?;
        (self.next, self.is_new) = (number.wrapping_add(1), false);
        Some(number)
    }
}
