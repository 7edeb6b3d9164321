//! Settings of persistence.

use super::setting::Setting;
use super::value::{duration, number, size, written};
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
            config.persistence.stores = stores(text)?;
            Ok(())
        },
        get: |config| stores_listed(&config.persistence.stores),
    },
    Setting {
        key: "persistence.topic_stores",
        values: "topics with their stores, and spaces in between: prices=a trades=b,c,d;e,f,g, or \
                 none",
        about: "Stores of single topics; all others have persistence.stores. A topic with a space \
                or a = in its name gets its stores from the program.",
        set: |config, text| {
            let mut all: Vec<(String, Vec<Vec<String>>)> = Vec::new();
            let text = if text == "none" { "" } else { text };
            for entry in text.split_whitespace() {
                let wrong = || format!("'{entry}' is no topic with stores: write prices=a,b,c");
                let parts = entry.split_once('=').filter(|(topic, _)| !topic.is_empty());
                let (topic, names) = parts.ok_or_else(wrong)?;
                if all.iter().any(|(other, _)| other == topic) {
                    return Err(format!("'{topic}' stands there twice"));
                }
                all.push((topic.to_owned(), stores(names)?));
            }
            config.persistence.topic_stores = all;
            Ok(())
        },
        get: |config| {
            let entry = |(topic, stores): &(String, Vec<Vec<String>>)| {
                format!("{topic}={}", stores_listed(stores))
            };
            let entries: Vec<String> = config.persistence.topic_stores.iter().map(entry).collect();
            if entries.is_empty() { "none".to_owned() } else { entries.join(" ") }
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
        values: "source or receivers; receivers 10000 sets persistence.unconsumed_messages, too",
        about: "Whether registered receivers hold a publisher back: with receivers, it is refused \
                while persistence.unconsumed_messages are not consumed by all of them.",
        set: |config, text| {
            let persistence = &mut config.persistence;
            persistence.pacing = match text.split_whitespace().collect::<Vec<_>>()[..] {
                ["source"] => Pacing::Source,
                ["receivers"] => Pacing::Receivers,
                ["receivers", messages] => {
                    persistence.unconsumed_messages = number(messages, 1, MESSAGES_MAX)?.into();
                    Pacing::Receivers
                }
                _ => return Err(format!("'{text}' is not a pacing")),
            };
            Ok(())
        },
        get: |config| match config.persistence.pacing {
            Pacing::Source => "source".to_owned(),
            Pacing::Receivers => "receivers".to_owned(),
        },
    },
    Setting {
        key: "persistence.unconsumed_messages",
        values: "1 to 100000000",
        about: "The most messages that are not consumed by all registered receivers, where these \
                hold publishers back. They are on the stores' disks; the flight size bounds those \
                that are not stable.",
        set: |config, text| {
            config.persistence.unconsumed_messages = number(text, 1, MESSAGES_MAX)?.into();
            Ok(())
        },
        get: |config| config.persistence.unconsumed_messages.to_string(),
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
            config.persistence.retry = retry;
            Ok(())
        },
        get: |config| format_duration(config.persistence.retry),
    },
];

/// Groups of stores.
fn stores(text: &str) -> Result<Vec<Vec<String>>, String> {
    let group = |text: &str| text.split(',').map(|name| name.trim().to_owned()).collect();
    let stores: Vec<Vec<String>> = text.split(';').map(group).collect();
    StoreGroups::new(stores.clone(), GroupRule::Any).map_err(|error| error.to_string())?;
    Ok(stores)
}

fn stores_listed(stores: &[Vec<String>]) -> String {
    stores.iter().map(|group| group.join(",")).collect::<Vec<_>>().join(";")
}
