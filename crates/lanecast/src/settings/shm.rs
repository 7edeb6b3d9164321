//! Settings of the transport over shared memory.

use super::setting::Setting;
use super::value::{number, parse, size_within};
use lanecast_base::{Size, WaitStrategy, format_duration, parse_duration};
use lanecast_os::Access;
use lanecast_shm::{SLOW_CONSUMER_MIN, SlowConsumerPolicy, Visibility};

pub(super) const SHM: &[Setting] = &[
    Setting {
        key: "shm.visibility",
        values: "host or process",
        about: "Visibility of a domain: host for all processes that use its directory, process \
                for this program only, without files; the directory is then only a name.",
        set: |config, text| {
            config.shm.visibility = match text {
                "host" => Visibility::Host,
                "process" => Visibility::Process,
                _ => return Err(format!("'{text}' is neither host nor process")),
            };
            Ok(())
        },
        get: |config| match config.shm.visibility {
            Visibility::Host => "host".into(),
            Visibility::Process => "process".into(),
        },
    },
    Setting {
        key: "shm.directory",
        values: "a path",
        about: "The domain: publishers and subscribers with the same directory find each other. \
                Put it on tmpfs. In a file it is relative to the directory of that file.",
        set: |config, text| {
            if text.is_empty() {
                return Err("the path is empty".into());
            }
            config.shm.directory = text.into();
            Ok(())
        },
        get: |config| config.shm.directory.display().to_string(),
    },
    Setting {
        key: "shm.access",
        values: "owner or group",
        about: "Who may use the domain: its user alone, or also the directory's group. Group \
                members can read messages, but only publishers can write them.",
        set: |config, text| {
            config.shm.access = match text {
                "owner" => Access::Owner,
                "group" => Access::Group,
                _ => return Err(format!("'{text}' is neither owner nor group")),
            };
            Ok(())
        },
        get: |config| match config.shm.access {
            Access::Owner => "owner".into(),
            Access::Group => "group".into(),
        },
    },
    Setting {
        key: "shm.window",
        values: "64KiB to 1GiB",
        about: "The ring of a session, rounded up to a power of two. Half of a core's \
                second-level cache is fastest; a larger ring bridges longer pauses. A message \
                may take an eighth of it.",
        set: |config, text| {
            config.shm.window_bytes = size_within(text, 64 << 10, 1 << 30)?;
            Ok(())
        },
        get: |config| Size(config.shm.window_bytes).to_string(),
    },
    Setting {
        key: "shm.subscribers_max",
        values: "1 to 64",
        about: "The most subscribers of one session.",
        set: |config, text| {
            config.shm.subscribers_max = number(text, 1, 64)?;
            Ok(())
        },
        get: |config| config.shm.subscribers_max.to_string(),
    },
    Setting {
        key: "shm.topics_max",
        values: "1 to 65536",
        about: "The most topics of one session; each takes 264 bytes.",
        set: |config, text| {
            config.shm.topics_max = number(text, 1, 65_536)?;
            Ok(())
        },
        get: |config| config.shm.topics_max.to_string(),
    },
    Setting {
        key: "shm.publisher_wait",
        values: "spin, yield, spin-park or park",
        about: "How a publisher waits for room.",
        set: |config, text| {
            config.shm.publisher_wait = parse::<WaitStrategy>(text)?;
            Ok(())
        },
        get: |config| config.shm.publisher_wait.to_string(),
    },
    Setting {
        key: "shm.subscriber_wait",
        values: "spin, yield, spin-park or park",
        about: "How a subscriber waits for messages.",
        set: |config, text| {
            config.shm.subscriber_wait = parse::<WaitStrategy>(text)?;
            Ok(())
        },
        get: |config| config.shm.subscriber_wait.to_string(),
    },
    Setting {
        key: "shm.liveness",
        values: "10ms to 1h",
        about: "The longest time until the death of a process is noticed.",
        set: |config, text| {
            let liveness = parse_duration(text).map_err(|error| error.to_string())?;
            if !(10..=3_600_000).contains(&liveness.as_millis()) {
                return Err("it must lie between 10ms and 1h".into());
            }
            config.shm.liveness = liveness;
            Ok(())
        },
        get: |config| format_duration(config.shm.liveness),
    },
    Setting {
        key: "shm.slow_consumer",
        values: "wait, or a duration of 1ms or more",
        about: "The slow-consumer policy: a publisher waits for a subscriber that lives but \
                does not read, or evicts it after it has blocked the publisher for this long.",
        set: |config, text| {
            config.shm.slow_consumer = if text == "wait" {
                SlowConsumerPolicy::Wait
            } else {
                let limit = parse_duration(text).map_err(|error| error.to_string())?;
                if limit < SLOW_CONSUMER_MIN {
                    return Err(format!("{text} would evict living subscribers at once"));
                }
                SlowConsumerPolicy::EvictAfter(limit)
            };
            Ok(())
        },
        get: |config| match config.shm.slow_consumer {
            SlowConsumerPolicy::Wait => "wait".into(),
            SlowConsumerPolicy::EvictAfter(limit) => format_duration(limit),
        },
    },
];
