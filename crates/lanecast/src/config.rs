//! The effective configuration, as plain data, and its errors.

use crate::persistence_settings::PersistenceSettings;
use crate::transports::Transports;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// All settings with their effective values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The transports in use.
    pub transports: Transports,
    /// Settings of the shared-memory transport.
    pub shm: lanecast_shm::DomainSettings,
    /// Settings of the transports between hosts.
    pub net: lanecast_net::NetSettings,
    /// Settings of publishers that serve filters, and of subscribers with one.
    pub filter: lanecast_content::ContentSettings,
    /// Settings of groups.
    pub group: lanecast_group::GroupSettings,
    /// File with the keys of groups, if their frames are encrypted.
    pub group_key_file: Option<PathBuf>,
    /// Settings of publishers whose messages are kept, and of durable subscribers.
    pub persistence: PersistenceSettings,
    /// Address of the content server that the content commands of `lanecast` speak to, unless their
    /// command line names another.
    pub server: Option<String>,
    /// Application of Ultra Messaging files in XML; that of the throughput tools if none is named.
    pub um_application: Option<String>,
    /// Options of Ultra Messaging files without a counterpart, each with file and line.
    pub ignored: Vec<String>,
    pub(crate) origins: Origins,
}

/// Places where settings were set, by their names: file and line, variable, option or program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(pub(crate) BTreeMap<&'static str, String>);

/// Configurations with the same values are equal, wherever these came from.
impl PartialEq for Origins {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origins {}

/// Errors of a configuration, each with its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Invalid TOML.
    #[error("{path}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The parser's message, with line and column.
        message: String,
    },
    /// An XML file of Ultra Messaging that is invalid or has no equivalent here.
    #[error("{place}: {message}")]
    Xml {
        /// File and line.
        place: String,
        /// The problem, with the option.
        message: String,
    },
    /// A setting that does not exist.
    #[error("{place}: there is no setting '{key}'{hint}")]
    Unknown {
        /// File and line, or the variable.
        place: String,
        /// The unknown name.
        key: String,
        /// The nearest name, or how to list all.
        hint: String,
    },
    /// A value that is no text.
    #[error("{place} is not UTF-8")]
    NotUnicode {
        /// The variable.
        place: String,
    },
    /// An invalid value.
    #[error("{place}: {key}: {message} (write {values})")]
    Value {
        /// File and line, or the variable.
        place: String,
        /// The setting.
        key: &'static str,
        /// The problem.
        message: String,
        /// The accepted values.
        values: &'static str,
    },
    /// A value that does not fit the other settings.
    #[error("{place}: {key}: {fix}")]
    Unfit {
        /// Files and lines, or variables, of the settings concerned.
        place: String,
        /// The setting.
        key: &'static str,
        /// A valid value.
        fix: &'static str,
    },
}
