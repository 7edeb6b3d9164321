//! The looking side: other processes' counters, copied out and checked.

use crate::EXTENSION;
use lanecast_os::process::Identity;
use lanecast_os::{is_locked, open};
use lanecast_wire::stats::{
    COUNTERS_OFFSET, CounterEntry, ERROR_TEXT_MAX, ErrorEntry, LABEL_MAX, StatsHeader,
    errors_offset, stats_bytes,
};
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What a process tells about itself.
#[derive(Clone, Debug)]
pub struct StatsReport {
    /// The file that says so.
    pub path: PathBuf,
    /// The process.
    pub process: Identity,
    /// Its name.
    pub name: String,
    /// Whether it still runs.
    pub is_alive: bool,
    /// Its counters, in its own order.
    pub counters: Vec<CounterReport>,
    /// Its distinct errors.
    pub errors: Vec<ErrorReport>,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterReport {
    /// What it counts.
    pub label: String,
    /// How much.
    pub value: u64,
}

/// A distinct error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReport {
    /// What happened.
    pub text: String,
    /// How often.
    pub count: u64,
    /// First, in nanoseconds since 1970.
    pub first_unix_ns: u64,
    /// Last, in nanoseconds since 1970.
    pub last_unix_ns: u64,
}

/// The counters files in `directory`.
///
/// # Errors
/// If the directory cannot be read.
pub fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|e| e == EXTENSION)).collect())
}

/// Reads one counters file, which anybody may have written.
///
/// # Errors
/// If it cannot be read, or is no counters file of this version.
pub fn read(path: &Path) -> io::Result<StatsReport> {
    let file = open(path, false)?;
    let mut start = [0; size_of::<StatsHeader>()];
    file.read_exact_at(&mut start, 0)?;
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "no counters file of this version");
    let header = StatsHeader::read(&start).ok_or_else(foreign)?;
    let (counters, errors) = (header.counters.get(), header.errors.get());
    if file.metadata()?.len() != stats_bytes(counters, errors) {
        return Err(foreign());
    }
    let process = Identity {
        pid: header.pid.get(),
        namespace: header.namespace.get(),
        start_time: header.start_time.get(),
    };
    let is_alive = is_locked(&file, 0)? && !process.is_surely_gone();
    let name = String::from_utf8_lossy(&header.name).trim_end_matches('\0').to_owned();
    let counters_read = (0..counters).map(|index| read_counter(&file, index)).collect();
    let errors_read = (0..errors).map(|index| read_error(&file, counters, index)).collect();
    let counters: Result<Vec<_>, _> = counters_read;
    let errors: Result<Vec<_>, _> = errors_read;
    let errors = errors?.into_iter().flatten().collect();
    Ok(StatsReport { path: path.to_owned(), process, name, is_alive, counters: counters?, errors })
}

fn read_counter(file: &File, index: u32) -> io::Result<CounterReport> {
    let mut bytes = [0; size_of::<CounterEntry>()];
    let offset = COUNTERS_OFFSET + index as usize * bytes.len();
    file.read_exact_at(&mut bytes, offset as u64)?;
    let length = u32_at(&bytes, offset_of!(CounterEntry, length));
    let label = offset_of!(CounterEntry, label);
    Ok(CounterReport {
        label: text(&bytes[label..label + LABEL_MAX], length),
        value: u64_at(&bytes, offset_of!(CounterEntry, value)),
    })
}

fn read_error(file: &File, counters: u32, index: u32) -> io::Result<Option<ErrorReport>> {
    let mut bytes = [0; size_of::<ErrorEntry>()];
    let offset = errors_offset(counters) + index as usize * bytes.len();
    // The count first, the rest in a second read: an entry that counts is complete. This is
    // the acquiring end of PAIRS(error-count): two system calls are ordered.
    let mut count = [0; 8];
    let count_offset = offset + offset_of!(ErrorEntry, count);
    file.read_exact_at(&mut count, count_offset as u64)?;
    let count = u64::from_le_bytes(count);
    if count == 0 {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, offset as u64)?;
    let length = u32_at(&bytes, offset_of!(ErrorEntry, length));
    let start = offset_of!(ErrorEntry, text);
    Ok(Some(ErrorReport {
        text: text(&bytes[start..start + ERROR_TEXT_MAX], length),
        count,
        first_unix_ns: u64_at(&bytes, offset_of!(ErrorEntry, first_unix_ns)),
        last_unix_ns: u64_at(&bytes, offset_of!(ErrorEntry, last_unix_ns)),
    }))
}

fn text(bytes: &[u8], length: u32) -> String {
    String::from_utf8_lossy(&bytes[..(length as usize).min(bytes.len())]).into_owned()
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes[offset..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes[offset..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counters;

    #[test]
    fn counters_and_distinct_errors_are_read_from_outside() {
        let directory = std::env::temp_dir().join(format!("lanecast-stats-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let counters = Counters::create(&directory, 0o600, &["one", "two"]).unwrap();
        counters.add(1, 41);
        counters.add(1, 1);
        counters.error("disk on fire");
        counters.error("disk on fire");
        (0..40).for_each(|number| counters.error(&format!("error {number}")));
        let path = files(&directory).unwrap().remove(0);
        let report = read(&path).unwrap();
        assert!(report.is_alive);
        assert_eq!(report.process, Identity::own());
        assert_eq!(report.counters[1], CounterReport { label: "two".into(), value: 42 });
        assert_eq!((report.errors[0].text.as_str(), report.errors[0].count), ("disk on fire", 2));
        assert_eq!(report.errors.len(), 32);
        assert_eq!(
            (report.errors[31].text.as_str(), report.errors[31].count),
            ("other errors", 10)
        );
        std::fs::write(directory.join("x.stats"), b"nonsense").unwrap();
        assert!(read(&directory.join("x.stats")).is_err());
        drop(counters);
        assert!(!path.exists());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
