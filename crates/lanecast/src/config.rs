//! Configuration: defaults, then files, then the environment, then what the program says.

use crate::flat;
use crate::table::{SETTINGS, Setting};
use crate::transports::Transports;
use crate::xml;
use std::io;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// All settings, each with the value in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// How messages travel.
    pub transports: Transports,
    /// Settings of the shared-memory transport.
    pub shm: lanecast_shm::Settings,
    /// Settings of the transports between hosts.
    pub net: lanecast_net::Settings,
    /// Options of other systems' files that mean nothing here, each with its file and line.
    pub ignored: Vec<String>,
}

/// Why a configuration cannot be used. Each says where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// A file that is no TOML.
    #[error("{path}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        message: String,
    },
    /// A file of Ultra Messaging in XML that cannot be read, or not be taken over.
    #[error("{place}: {message}")]
    Xml {
        /// File and line.
        place: String,
        /// What is wrong, and the option that it is about.
        message: String,
    },
    /// A setting that does not exist.
    #[error("{place}: there is no setting '{key}'{hint}")]
    Unknown {
        /// File and line, or the variable.
        place: String,
        /// The name that was written.
        key: String,
        /// The nearest name, or where to find all.
        hint: String,
    },
    /// A value that a setting cannot have.
    #[error("{place}: {key}: {message} (write {values})")]
    Value {
        /// File and line, or the variable.
        place: String,
        /// The setting.
        key: &'static str,
        /// What is wrong.
        message: String,
        /// What may be written.
        values: &'static str,
    },
}

/// Settings that are paths: in a file they are relative to the directory of that file.
const PATHS: [&str; 1] = ["shm.directory"];
/// The environment variable that names a configuration file.
pub(crate) const FILE_VARIABLE: &str = "LANECAST_CONFIG";
const PREFIX: &str = "LANECAST_";
/// Variables of that beginning that are no settings: the content commands' in a shell.
const OTHERS: [&str; 2] = ["LANECAST_SERVER", "LANECAST_PASSWORD"];

impl Config {
    /// Sets `key` to `value`; `place` says where that was written.
    pub(crate) fn set(&mut self, key: &str, value: &str, place: &str) -> Result<(), ConfigError> {
        let setting = Setting::find(key).ok_or_else(|| unknown(key, place))?;
        (setting.set)(self, value).map_err(|message| ConfigError::Value {
            place: place.to_owned(),
            key: setting.key,
            message,
            values: setting.values,
        })
    }

    /// Applies a file: TOML, or one of Ultra Messaging, as XML or as flat `scope option value`
    /// lines, of which the options that have a counterpart are taken over.
    pub(crate) fn apply_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
        if flat::is_flat(&text) {
            return flat::apply(self, &text, path);
        }
        if xml::is_xml(&text) {
            return xml::apply(self, &text, path);
        }
        let table = DeTable::parse(&text).map_err(|error| ConfigError::Syntax {
            path: path.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        self.apply_table(table.get_ref(), "", path, &text)
    }

    fn apply_table(
        &mut self,
        table: &DeTable<'_>,
        prefix: &str,
        path: &Path,
        text: &str,
    ) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            let place = place(path, text, name.span().start);
            match value.get_ref() {
                DeValue::Table(inner) if Setting::find(&key).is_none() => {
                    if !SETTINGS.iter().any(|s| s.key.starts_with(&format!("{key}."))) {
                        return Err(unknown(&key, &place));
                    }
                    self.apply_table(inner, &format!("{key}."), path, text)?;
                }
                DeValue::String(value) if PATHS.contains(&&*key) && !value.is_empty() => {
                    let folder = path.parent().unwrap_or(Path::new(""));
                    self.set(&key, &folder.join(&**value).to_string_lossy(), &place)?;
                }
                DeValue::String(value) => self.set(&key, value, &place)?,
                DeValue::Integer(number) => self.set(&key, &number.to_string(), &place)?,
                DeValue::Boolean(is_so) => self.set(&key, &is_so.to_string(), &place)?,
                _ => self.set(&key, "", &place)?,
            }
        }
        Ok(())
    }

    /// Applies variables `LANECAST_SECTION__KEY`.
    pub(crate) fn apply_variables(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix(PREFIX) else { continue };
            if name == FILE_VARIABLE || OTHERS.contains(&&*name) {
                continue;
            }
            let key = rest.to_lowercase().replace("__", ".");
            self.set(&key, &value, &name)?;
        }
        Ok(())
    }

    /// The whole configuration as a commented file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for setting in SETTINGS {
            let (name, key) = setting.key.split_once('.').unwrap_or(("", setting.key));
            if name != section {
                section = name;
                text += &format!("\n[{section}]\n");
            }
            let value = setting.value(self);
            let is_bare = value.parse::<u64>().is_ok() || value.parse::<bool>().is_ok();
            let quoted = if is_bare { value } else { format!("{value:?}") };
            text += &format!("\n{}{key} = {quoted}\n", comment(setting));
        }
        text.split_off(1)
    }
}

/// The setting's description as comment lines of at most 80 characters.
fn comment(setting: &Setting) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    let end = format!("({})", setting.values);
    for word in setting.about.split_whitespace().chain(end.split_whitespace()) {
        if line.len() + 1 + word.len() > 80 {
            lines += &line;
            lines.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line += word;
    }
    lines + &line + "\n"
}

/// `file:line` of the byte at `offset`.
fn place(path: &Path, text: &str, offset: usize) -> String {
    let line = text[..offset.min(text.len())].matches('\n').count() + 1;
    format!("{}:{line}", path.display())
}

fn unknown(key: &str, place: &str) -> ConfigError {
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

/// How many letters must change (Levenshtein).
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

#[cfg(test)]
mod tests;
