//! The table of settings: the source of defaults, help texts, the reference page and `lanecast
//! config`.

mod filter;
mod group;
mod net;
mod net_accept;
mod persistence;
mod setting;
mod shm;
mod value;

pub use setting::Setting;

use crate::config::{Config, ConfigError};
use crate::transports::Transports;
use lanecast_net::OpenError;

/// All settings, in the order of the reference page.
pub const SETTINGS: &[Setting] = &ALL;

const PARTS: [&[Setting]; 7] = [
    &[TRANSPORTS, SERVER],
    shm::SHM,
    net_accept::ACCEPT,
    net::NET,
    filter::FILTER,
    group::GROUP,
    persistence::PERSISTENCE,
];
const ALL: [Setting; count(PARTS)] = joined(PARTS);

/// The place of settings that the program itself chose.
pub(crate) const PROGRAM: &str = "the program";

/// The setting named `key`.
pub(crate) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// Sets `key` to `value`; `place` names the file and line, or the variable, for errors.
pub(crate) fn set(
    config: &mut Config,
    key: &str,
    value: &str,
    place: &str,
) -> Result<(), ConfigError> {
    let setting = find(key).ok_or_else(|| unknown(key, place))?;
    (setting.set)(config, value).map_err(|message| ConfigError::Value {
        place: place.to_owned(),
        key: setting.key,
        message,
        values: setting.values,
    })?;
    config.origins.0.insert(setting.key, place.to_owned());
    Ok(())
}

/// Applies `change`, and checks each value as [`set`] would check its text.
pub(crate) fn set_typed(
    config: &mut Config,
    change: impl Fn(&mut Config),
    place: &str,
) -> Result<(), ConfigError> {
    let before = config.clone();
    change(config);
    let mut same = config.clone();
    for setting in SETTINGS {
        let value = setting.value(config);
        set(&mut same, setting.key, &value, place)?;
        if value != setting.value(&before) {
            config.origins.0.insert(setting.key, place.to_owned());
        }
    }
    Ok(())
}

/// Checks that the settings fit together; all layers have been applied.
pub(crate) fn check_together(config: &Config) -> Result<(), ConfigError> {
    let group = &config.group;
    if group.heartbeat == 0 || group.heartbeat.saturating_mul(5) > group.hang_timeout {
        let fix = "take at most a fifth of group.hang_timeout, but more than 0";
        return Err(unfit(config, "group.heartbeat", fix));
    }
    match config.net.check() {
        Err(OpenError::Setting { what, fix }) => Err(unfit(config, what, fix)),
        _ => Ok(()),
    }
}

/// The error for a setting that does not fit the others, with the places of all that it concerns.
fn unfit(config: &Config, key: &'static str, fix: &'static str) -> ConfigError {
    let words = fix.split(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c)));
    let mut places: Vec<&str> = Vec::new();
    for key in std::iter::once(key).chain(words) {
        let place = config.origins.0.get(key.trim_end_matches('.'));
        if let Some(place) = place.filter(|place| !places.contains(&place.as_str())) {
            places.push(place);
        }
    }
    if places.is_empty() {
        places.push(PROGRAM);
    }
    ConfigError::Unfit { place: places.join(", "), key, fix }
}

/// The error for a setting that does not exist, with the nearest name.
pub(crate) fn unknown(key: &str, place: &str) -> ConfigError {
    let last = |key: &str| key.rsplit('.').next().map(str::to_owned);
    let near = SETTINGS
        .iter()
        .find(|setting| last(setting.key) == last(key) || distance(setting.key, key) <= 2);
    let hint = match near {
        Some(setting) => format!(": did you mean '{}'?", setting.key),
        None => " (`lanecast config` lists all)".into(),
    };
    ConfigError::Unknown { place: place.to_owned(), key: key.to_owned(), hint }
}

/// Levenshtein distance: the number of changed letters.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

const TRANSPORTS: Setting = Setting {
    key: "transports",
    values: "shm, rm, ru, tcp, or shm+rm, shm+ru, shm+tcp",
    about: "How messages travel: shm to threads and processes of this host, by shared memory; rm, \
            ru and tcp to other hosts, by reliable multicast, reliable unicast or TCP. A publisher \
            with shm+ru serves both kinds of subscribers at once, and each gets a message once. \
            Subscribers use the transport of each publisher.",
    set: |config, text| {
        config.transports = value::parse::<Transports>(text)?;
        Ok(())
    },
    get: |config| config.transports.to_string(),
};

const SERVER: Setting = Setting {
    key: "server",
    values: "HOST:PORT, tcps://HOST:PORT, or none",
    about: "The content server of the commands query, watch and delete, and of pub and sub with \
            --server, where the command line names none. Without one it is 127.0.0.1:9007.",
    set: |config, text| {
        // As an empty variable is taken for one that is not set.
        let text = if text.is_empty() { "none" } else { text };
        config.server = value::optional(text, |text| Ok(text.to_owned()))?;
        Ok(())
    },
    get: |config| value::or_none(config.server.as_ref()),
};

/// Number of settings in the parts of the table.
const fn count(parts: [&[Setting]; 7]) -> usize {
    let (mut part, mut count) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// Concatenates the parts of the table at compile time.
const fn joined<const N: usize>(parts: [&[Setting]; 7]) -> [Setting; N] {
    let mut all = [TRANSPORTS; N];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            all[at] = parts[part][index];
            (index, at) = (index + 1, at + 1);
        }
        part += 1;
    }
    all
}
