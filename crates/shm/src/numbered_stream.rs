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
    next: u64,
    /// Topic word of the next message: one comparison finds a new stream and a wrong number. The
    /// word of another topic, which no message of this one has, before the first message.
    expected: TopicWord,
    /// Messages from `next` on that the end of the session has lost.
    pub(crate) lost: u64,
}

impl NumberedStream {
    /// A stream whose first message has at most the number `first_max`.
    pub(crate) const fn new(stream: Stream, first_max: u64) -> Self {
        let expected = TopicWord::new(stream.topic_id.0 ^ 1, 0);
        Self { stream, next: first_max, expected, lost: 0 }
    }

    /// Number of the next message; before the first message the largest that it can have.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Passes the messages before number `next`, or undoes a pass.
    #[inline]
    pub(crate) const fn set_next(&mut self, next: u64) {
        self.next = next;
        self.expected = TopicWord::new(self.stream.topic_id.0, next);
    }

    /// Whether no message was passed yet.
    #[inline(always)]
    const fn is_new(&self) -> bool {
        self.expected.topic() != self.stream.topic_id.0
    }

    /// Passes a message: returns its number, or `None` if it is not the next one.
    #[inline(always)]
    pub(crate) fn pass(&mut self, word: TopicWord) -> Option<u64> {
        if !self.accept(word) {
            return None;
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.expected = word.next();
        Some(number)
    }

    /// Whether a message is the next one, which then has the number `next`.
    #[inline(always)]
    pub(crate) fn accept(&mut self, word: TopicWord) -> bool {
        word == self.expected || self.accept_first(word)
    }

    #[cold]
    #[inline(never)]
    fn accept_first(&mut self, word: TopicWord) -> bool {
        let first = if self.is_new() { word.number_up_to(self.next) } else { None };
        first.inspect(|number| self.set_next(*number)).is_some()
    }
}

/// Most messages of a run: fewer than half of the numbers that a topic word distinguishes, so that
/// the word and [`NumberedStream::next`] give each message's number.
pub(crate) const RUN_MESSAGES_MAX: usize = 1 << 15;

/// Numbers of the messages of a run, for an iterator that passes nothing for its streams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunNumbers {
    /// Word's topic of the last message, plus one; 0 before the first message.
    topic: u32,
    /// Number after the last message's.
    next: u64,
    /// Messages of several topics have come.
    is_mixed: bool,
}

impl RunNumbers {
    /// Steps over a message of `stream`; `None` if the run must end before it, because it is the
    /// stream's first one, or not the next one.
    #[inline(always)]
    pub(crate) fn step(&mut self, stream: &NumberedStream, word: TopicWord) -> Option<u64> {
        let mut number = self.next;
        if self.topic != word.topic() + 1 {
            let ahead = word.number().wrapping_sub(stream.next as u16);
            if stream.is_new() || usize::from(ahead) >= RUN_MESSAGES_MAX {
                return None;
            }
            number = stream.next.wrapping_add(u64::from(ahead));
            self.is_mixed |= self.topic != 0;
            self.topic = word.topic() + 1;
        } else if !word.fits(number) {
            return None;
        }
        self.next = number.wrapping_add(1);
        Some(number)
    }

    /// The topic of all messages, and the number after the last one; `None` if there are several
    /// topics or no messages.
    #[inline]
    pub(crate) const fn only_topic(&self) -> Option<(u32, u64)> {
        if self.is_mixed || self.topic == 0 { None } else { Some((self.topic - 1, self.next)) }
    }
}
