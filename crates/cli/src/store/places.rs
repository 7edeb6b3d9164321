//! The places in which commands look for stores, in words.

use lanecast::Config;
use std::fmt::Display;

/// Places in which a program with this configuration finds stores: the domain of shared memory,
/// the network, and the addresses of its discovery.
pub(super) fn places(config: &Config) -> String {
    let mut places = Vec::new();
    if config.transports.has_shm() {
        places.push(format!("shared memory in {}", config.shm.directory.display()));
    }
    if let Some(kind) = config.transports.kind() {
        places.push(format!(
            "{kind} on interface {} ({})",
            config.net.interface,
            discovery(config)
        ));
    }
    places.join(" and ")
}

/// The addresses of a network's discovery.
fn discovery(config: &Config) -> String {
    let net = &config.net;
    let mut ways = Vec::new();
    let mut add = |what: &str, addresses: &[String]| {
        if !addresses.is_empty() {
            ways.push(format!("{what} {}", addresses.join(", ")));
        }
    };
    add("discovery group", &texts(net.resolver_group.as_slice()));
    add("resolver daemons", &texts(&net.resolvers));
    add("peers", &[texts(&net.peers), net.peer_names.clone()].concat());
    add("own resolver daemon at port", &texts(net.resolver_port.as_slice()));
    if ways.is_empty() { "no discovery is configured".to_owned() } else { ways.join("; ") }
}

fn texts(values: &[impl Display]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast::Context;

    fn config(settings: &[(&str, &str)]) -> Config {
        let builder = settings.iter().fold(Context::builder(), |builder, (key, value)| {
            builder.set(key, value).expect("a setting")
        });
        builder.config().expect("a configuration")
    }

    #[test]
    fn the_places_and_addresses_that_were_asked_are_named() {
        let shm = config(&[("shm.directory", "/dev/shm/d")]);
        assert_eq!(places(&shm), "shared memory in /dev/shm/d");
        let net = config(&[
            ("transports", "shm+ru"),
            ("shm.directory", "/dev/shm/d"),
            ("net.interface", "10.0.0.1"),
            ("net.resolver_group", "none"),
            ("net.resolvers", "10.0.0.2:7000,10.0.0.3:7000"),
        ]);
        let resolvers = "resolver daemons 10.0.0.2:7000, 10.0.0.3:7000";
        let both =
            format!("shared memory in /dev/shm/d and ru on interface 10.0.0.1 ({resolvers})");
        assert_eq!(places(&net), both);
        let group = config(&[("transports", "rm"), ("net.resolver_group", "239.1.2.3:99")]);
        assert!(places(&group).contains("(discovery group 239.1.2.3:99)"), "{}", places(&group));
    }
}
