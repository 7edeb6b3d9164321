//! Writes a counters file through its mapping. One process owns it; any of its threads may count.

use crate::layout::{CounterLayout, EXTENSION};
use crate::loss::Loss;
use crate::loss_totals::{self, LossKeys};
use crate::{clock, header};
use lanecast_base::sync::{AtomicU64, Ordering, fence};
use lanecast_os::process::random;
use lanecast_os::{FileError, LockByte, MapMode, Mapping, NewFile};
use lanecast_wire::stats::{
    COUNTERS_MAX, COUNTERS_OFFSET, CounterEntry, ERROR_TEXT_MAX, ERRORS_MAX, ErrorEntry, LABEL_MAX,
    LOSS_SOURCE_MAX, LOSS_TOPIC_MAX, LOSSES_MAX, LossEntry, LossTotal, Shape, TOPICS_OFFSET,
    TOPICS_TEXT_MAX, TopicList,
};
use std::io;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// A counters file cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountersError {
    /// The file cannot be created.
    #[error(transparent)]
    File(#[from] FileError),
    /// A system call failed.
    #[error("cannot {act} a counters file: {error}")]
    System {
        /// The attempted action.
        act: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// Too many entries, or a label that is too long.
    #[error(
        "a counters file has at most {COUNTERS_MAX} counters with labels of {LABEL_MAX} bytes, \
         {ERRORS_MAX} errors and {LOSSES_MAX} losses"
    )]
    Limits,
}

/// An open counters file; a counter's index is that of its label in the [`CounterLayout`].
#[derive(Debug)]
pub struct Counters {
    mapping: Mapping,
    shape: Shape,
    /// Error texts already in the file, by entry.
    texts: Mutex<Vec<String>>,
    losses: Mutex<LossLog>,
    /// Bytes of topic names in the file.
    topics: Mutex<usize>,
    path: PathBuf,
    _lock: LockByte,
}

/// Losses logged so far, and the owners of their sums.
#[derive(Debug, Default)]
struct LossLog {
    count: u64,
    keys: LossKeys,
}

impl Counters {
    /// Creates a counters file of this `layout` in `directory`, with permissions `mode`.
    ///
    /// # Errors
    /// See [`CountersError`].
    pub fn create(
        directory: &Path,
        mode: u32,
        layout: &CounterLayout<'_>,
    ) -> Result<Self, CountersError> {
        let shape = layout.shape().ok_or(CountersError::Limits)?;
        let system = |act| move |error| CountersError::System { act, error };
        let number = random().map_err(system("name"))?;
        let file = NewFile::create(directory, shape.file_bytes(), mode)?;
        header::write(file.file(), layout, shape).map_err(system("write"))?;
        let bytes = shape.file_bytes() as usize;
        let mapping =
            Mapping::new(file.file(), bytes, MapMode::ReadWrite).map_err(system("map"))?;
        let name = format!("{number:016x}.{EXTENSION}");
        let path = directory.join(&name);
        let lock = file.publish(&name)?;
        Ok(Self {
            mapping,
            shape,
            texts: Mutex::default(),
            losses: Mutex::default(),
            topics: Mutex::default(),
            path,
            _lock: lock,
        })
    }

    /// Adds `count` to counter `index`.
    ///
    /// # Panics
    /// If `index` is not below the number of counters.
    pub fn add(&self, index: usize, count: u64) {
        self.value(index).fetch_add(count, Ordering::Relaxed);
    }

    /// Sets counter `index` to `value`; for counters with a single writer.
    ///
    /// # Panics
    /// If `index` is not below the number of counters.
    pub fn set(&self, index: usize, value: u64) {
        self.value(index).store(value, Ordering::Relaxed);
    }

    fn value(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.shape.counters as usize, "counter {index} has no label");
        let entry: NonNull<CounterEntry> = self.entry(COUNTERS_OFFSET, index);
        // SAFETY: the entry lies within the mapping, which lives as long as `self`; its value
        // is an atomic, and its label never changes.
        unsafe { &entry.as_ref().value }
    }

    /// Adds a topic of the file's session; a name that does not fit is left out.
    pub fn add_topic(&self, name: &str) {
        let mut end = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let after = *end + name.len() + 1;
        if after > TOPICS_TEXT_MAX {
            return;
        }
        // New files are all zeros, so the zero behind the name is there already.
        self.write_bytes(TOPICS_OFFSET + offset_of!(TopicList, text) + *end, name);
        *end = after;
        let list: NonNull<TopicList> = self.entry(TOPICS_OFFSET, 0);
        // SAFETY: the list lies within the mapping; only atomics are touched.
        let list = unsafe { list.as_ref() };
        // PAIRS(topic-list): release here, acquire in `read_file`: the name before its length.
        list.length.store(after as u32, Ordering::Release);
    }

    /// Counts an error. Each text has one entry, with the times of its first and last occurrence;
    /// the last entry counts all errors that found the others taken.
    pub fn error(&self, text: &str) {
        let Some(last) = (self.shape.errors as usize).checked_sub(1) else { return };
        let text = truncate(text, ERROR_TEXT_MAX);
        let now = clock::unix_ns();
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
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
        let entry: NonNull<ErrorEntry> = self.entry(self.shape.errors_offset(), index);
        // SAFETY: the entry lies within the mapping; only atomics are touched.
        let entry = unsafe { entry.as_ref() };
        entry.last_unix_ns.store(now, Ordering::Relaxed);
        // PAIRS(error-count): release here, acquire in `read_file`: the text before its count.
        entry.count.fetch_add(1, Ordering::Release);
    }

    /// Writes a new entry. The caller holds the lock on `texts` and so is the only writer.
    fn write_text(&self, index: usize, text: &str, now: u64) {
        let place = self.shape.errors_offset() + index * size_of::<ErrorEntry>();
        self.write_bytes(place + offset_of!(ErrorEntry, text), text);
        let entry: NonNull<ErrorEntry> = self.entry(place, 0);
        // SAFETY: the entry lies within the mapping; only atomics are touched.
        let entry = unsafe { entry.as_ref() };
        entry.length.store(text.len() as u32, Ordering::Relaxed);
        entry.first_unix_ns.store(now, Ordering::Relaxed);
    }

    /// Logs a loss, and adds it to the sums of its session and topic; in a full log it replaces the
    /// oldest.
    pub fn loss(&self, loss: &Loss<'_>) {
        if self.shape.losses == 0 {
            return;
        }
        let mut log = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        let index = (log.count % u64::from(self.shape.losses)) as usize;
        log.count += 1;
        self.write_loss(loss, index, log.count);
        self.add_loss(loss, &mut log.keys);
    }

    /// Writes the log's entry `index`. The caller holds the lock on the log.
    fn write_loss(&self, loss: &Loss<'_>, index: usize, number: u64) {
        let place = self.shape.losses_offset() + index * size_of::<LossEntry>();
        let entry: NonNull<LossEntry> = self.entry(place, 0);
        // SAFETY: the entry lies within the mapping; only atomics are touched.
        let entry = unsafe { entry.as_ref() };
        entry.number.store(0, Ordering::Relaxed);
        // PAIRS(loss-number): the entry is marked free before it changes; readers read the number
        // before and after the entry.
        fence(Ordering::Release);
        let source = truncate(loss.source, LOSS_SOURCE_MAX);
        let topic = truncate(loss.topic, LOSS_TOPIC_MAX);
        self.write_bytes(place + offset_of!(LossEntry, source), source);
        self.write_bytes(place + offset_of!(LossEntry, topic), topic);
        loss.store(entry, source.len(), topic.len());
        // PAIRS(loss-number): release here, acquire in `read_file`: the entry before its number.
        entry.number.store(number, Ordering::Release);
    }

    /// Adds a loss to its sums. The caller holds the lock on the log.
    fn add_loss(&self, loss: &Loss<'_>, keys: &mut LossKeys) {
        let topic = truncate(loss.topic, LOSS_TOPIC_MAX);
        let Some(slot) = keys.slot(loss, topic, self.shape.totals as usize) else { return };
        let place = self.shape.totals_offset() + slot.index * size_of::<LossTotal>();
        let total: NonNull<LossTotal> = self.entry(place, 0);
        // SAFETY: the entry lies within the mapping; only atomics are touched.
        let total = unsafe { total.as_ref() };
        let Some(number) = slot.number else { return loss_totals::add(loss, total) };
        total.number.store(0, Ordering::Relaxed);
        // PAIRS(total-number): the entry is marked free before it changes; readers read the number
        // before and after the entry.
        fence(Ordering::Release);
        let source = truncate(loss.source, LOSS_SOURCE_MAX);
        self.write_bytes(place + offset_of!(LossTotal, source), source);
        self.write_bytes(place + offset_of!(LossTotal, topic), topic);
        loss_totals::clear(total, loss.session, source.len(), topic.len());
        loss_totals::add(loss, total);
        // PAIRS(total-number): release here, acquire in `read_file`: the entry before its number.
        total.number.store(number, Ordering::Release);
    }

    /// Writes `text` to bytes that readers ignore so far; the caller is their only writer.
    fn write_bytes(&self, offset: usize, text: &str) {
        assert!(offset + text.len() <= self.mapping.len(), "the text lies in the file");
        let target: NonNull<u8> = self.entry(offset, 0);
        // SAFETY: checked above; no thread of this process reads these bytes, and other processes
        // read them by system calls.
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), target.as_ptr(), text.len()) };
    }

    fn entry<T>(&self, offset: usize, index: usize) -> NonNull<T> {
        let offset = offset + index * size_of::<T>();
        assert!(offset + size_of::<T>() <= self.mapping.len(), "the entry lies in the file");
        // SAFETY: checked above.
        unsafe { self.mapping.start().add(offset) }.cast()
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // If this fails, the next process to open the domain removes the file.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The longest start of `text` within `bytes`, cut between characters.
fn truncate(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
