//! One library of the comparison, and one of its ways to move messages.

use anyhow::Result;

use crate::load::{Load, Row};
use crate::pair::Pair;
use crate::stream::Stream;

/// A library that is ready to be measured.
pub enum Built {
    /// For messages that flow.
    Stream(Stream),
    /// For round trips.
    Pair(Pair),
}

/// One side of the comparison.
pub struct Case {
    /// Word of the command line that asks for it.
    pub peer: &'static str,
    /// Name in the report: a peer can have several.
    pub side: &'static str,
    /// The package that it comes from, if it is one.
    pub package: Option<&'static str>,
    /// Rows that it takes part in.
    pub rows: &'static [Row],
    /// Sets it up; also tells in a few words, without a comma, in which way it is used.
    pub build: fn(&Load) -> Result<(Built, &'static str)>,
}

/// The lock file, which has the versions that were built.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

impl Case {
    /// Version of the package; without one, the library came with the compiler or the kernel.
    pub fn version(&self) -> &'static str {
        self.package.and_then(locked_version).unwrap_or("-")
    }
}

fn locked_version(package: &str) -> Option<&'static str> {
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK_FILE.lines().skip_while(|line| *line != name);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    version.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::locked_version;

    #[test]
    fn an_unknown_package_has_no_version() {
        assert_eq!(locked_version("no such package"), None);
    }
}
