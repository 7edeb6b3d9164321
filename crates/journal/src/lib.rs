//! An append-only durable log: what was acknowledged as persisted is found again.
//!
//! - [`Journal`]: the owner, with threads that write, synchronise and prepare; [`Log`]: the same
//!   on one thread;
//! - [`Cursor`]: reading from some record on, to the end and behind it; [`Reader`]: reading beside
//!   the owner, from another process;
//! - [`JournalReport`], [`Repair`]: looking at a journal as a whole, and cutting a damaged one;
//! - [`RetentionPin`]: what retention must not remove;
//! - [`Storage`]: what it asks of a disk; [`Directory`]: a real one.
//!
//! The bytes on disk are described in `docs/protocol/journal.md`.
//!
//! ```
//! use lanecast_journal::{Directory, Durability, Entry, Journal, JournalConfig, Start};
//! use std::time::Duration;
//! # let directory = tempfile::tempdir()?;
//! let config = JournalConfig { segment_bytes: 1 << 20, ..JournalConfig::default() };
//! let journal = Journal::open(Directory::new(directory.path()), config)?;
//! let entry = Entry { topic: 7, body: b"first", ..Entry::default() };
//! assert_eq!(journal.persist(&[entry], Duration::from_secs(10))?, 1);
//!
//! let mut cursor = journal.cursor(Start::Oldest, Durability::Persisted)?;
//! assert_eq!(cursor.read()?.map(|record| record.body), Some(&b"first"[..]));
//! assert_eq!(cursor.read()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod append_queue;
mod batch;
mod catalog;
mod checksum;
mod config;
mod cursor;
mod directory;
mod encoder;
mod error;
mod file_name;
mod index;
mod journal;
mod log;
mod open;
mod pin;
mod preallocator;
mod read_buffer;
mod reader;
mod record;
mod recovery;
mod recycler;
mod repair;
mod retention;
mod scanner;
mod segment;
mod sequence_check;
mod storage;
mod tail;
mod verify;
mod writer;

pub use append_queue::{Durability, Health};
pub use config::{JournalConfig, Retention};
pub use cursor::{Cursor, Start};
pub use directory::{Directory, DirectoryFile, DirectoryLock};
pub use error::{
    AppendError, Corruption, CorruptionKind, OpenError, PersistError, ReadError, WaitError,
};
pub use journal::Journal;
pub use log::Log;
pub use open::Recovered;
pub use pin::RetentionPin;
pub use reader::Reader;
pub use record::{Entry, Record};
pub use repair::Repair;
pub use storage::{
    OpenMode, Storage, StorageError, StorageErrorKind, StorageResult, StoredFile, Throttle,
};
pub use verify::{JournalReport, SegmentReport, Verdict};

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Locks; what a thread that panicked has left is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Now, in nanoseconds since 1970.
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The end of `timeout` from now on; in a generation if it is longer than that.
fn deadline(timeout: Duration) -> Instant {
    const GENERATION: Duration = Duration::from_secs(30 * 365 * 86_400);
    Instant::now() + timeout.min(GENERATION)
}
