//! What a publisher has really published.

use crate::payload::Speech;

/// One publisher's session.
#[derive(Debug)]
pub struct Truth {
    /// The session's number.
    pub session: u64,
    /// Its topics, by number.
    pub topics: Vec<TopicTruth>,
    /// Whether it was closed on purpose.
    pub is_closed: bool,
}

/// One topic of a session.
#[derive(Debug)]
pub struct TopicTruth {
    /// Its name.
    pub name: String,
    /// What its messages say.
    pub speech: Speech,
    /// Whether the publisher has added it.
    pub exists: bool,
    /// Whether its last message was published.
    pub has_last: bool,
    /// By message: whether the batch went on, on this topic.
    pub goes_on: Vec<bool>,
}

impl TopicTruth {
    /// A topic without messages.
    pub const fn new(name: String, speech: Speech) -> Self {
        Self { name, speech, exists: false, has_last: false, goes_on: Vec::new() }
    }

    /// How many messages have been published.
    pub const fn published(&self) -> u64 {
        self.goes_on.len() as u64
    }
}
