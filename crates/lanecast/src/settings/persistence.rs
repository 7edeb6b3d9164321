//! Settings of persistence.

use super::setting::Setting;
use super::value::{duration, number, parse, size, written};
use lanecast_base::format_duration;
use lanecast_store::{GroupRule, Pacing, StoreGroups};
use std::time::Duration;

/// Most messages that a setting allows in flight.
const MESSAGES_MAX: u32 = 100_000_000;

pub(super) const PERSISTENCE: &[Setting] = &[
    Setting {
        key: "persistence.stores",
        values: "names with commas in between; groups of them with semicolons: a,b,c;d,e,f",
        about: "The stores that keep messages, the same for publishers and subscribers of a topic. \
                A group holds a message if more than half of its stores have it on disk.",
        set: |config, text| {
            let group = |text: &str| text.split(',').map(|name| name.trim().to_owned()).collect();
            let stores: Vec<Vec<String>> = text.split(';').map(group).collect();
            StoreGroups::new(stores.clone(), GroupRule::Any).map_err(|error| error.to_string())?;
            config.persistence.stores = stores;
            Ok(())
        },
        get: |config| {
            let groups: Vec<String> =
                config.persistence.stores.iter().map(|group| group.join(",")).collect();
            groups.join(";")
        },
    },
    Setting {
        key: "persistence.groups",
        values: "any, majority or all",
        about: "How many of the groups of stores have to hold a message before it is stable.",
        set: |config, text| {
            config.persistence.groups = match text {
                "any" => GroupRule::Any,
                "majority" => GroupRule::Majority,
                "all" => GroupRule::All,
                _ => return Err(format!("'{text}' is no such rule")),
            };
            Ok(())
        },
        get: |config| {
            let rule = match config.persistence.groups {
                GroupRule::Any => "any",
                GroupRule::Majority => "majority",
                GroupRule::All => "all",
            };
            rule.to_owned()
        },
    },
    Setting {
        key: "persistence.pacing",
        values: "source, or receivers and a number of messages: receivers 10000",
        about: "Whether registered receivers hold a publisher back: with receivers, it is refused \
                while so many messages are not consumed by all of them.",
        set: |config, text| {
            config.persistence.pacing = match text.split_whitespace().collect::<Vec<_>>()[..] {
                ["source"] => Pacing::Source,
                ["receivers", messages] => {
                    Pacing::Receivers { messages: number(messages, 1, MESSAGES_MAX)?.into() }
                }
                _ => return Err(format!("'{text}' is not a pacing")),
            };
            Ok(())
        },
        get: |config| match config.persistence.pacing {
            Pacing::Source => "source".to_owned(),
            Pacing::Receivers { messages } => format!("receivers {messages}"),
        },
    },
    Setting {
        key: "persistence.flight_messages",
        values: "1 to 100000000",
        about: "The flight size of a publisher: the most messages that are not stable. More are \
                refused, or wait.",
        set: |config, text| {
            config.persistence.flight_messages = number(text, 1, MESSAGES_MAX)? as usize;
            Ok(())
        },
        get: |config| config.persistence.flight_messages.to_string(),
    },
    Setting {
        key: "persistence.flight",
        values: "a size",
        about: "The most bytes of messages that are not stable. The publisher keeps copies of them \
                in as much memory.",
        set: |config, text| {
            config.persistence.flight_bytes = size(text)?;
            Ok(())
        },
        get: |config| written(config.persistence.flight_bytes),
    },
    Setting {
        key: "persistence.cache",
        values: "a size",
        about: "The most bytes of live messages of a stream that wait at a subscriber for those \
                in front of them. Without room they are fetched from a store later.",
        set: |config, text| {
            config.persistence.cache_bytes = size(text)?;
            Ok(())
        },
        get: |config| written(config.persistence.cache_bytes),
    },
    Setting {
        key: "persistence.retry",
        values: "a duration of 1ms or more",
        about: "How often requests to a store are repeated. A store that has not answered ten of \
                them counts as lost.",
        set: |config, text| {
            let retry = duration(text)?;
            if retry < Duration::from_millis(1) {
                return Err("1ms or more".to_owned());
            }
            let nanos = retry.as_nanos();
            config.persistence.retry = parse(&nanos.to_string())?;
            Ok(())
        },
        get: |config| format_duration(Duration::from_nanos(config.persistence.retry)),
    },
];
