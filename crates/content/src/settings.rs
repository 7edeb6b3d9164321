//! Settings of publishers and subscribers.

use lanecast_filter::FilterLimits;
use lanecast_filter::message_type::{Format, MessageType};
use std::time::Duration;

/// Settings of the publishers and subscribers of a content topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentSettings {
    /// Format of the messages.
    pub format: Format,
    /// Limits of each filter.
    pub limits: FilterLimits,
    /// Most distinct filters of a publisher, up to 65,535. Each shortens its longest message by two
    /// bytes.
    pub filters_max: usize,
    /// Most memory of all patterns of a publisher's filters, including their match caches, in
    /// bytes.
    pub patterns_bytes_max: usize,
    /// Interval at which a subscriber repeats an unanswered filter request.
    pub retry_interval: Duration,
}

impl Default for ContentSettings {
    fn default() -> Self {
        Self::new(MessageType::Json)
    }
}

impl ContentSettings {
    /// Defaults for messages of `format`: 1,000 filters of up to 4 KiB.
    pub fn new(format: impl Into<Format>) -> Self {
        Self {
            format: format.into(),
            limits: FilterLimits { length_bytes: 4 << 10, ..FilterLimits::DEFAULT },
            filters_max: 1_000,
            patterns_bytes_max: 64 << 20,
            retry_interval: Duration::from_millis(20),
        }
    }
}
