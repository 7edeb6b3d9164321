//! What both ends may be told.

use lanecast_filter::FilterLimits;
use lanecast_filter::message_type::Format;
use std::time::Duration;

/// How the ends of a topic behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What messages are written in.
    pub format: Format,
    /// What a filter may cost.
    pub limits: FilterLimits,
    /// The most different filters that a publisher takes, at most 65,535.
    pub filters_max: usize,
    /// The most bytes that the patterns of a publisher's filters may take together, compiled and
    /// when matched.
    pub patterns_bytes_max: usize,
    /// How long a subscriber waits for an answer before it asks again.
    pub ask_again: Duration,
}

impl Settings {
    /// The defaults, for messages of this format: 1,000 filters of 4 KiB.
    pub fn new(format: impl Into<Format>) -> Self {
        Self {
            format: format.into(),
            limits: FilterLimits { length_bytes: 4 << 10, ..FilterLimits::DEFAULT },
            filters_max: 1_000,
            patterns_bytes_max: 64 << 20,
            ask_again: Duration::from_millis(20),
        }
    }
}
