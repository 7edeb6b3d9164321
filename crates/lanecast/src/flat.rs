//! Configuration files of Ultra Messaging: `scope option value` lines.
//!
//! Users of its tools keep their command lines, `-c smx.cfg` included. Options with a
//! counterpart are taken over, the others are listed as ignored.

use crate::config::{Config, ConfigError};
use crate::counterparts;
use std::path::Path;

const SCOPES: [&str; 5] = ["context", "source", "receiver", "event_queue", "wildcard_receiver"];

/// The lines that say something, numbered from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let stripped = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    stripped.enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, l)| !l.is_empty())
}

/// Whether the first line that says something has the form of such a file.
pub(crate) fn is_flat(text: &str) -> bool {
    lines(text).next().is_some_and(|(_, line)| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|scope| SCOPES.contains(&scope))
            && words.next().is_some_and(|o| o.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
            && words.next().is_some()
    })
}

/// Applies the options that have a counterpart; lists the others as ignored.
pub(crate) fn apply(config: &mut Config, text: &str, path: &Path) -> Result<(), ConfigError> {
    for (number, line) in lines(text) {
        let place = format!("{}:{number}", path.display());
        let mut words = line.split_whitespace().skip(1);
        let (option, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        counterparts::take_over(config, option, value, &place)?;
    }
    Ok(())
}
