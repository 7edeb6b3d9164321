//! The one table of settings: the source of defaults, help and the reference page.

mod net;
mod net_accept;
mod shm;

use crate::config::Config;
use crate::transports::Transports;

/// Every setting there is.
pub const SETTINGS: &[Setting] = &ALL;

const ALL: [Setting; 1 + shm::SHM.len() + net_accept::ACCEPT.len() + net::NET.len()] =
    joined([&[TRANSPORTS], shm::SHM, net_accept::ACCEPT, net::NET]);

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name: `section.key` in a file, `LANECAST_SECTION__KEY` in the environment.
    pub key: &'static str,
    /// What may be written.
    pub values: &'static str,
    /// What it does.
    pub about: &'static str,
    pub(crate) set: fn(&mut Config, &str) -> Result<(), String>,
    pub(crate) get: fn(&Config) -> String,
}

impl Setting {
    /// The setting called `key`.
    pub fn find(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// Its value in `config`, written as a file would.
    pub fn value(&self, config: &Config) -> String {
        (self.get)(config)
    }

    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("LANECAST_{}", self.key.to_uppercase().replace('.', "__"))
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

const TRANSPORTS: Setting = Setting {
    key: "transports",
    values: "shm, rm, ru, tcp, or shm+rm, shm+ru, shm+tcp",
    about: "How messages travel: shm to threads and processes of this host, by shared memory; rm, \
            ru and tcp to other hosts, by reliable multicast, reliable unicast or TCP. A publisher \
            with shm+ru serves both kinds of subscribers at once, and each gets a message once. \
            Subscribers take whatever way a publisher on the network has chosen.",
    set: |config, text| {
        config.transports = parse::<Transports>(text)?;
        Ok(())
    },
    get: |config| config.transports.to_string(),
};

/// The parts of a table, one behind the other.
const fn joined<const N: usize>(parts: [&[Setting]; 4]) -> [Setting; N] {
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
