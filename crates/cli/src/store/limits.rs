//! Limits of what `lanecast store` keeps.

use lanecast::persistence::{StoreOptions, TopicRetention};
use lanecast::{Size, parse_duration};
use std::time::Duration;

/// Limits of a store.
#[derive(Debug, clap::Args)]
pub(super) struct LimitArgs {
    /// Bytes of files for all topics; beyond, the oldest messages are given up [default: no limit]
    #[arg(long, value_name = "BYTES")]
    keep: Option<Size>,

    /// Age of messages; older ones are given up [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    keep_age: Option<Duration>,

    /// Bytes for each publisher that are kept in spite of limits since a registered subscriber has
    /// not consumed them; a receiver-paced publisher stops there [default: 64MiB]
    #[arg(long, value_name = "BYTES")]
    keep_unconsumed: Option<Size>,

    /// Time after which a registered subscriber that is away holds up no publisher any more, and
    /// nothing but its position is kept for it [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    receiver_lifetime: Option<Duration>,

    /// A limit of one topic, for each of its publishers: bytes, an age, or both; may be repeated
    #[arg(long, value_name = "TOPIC=BYTES[,AGE]", value_parser = topic)]
    keep_topic: Vec<TopicRetention>,
}

impl LimitArgs {
    /// Options of a store with these limits.
    pub(super) fn options(&self) -> StoreOptions {
        let mut options = StoreOptions::default();
        let nanos = |it: Duration| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX);
        options.settings.receiver_lifetime = self.receiver_lifetime.map(nanos);
        let retention = &mut options.retention;
        retention.bytes = self.keep.map(|size| size.0);
        retention.age = self.keep_age;
        if let Some(size) = self.keep_unconsumed {
            retention.unconsumed_bytes = size.0;
        }
        retention.topics.clone_from(&self.keep_topic);
        // A limit below a few segments could not be kept.
        if let Some(bytes) = retention.bytes {
            let segment = (bytes / 8).clamp(1 << 20, options.journal.segment_bytes);
            options.journal.segment_bytes = segment & !7;
        }
        options
    }
}

/// Reads `TOPIC=LIMIT[,LIMIT]`, where a limit is a size or a duration.
fn topic(text: &str) -> Result<TopicRetention, String> {
    let form = "a topic and its limits, such as orders=1GiB,86400s";
    let (topic, limits) = text.split_once('=').ok_or_else(|| format!("give {form}"))?;
    let mut retention = TopicRetention { topic: topic.into(), ..TopicRetention::default() };
    for limit in limits.split(',') {
        if let Ok(size) = limit.parse::<Size>() {
            retention.bytes = Some(size.0);
        } else if let Ok(age) = parse_duration(limit) {
            retention.age = Some(age);
        } else {
            return Err(format!("{limit} is neither a size nor a duration: give {form}"));
        }
    }
    Ok(retention)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_topics_are_read() {
        let both = topic("orders=2KiB,60s").expect("read");
        let age = Some(Duration::from_secs(60));
        assert_eq!((both.topic.as_str(), both.bytes, both.age), ("orders", Some(2048), age));
        assert_eq!(topic("a=60s").expect("read").bytes, None);
        for (text, words) in
            [("orders", "such as"), ("orders=", "neither"), ("a=1KiB,x", "neither")]
        {
            assert!(topic(text).expect_err("refused").contains(words), "{text}");
        }
    }
}
