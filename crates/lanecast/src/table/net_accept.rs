//! Settings of which publishers on other hosts are joined.

use super::{Setting, parse};
use lanecast_net::Kind;

pub(super) const ACCEPT: &[Setting] = &[
    Setting {
        key: "net.accept",
        values: "transports with commas between: rm, ru, tcp",
        about: "By which transports subscribers join publishers that are announced; others are \
                passed over.",
        set: |config, text| {
            config.net.accept = text
                .split(',')
                .map(|name| {
                    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name.trim());
                    kind.ok_or_else(|| format!("{name:?} is none of rm, ru and tcp"))
                })
                .collect::<Result<_, _>>()?;
            Ok(())
        },
        get: |config| {
            let names: Vec<&str> = config.net.accept.iter().map(|kind| kind.name()).collect();
            names.join(",")
        },
    },
    Setting {
        key: "net.foreign_adverts",
        values: "true or false",
        about: "Whether an announcement in the group, or by a peer, may tell of a publisher at \
                another address than the one that it is sent from. Daemons in net.resolvers tell \
                of everybody's in any case.",
        set: |config, text| {
            config.net.foreign_adverts = parse(text)?;
            Ok(())
        },
        get: |config| config.net.foreign_adverts.to_string(),
    },
    Setting {
        key: "net.streams_each",
        values: "1 to 65536",
        about: "The most TCP publishers at one address that a subscriber joins: each takes one of \
                the process's descriptors.",
        set: |config, text| {
            config.net.streams_each = parse(text)?;
            Ok(())
        },
        get: |config| config.net.streams_each.to_string(),
    },
];
