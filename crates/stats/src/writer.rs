//! The counting side.

use crate::EXTENSION;
use lanecast_base::sync::{AtomicU64, Ordering};
use lanecast_os::process::{Identity, own_name, random};
use lanecast_os::{FileError, LockByte, MapMode, Mapping, NewFile};
use lanecast_wire::stats::{
    COUNTERS_MAX, COUNTERS_OFFSET, CounterEntry, ERROR_TEXT_MAX, ErrorEntry, LABEL_MAX,
    STATS_MAGIC, STATS_VERSION, StatsHeader, errors_offset, stats_bytes,
};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

/// How many distinct errors are kept.
const ERRORS: u32 = 32;

/// Why there is no counters file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountersError {
    /// The file cannot be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// The system refuses.
    #[error("cannot {act} a counters file: {source}")]
    System {
        /// What was tried.
        act: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// Too many counters, or a label too long.
    #[error("a counters file has at most {COUNTERS_MAX} counters with labels of {LABEL_MAX} bytes")]
    Limits,
}

/// A process's counters, numbered as their labels were given.
#[derive(Debug)]
pub struct Counters {
    mapping: Mapping,
    counters: u32,
    /// The texts already in the file, by entry.
    texts: Mutex<Vec<String>>,
    path: PathBuf,
    _lock: LockByte,
}

impl Counters {
    /// Makes a counters file in `directory`, readable as `mode` says.
    ///
    /// # Errors
    /// See [`CountersError`].
    pub fn create(directory: &Path, mode: u32, labels: &[&str]) -> Result<Self, CountersError> {
        let fits = labels.iter().all(|label| label.len() <= LABEL_MAX);
        let counters = u32::try_from(labels.len()).map_err(|_| CountersError::Limits)?;
        if !fits || counters > COUNTERS_MAX {
            return Err(CountersError::Limits);
        }
        let system = |act| move |source| CountersError::System { act, source };
        let number = random().map_err(system("name"))?;
        let file = NewFile::create(directory, stats_bytes(counters, ERRORS), mode)?;
        write_start(&file, labels).map_err(system("write"))?;
        let bytes = stats_bytes(counters, ERRORS) as usize;
        let mapping =
            Mapping::new(file.file(), bytes, MapMode::ReadWrite).map_err(system("map"))?;
        let name = format!("{number:016x}.{EXTENSION}");
        let path = directory.join(&name);
        let lock = file.publish(&name)?;
        Ok(Self { mapping, counters, texts: Mutex::default(), path, _lock: lock })
    }

    /// Adds `count` to counter `index`.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn add(&self, index: usize, count: u64) {
        self.value(index).fetch_add(count, Ordering::Relaxed);
    }

    fn value(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.counters as usize, "counter {index} has no label");
        let entry: NonNull<CounterEntry> = self.entry(COUNTERS_OFFSET, index);
        // SAFETY: the entry lies within the mapping, which lives as long as `self`; its value
        // is an atomic, and its label never changes.
        unsafe { &entry.as_ref().value }
    }

    /// Counts an error; the same text is kept once, with the times of its first and last
    /// occurrence. Beyond the entries that the file has, the last is used for all others.
    pub fn error(&self, text: &str) {
        let text = cut(text);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let last = ERRORS as usize - 1;
        let index = match texts.iter().position(|known| known == text) {
            Some(known) => known,
            None if texts.len() <= last => {
                let text = if texts.len() == last { "other errors" } else { text };
                self.write_text(texts.len(), text, now);
                texts.push(text.to_owned());
                texts.len() - 1
            }
            None => last,
        };
        let entry: NonNull<ErrorEntry> = self.entry(errors_offset(self.counters), index);
        // SAFETY: the entry lies within the mapping; only atomics are touched.
        let entry = unsafe { entry.as_ref() };
        entry.last_unix_ns.store(now, Ordering::Relaxed);
        // PAIRS(error-count): release here, acquire in `read`: the text is there before it
        // counts.
        entry.count.fetch_add(1, Ordering::Release);
    }

    fn write_text(&self, index: usize, text: &str, now: u64) {
        let entry: NonNull<ErrorEntry> = self.entry(errors_offset(self.counters), index);
        // SAFETY: the entry lies within the mapping, and nobody reads the text of an entry that
        // does not count yet; the lock on the texts makes this the only writer.
        let target = unsafe { &raw mut (*entry.as_ptr()).text };
        // SAFETY: as above; the text was cut to fit.
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), target.cast(), text.len()) };
        // SAFETY: only atomics are touched.
        let entry = unsafe { entry.as_ref() };
        entry.length.store(text.len() as u32, Ordering::Relaxed);
        entry.first_unix_ns.store(now, Ordering::Relaxed);
    }

    fn entry<T>(&self, offset: usize, index: usize) -> NonNull<T> {
        let offset = offset + index * size_of::<T>();
        assert!(offset + size_of::<T>() <= self.mapping.len(), "the entry lies in the file");
        // SAFETY: just checked.
        unsafe { self.mapping.start().add(offset) }.cast()
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // If it cannot be removed, the next one to open the domain removes it.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn write_start(file: &NewFile, labels: &[&str]) -> io::Result<()> {
    let own = Identity::own();
    let header = StatsHeader {
        magic: STATS_MAGIC,
        version: U32::new(STATS_VERSION),
        counters: U32::new(labels.len() as u32),
        errors: U32::new(ERRORS),
        pid: U32::new(own.pid),
        namespace: U64::new(own.namespace),
        start_time: U64::new(own.start_time),
        name: own_name(),
    };
    file.file().write_all_at(header.as_bytes(), 0)?;
    for (index, label) in labels.iter().enumerate() {
        let offset = (COUNTERS_OFFSET + index * size_of::<CounterEntry>()) as u64;
        let length_offset = core::mem::offset_of!(CounterEntry, length) as u64;
        let label_offset = core::mem::offset_of!(CounterEntry, label) as u64;
        file.file().write_all_at(&(label.len() as u32).to_le_bytes(), offset + length_offset)?;
        file.file().write_all_at(label.as_bytes(), offset + label_offset)?;
    }
    Ok(())
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(ERROR_TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
