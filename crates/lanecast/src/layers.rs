//! Layers of a configuration: defaults, then files, then environment variables, then the program.

use crate::config::{Config, ConfigError};
use crate::settings::{self, SETTINGS, Setting};
#[cfg(feature = "um")]
use crate::um::{flat, xml};
use std::ffi::OsString;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Whether a setting is a path, which a file gives relative to its own directory.
fn is_path(key: &str) -> bool {
    settings::find(key).is_some_and(|setting| setting.values.starts_with("a path"))
}
/// The environment variable that names a configuration file.
pub(crate) const FILE_VARIABLE: &str = "LANECAST_CONFIG";
const PREFIX: &str = "LANECAST_";
/// The variable with this prefix for the content commands that is no setting: a password does not
/// belong into a configuration file.
const PASSWORD_VARIABLE: &str = "LANECAST_PASSWORD";
/// The variable that shells set to nothing where they cannot unset it.
const SERVER_VARIABLE: &str = "LANECAST_SERVER";

/// Part of the error of a file that is not TOML, in programs that read no others.
const HINT: &str = if cfg!(feature = "um") {
    ""
} else {
    "\n(files of Ultra Messaging are read with the feature `um` of the crate lanecast only)"
};

/// Applies a file: TOML or, with the feature `um`, a file of Ultra Messaging as XML or as flat
/// `scope option value` lines, whose options with a counterpart are translated.
pub(crate) fn apply_file(config: &mut Config, path: &Path) -> Result<(), ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
    apply_text(config, &text, path, path.parent().unwrap_or(Path::new("")))
}

/// Applies the text of a file from `path`; its paths are relative to `folder`.
pub(crate) fn apply_text(
    config: &mut Config,
    text: &str,
    path: &Path,
    folder: &Path,
) -> Result<(), ConfigError> {
    #[cfg(feature = "um")]
    if flat::is_flat(text) {
        return flat::apply(config, text, path);
    }
    #[cfg(feature = "um")]
    if xml::is_xml(text) {
        return xml::apply(config, text, path);
    }
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        message: format!("{}{HINT}", error.to_string().trim_end()),
    })?;
    apply_table(config, table.get_ref(), "", &Origin { path, folder, text })
}

/// Text of a configuration, with its name and the folder of its paths.
struct Origin<'a> {
    path: &'a Path,
    folder: &'a Path,
    text: &'a str,
}

fn apply_table(
    config: &mut Config,
    table: &DeTable<'_>,
    prefix: &str,
    origin: &Origin<'_>,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        let place = place(origin.path, origin.text, name.span().start);
        match value.get_ref() {
            DeValue::Table(inner) if settings::find(&key).is_none() => {
                if !SETTINGS.iter().any(|s| s.key.starts_with(&format!("{key}."))) {
                    return Err(settings::unknown(&key, &place));
                }
                apply_table(config, inner, &format!("{key}."), origin)?;
            }
            DeValue::String(value) if is_path(&key) && !value.is_empty() && value != "none" => {
                let path = origin.folder.join(&**value);
                settings::set(config, &key, &path.to_string_lossy(), &place)?;
            }
            DeValue::String(value) => settings::set(config, &key, value, &place)?,
            DeValue::Integer(number) => settings::set(config, &key, &number.to_string(), &place)?,
            DeValue::Boolean(is_so) => settings::set(config, &key, &is_so.to_string(), &place)?,
            DeValue::Array(items)
                if settings::find(&key).is_some_and(|it| it.values.contains("with commas")) =>
            {
                let items: Vec<_> = items.iter().map(|item| text_of(item.get_ref())).collect();
                settings::set(config, &key, &items.join(","), &place)?;
            }
            other => settings::set(config, &key, &text_of(other), &place)?,
        }
    }
    Ok(())
}

/// A value as the file has it, so that the error of one that does not fit shows it.
fn text_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(is_so) => is_so.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// Applies variables `LANECAST_SECTION__KEY`.
pub(crate) fn apply_variables(
    config: &mut Config,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<(), ConfigError> {
    for (name, value) in variables {
        let name = name.to_string_lossy();
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if name == FILE_VARIABLE || name == PASSWORD_VARIABLE {
            continue;
        }
        let key = rest.to_lowercase().replace("__", ".");
        let Some(value) = value.to_str() else {
            return Err(ConfigError::NotUnicode { place: name.into_owned() });
        };
        if name == SERVER_VARIABLE && value.is_empty() {
            continue;
        }
        settings::set(config, &key, value, &name)?;
    }
    Ok(())
}

/// The whole configuration as a commented TOML file, such as `lanecast config` prints.
pub fn to_toml(config: &Config) -> String {
    let mut text = String::new();
    let mut section = "";
    for setting in SETTINGS {
        let (name, key) = setting.key.split_once('.').unwrap_or(("", setting.key));
        if name != section {
            section = name;
            text += &format!("\n[{section}]\n");
        }
        let value = setting.value(config);
        let is_bare = value.parse::<u64>().is_ok() || value.parse::<bool>().is_ok();
        let quoted = if is_bare { value } else { format!("{value:?}") };
        text += &format!("\n{}{key} = {quoted}\n", comment(setting));
    }
    text.split_off(1)
}

/// The description of a setting as comment lines of at most 80 characters.
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

#[cfg(test)]
mod tests;
