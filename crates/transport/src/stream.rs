//! A stream: one publisher on one topic.

use core::fmt;

/// Id of one run of a publisher: random and never reused. A restarted publisher has a new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}

/// Number of a topic within its session, in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId(pub u32);

impl TopicId {
    /// The topic that the publisher was made with.
    pub const FIRST: Self = Self(0);
}

/// One publisher on one topic, as a subscriber sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The session.
    pub session: SessionId,
    /// The topic's name.
    pub topic: String,
    /// The topic's number within the session.
    pub topic_id: TopicId,
    /// The publisher's process id, in its own namespace.
    pub pid: u32,
    /// Address of the session, for people: `shm:0f3a…`.
    pub source: String,
}

impl Stream {
    /// Ending of the topics with all messages of publishers that serve filters.
    pub(crate) const UNFILTERED: &str = "?all";

    /// The topic on which a publisher that serves filters sends every message, for subscribers
    /// without a filter. Its streams bear the name `topic`.
    pub fn unfiltered_topic(topic: &str) -> String {
        format!("{topic}{}", Self::UNFILTERED)
    }

    /// The name that subscribers see for `topic`, a topic of a transport.
    pub fn visible_topic(topic: &str) -> &str {
        topic.strip_suffix(Self::UNFILTERED).unwrap_or(topic)
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.topic, self.source)
    }
}
