//! Settings of which publishers on other hosts are joined.

use super::setting::Setting;
use super::value::parse;
use lanecast_net::TransportKind;

pub(super) const ACCEPT: &[Setting] = &[
    Setting {
        key: "net.accept",
        values: "transports with commas between: rm, ru, tcp",
        about: "Transports by which subscribers join advertised publishers; others are \
                ignored.",
        set: |config, text| {
            config.net.accept = text
                .split(',')
                .map(|name| {
                    let kind =
                        TransportKind::ALL.into_iter().find(|kind| kind.name() == name.trim());
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
        about: "Whether an advertisement from the group or a peer may name a publisher at \
                another address than its sender's. Daemons in net.resolvers may in any case.",
        set: |config, text| {
            config.net.foreign_adverts = parse(text)?;
            Ok(())
        },
        get: |config| config.net.foreign_adverts.to_string(),
    },
    Setting {
        key: "net.streams_each",
        values: "1 to 65536",
        about: "The most TCP publishers at one address that a subscriber joins; each takes one \
                file descriptor.",
        set: |config, text| {
            config.net.streams_each = parse(text)?;
            Ok(())
        },
        get: |config| config.net.streams_each.to_string(),
    },
];
