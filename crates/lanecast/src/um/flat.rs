//! Configuration files of Ultra Messaging: `scope option value` lines.
//!
//! Command lines of its tools, `-c smx.cfg` included, keep working. Options with an
//! equivalent setting apply, the others are listed as ignored.

use super::options::{self, OptionValue};
use crate::config::{Config, ConfigError};
use std::path::Path;

const SCOPES: [&str; 5] = ["context", "source", "receiver", "event_queue", "wildcard_receiver"];

/// Lines with content, numbered from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let stripped = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    stripped.enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, l)| !l.is_empty())
}

/// Whether the first line with content has the form of such a file.
pub(crate) fn is_flat(text: &str) -> bool {
    lines(text).next().is_some_and(|(_, line)| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|scope| SCOPES.contains(&scope))
            && words.next().is_some_and(|o| o.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
            && words.next().is_some()
    })
}

/// Applies options with an equivalent setting; lists the others as ignored.
pub(crate) fn apply(config: &mut Config, text: &str, path: &Path) -> Result<(), ConfigError> {
    let options = lines(text).map(|(number, line)| {
        let mut words = line.split_whitespace().skip(1);
        let (name, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        OptionValue { line: number, name, value }
    });
    options::apply(config, &options.collect::<Vec<_>>(), path)
}
