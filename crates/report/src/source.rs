//! Sources of lines.

use std::io::{self, Read};
use std::path::Path;

/// A file of measurements, in memory.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name in the report.
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) bytes: Vec<u8>,
}

/// Content of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Measurement lines.
    Lines,
    /// HdrHistogram's interval log.
    IntervalLog,
}

impl Source {
    /// Measurement lines, called `name` in the report.
    pub fn lines(name: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), format: Format::Lines, bytes: text.into() }
    }

    /// HdrHistogram's interval log (version 2), its times in nanoseconds.
    pub fn interval_log(name: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), format: Format::IntervalLog, bytes: text.into() }
    }

    /// Reads the file `path`: an interval log if its name ends in `.hlog`, else lines. `-` is
    /// standard input.
    ///
    /// # Errors
    ///
    /// If it cannot be read; the caller knows the name.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            return Ok(Self::lines("standard input", bytes));
        }
        let bytes = std::fs::read(path)?;
        let name = path.display().to_string();
        let is_log = path.extension().is_some_and(|extension| extension == "hlog");
        Ok(if is_log { Self::interval_log(name, bytes) } else { Self::lines(name, bytes) })
    }
}
