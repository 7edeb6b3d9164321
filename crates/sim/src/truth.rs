//! Ground truth: the messages that a publisher has published.

use crate::payload::Payloads;

/// One publisher's session.
#[derive(Debug)]
pub struct Truth {
    /// Number of the session.
    pub session: u64,
    /// Topics, by number.
    pub topics: Vec<TopicTruth>,
    /// Whether it was closed on purpose.
    pub is_closed: bool,
}

/// One topic of a session.
#[derive(Debug)]
pub struct TopicTruth {
    /// Name.
    pub name: String,
    /// Payloads of its messages.
    pub speech: Payloads,
    /// Whether the publisher has added it.
    pub exists: bool,
    /// Whether its last message was published.
    pub has_last: bool,
    /// Whether the batch continues on this topic, by message.
    pub goes_on: Vec<bool>,
}

impl TopicTruth {
    /// Creates a topic without messages.
    pub const fn new(name: String, speech: Payloads) -> Self {
        Self { name, speech, exists: false, has_last: false, goes_on: Vec::new() }
    }

    /// Number of published messages.
    pub const fn published(&self) -> u64 {
        self.goes_on.len() as u64
    }
}
