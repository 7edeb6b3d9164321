//! Stores that have not answered a command: told to the user, with what can be done.

use super::places::places;
use crate::output::warn;
use lanecast::persistence::{NoAnswer, StoreInspection};
use lanecast::{Config, format_duration};
use std::time::Duration;

/// Tells which stores have not answered, and what can be done.
pub(super) fn tell_missing(stores: &[StoreInspection], config: &Config, time: Duration) {
    let mut silent = Vec::new();
    for store in stores.iter().filter(|store| !store.is_complete) {
        let how = match (store.other_version, store.incarnation) {
            (Some(version), _) => NoAnswer::OtherVersion(version).to_string(),
            (None, Some(_)) => "told only a part in time: wait longer with --for".to_owned(),
            (None, None) => {
                silent.push(store.store.as_str());
                NoAnswer::TimedOut.to_string()
            }
        };
        warn(&format!("store {} {how}", store.store));
    }
    advise(&silent, config, time);
}

/// Tells what can be done about stores that gave no answer within `time`.
pub(super) fn advise(silent: &[&str], config: &Config, time: Duration) {
    if !silent.is_empty() {
        warn(&advice(silent, config, time));
    }
}

fn advice(silent: &[&str], config: &Config, time: Duration) -> String {
    let hosts = match config.transports.kind() {
        None => "reach stores of other hosts with --transports and --interface",
        Some(_) => "check --transports, --interface and the net.* settings of their hosts",
    };
    format!(
        "{} asked for {} by {}: start it with `lanecast store {}` if it does not run, name its \
         domain with --directory, {hosts}, or wait longer with --for",
        silent.join(", "),
        format_duration(time),
        places(config),
        silent.first().unwrap_or(&"NAME"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast::Context;

    #[test]
    fn advice_names_the_stores_the_places_and_the_way_out() {
        let config = |transports: &str| {
            let builder = Context::builder().set("transports", transports).expect("transports");
            let builder = builder.set("shm.directory", "/dev/shm/d").expect("a directory");
            builder.config().expect("a configuration")
        };
        let words = advice(&["a", "b"], &config("shm"), Duration::from_secs(3));
        assert!(words.starts_with("a, b asked for 3s by shared memory in /dev/shm/d: "), "{words}");
        assert!(words.contains("`lanecast store a`") && words.contains("--transports"), "{words}");
        let words = advice(&["a"], &config("shm+ru"), Duration::from_secs(3));
        assert!(words.contains("ru on interface") && words.contains("of their hosts"), "{words}");
    }
}
