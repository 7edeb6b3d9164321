//! Settings of filters without a server.

use super::setting::Setting;
use super::value::{duration, number, parse, size, written};
use lanecast_base::format_duration;
use lanecast_filter::message_type::{Format, MessageType};

pub(super) const FILTER: &[Setting] = &[
    Setting {
        key: "filter.message_type",
        values: "json, fix, nvfix, xml or binary",
        about: "The format of messages on topics with filters. FIX and NVFIX have the usual \
                separators.",
        set: |config, text| {
            let kind = parse::<MessageType>(text)?;
            // Separators that the program chose stay.
            if config.filter.format.message_type() != kind {
                config.filter.format = Format::new(kind);
            }
            Ok(())
        },
        get: |config| config.filter.format.message_type().to_string(),
    },
    Setting {
        key: "filter.filters_max",
        values: "1 to 65535",
        about: "The most different filters of a publisher; more are refused. Each shortens its \
                longest message by two bytes.",
        set: |config, text| {
            config.filter.filters_max = number(text, 1, 65_535)? as usize;
            Ok(())
        },
        get: |config| config.filter.filters_max.to_string(),
    },
    Setting {
        key: "filter.patterns",
        values: "a size",
        about: "The most memory for the patterns of all filters of a publisher.",
        set: |config, text| {
            config.filter.patterns_bytes_max = size(text)?;
            Ok(())
        },
        get: |config| written(config.filter.patterns_bytes_max),
    },
    Setting {
        key: "filter.retry_interval",
        values: "a duration",
        about: "How often a subscriber repeats a request for its filter that is not answered.",
        set: |config, text| {
            config.filter.retry_interval = duration(text)?;
            Ok(())
        },
        get: |config| format_duration(config.filter.retry_interval),
    },
];
