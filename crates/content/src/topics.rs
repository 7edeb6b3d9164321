//! Transport topics of one content topic; `Stream::unfiltered_topic` names the third.

pub(crate) const CONTENT: &str = "?content";

/// Topic of the matching messages.
pub(crate) fn content_topic(topic: &str) -> String {
    format!("{topic}{CONTENT}")
}

/// The topic whose matching messages `topic` carries, if it carries any.
pub(crate) fn topic_of_content(topic: &str) -> Option<&str> {
    topic.strip_suffix(CONTENT)
}

/// Topic of the filter requests of subscribers.
pub(crate) fn control_topic(topic: &str) -> String {
    format!("{topic}?filters")
}
