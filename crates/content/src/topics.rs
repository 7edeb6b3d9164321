//! Transport topics of one content topic.

/// Topic of the published messages.
pub(crate) fn data_topic(topic: &str) -> String {
    format!("{topic}?content")
}

/// Topic of the filter requests of subscribers.
pub(crate) fn control_topic(topic: &str) -> String {
    format!("{topic}?filters")
}
