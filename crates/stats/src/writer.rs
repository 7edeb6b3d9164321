//! The counting side.

use crate::{EXTENSION, Loss, Plan, clock, start};
use lanecast_base::sync::{AtomicU64, Ordering, fence};
use lanecast_os::process::random;
use lanecast_os::{FileError, LockByte, MapMode, Mapping, NewFile};
use lanecast_wire::stats::{
    COUNTERS_MAX, COUNTERS_OFFSET, CounterEntry, ERROR_TEXT_MAX, ERRORS_MAX, ErrorEntry, LABEL_MAX,
    LOSS_SOURCE_MAX, LOSS_TOPIC_MAX, LOSSES_MAX, LossEntry, Shape, TOPICS_OFFSET, TOPICS_TEXT_MAX,
    TopicList,
};
use std::io;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Why there is no counters file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountersError {
    /// The file cannot be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// The system refuses.
    #[error("cannot {act} a counters file: {error}")]
    System {
        /// What was tried.
        act: &'static str,
        /// The system's words.
        error: io::Error,
    },
    /// Too many entries, or a label too long.
    #[error(
        "a counters file has at most {COUNTERS_MAX} counters with labels of {LABEL_MAX} bytes, \
         {ERRORS_MAX} errors and {LOSSES_MAX} losses"
    )]
    Limits,
}

/// Counters in a file, numbered as their labels were given.
#[derive(Debug)]
pub struct Counters {
    mapping: Mapping,
    shape: Shape,
    /// The error texts already in the file, by entry.
    texts: Mutex<Vec<String>>,
    /// How many losses were logged.
    losses: Mutex<u64>,
    /// How many bytes of topics' names the file has.
    topics: Mutex<usize>,
    path: PathBuf,
    _lock: LockByte,
}

impl Counters {
    /// Makes the counters file that `plan` describes in `directory`, readable as `mode` says.
    ///
    /// # Errors
    /// See [`CountersError`].
    pub fn create(directory: &Path, mode: u32, plan: &Plan<'_>) -> Result<Self, CountersError> {
        let shape = plan.shape().ok_or(CountersError::Limits)?;
        let system = |act| move |error| CountersError::System { act, error };
        let number = random().map_err(system("name"))?;
        let file = NewFile::create(directory, shape.file_bytes(), mode)?;
        start::write(file.file(), plan, shape).map_err(system("write"))?;
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
    /// If there is no such counter.
    pub fn add(&self, index: usize, count: u64) {
        self.value(index).fetch_add(count, Ordering::Relaxed);
    }

    /// Makes counter `index` show `value`; for counters that one thread at a time keeps.
    ///
    /// # Panics
    /// If there is no such counter.
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

    /// Adds a topic of the session that the file is about; left out if there is no room for it.
    pub fn add_topic(&self, name: &str) {
        let mut end = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let after = *end + name.len() + 1;
        if after > TOPICS_TEXT_MAX {
            return;
        }
        // The zero behind the name is there from the start.
        self.write_bytes(TOPICS_OFFSET + offset_of!(TopicList, text) + *end, name);
        *end = after;
        let list: NonNull<TopicList> = self.entry(TOPICS_OFFSET, 0);
        // SAFETY: the list lies within the mapping; only atomics are touched.
        let list = unsafe { list.as_ref() };
        // PAIRS(topic-list): release here, acquire in `read`: the name is there before it counts.
        list.length.store(after as u32, Ordering::Release);
    }

    /// Counts an error; the same text is kept once, with the times of its first and last
    /// occurrence. Beyond the entries that the file has, the last is used for all others.
    pub fn error(&self, text: &str) {
        let Some(last) = (self.shape.errors as usize).checked_sub(1) else { return };
        let text = cut(text, ERROR_TEXT_MAX);
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
        // PAIRS(error-count): release here, acquire in `read`: the text is there before it
        // counts.
        entry.count.fetch_add(1, Ordering::Release);
    }

    /// The lock on the texts makes this the only writer.
    fn write_text(&self, index: usize, text: &str, now: u64) {
        let place = self.shape.errors_offset() + index * size_of::<ErrorEntry>();
        self.write_bytes(place + offset_of!(ErrorEntry, text), text);
        let entry: NonNull<ErrorEntry> = self.entry(place, 0);
        // SAFETY: the entry lies within the mapping; only atomics are touched.
        let entry = unsafe { entry.as_ref() };
        entry.length.store(text.len() as u32, Ordering::Relaxed);
        entry.first_unix_ns.store(now, Ordering::Relaxed);
    }

    /// Logs a loss, over the oldest one if the log is full.
    pub fn loss(&self, loss: &Loss<'_>) {
        if self.shape.losses == 0 {
            return;
        }
        let mut number = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        let index = (*number % u64::from(self.shape.losses)) as usize;
        *number += 1;
        let place = self.shape.losses_offset() + index * size_of::<LossEntry>();
        let entry: NonNull<LossEntry> = self.entry(place, 0);
        // SAFETY: the entry lies within the mapping; only atomics are touched.
        let entry = unsafe { entry.as_ref() };
        entry.number.store(0, Ordering::Relaxed);
        // PAIRS(loss-number): the entry is void before it changes; whoever looks reads the number
        // before and after.
        fence(Ordering::Release);
        let source = cut(loss.source, LOSS_SOURCE_MAX);
        let topic = cut(loss.topic, LOSS_TOPIC_MAX);
        self.write_bytes(place + offset_of!(LossEntry, source), source);
        self.write_bytes(place + offset_of!(LossEntry, topic), topic);
        loss.store(entry, source.len(), topic.len());
        // PAIRS(loss-number): release here, acquire in `read`: the rest is there before it counts.
        entry.number.store(*number, Ordering::Release);
    }

    /// Writes `text` where it does not count yet, as its one writer.
    fn write_bytes(&self, offset: usize, text: &str) {
        assert!(offset + text.len() <= self.mapping.len(), "the text lies in the file");
        let target: NonNull<u8> = self.entry(offset, 0);
        // SAFETY: just checked; no thread of this process reads what lies there, and others read
        // it by system calls.
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), target.as_ptr(), text.len()) };
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

/// As much of `text` as fits into `bytes`, whole characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
