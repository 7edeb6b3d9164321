//! An append-only durable log: what was acknowledged as persisted is found again.
//!
//! - [`Journal`]: the owner, with threads that write, synchronise and prepare; [`Log`]: the same
//!   on one thread;
//! - [`Cursor`]: reading from some record on, to the end and behind it; [`Reader`]: reading beside
//!   the owner, from another process;
//! - [`Survey`], [`Repair`]: looking at a journal as a whole, and cutting a damaged one;
//! - [`Hold`]: what retention must not remove;
//! - [`Storage`]: what it asks of a disk; [`Directory`]: a real one.
//!
//! The bytes on disk are described in `docs/protocol/journal.md`.
//!
//! ```
//! use lanecast_journal::{Directory, Entry, Journal, Level, Settings, Start};
//! use std::time::Duration;
//! # let directory = tempfile::tempdir()?;
//! let settings = Settings { segment_bytes: 1 << 20, ..Settings::default() };
//! let journal = Journal::open(Directory::new(directory.path()), settings)?;
//! let entry = Entry { topic: 7, body: b"first", ..Entry::default() };
//! assert_eq!(journal.persist(&[entry], Duration::from_secs(10))?, 1);
//!
//! let mut cursor = journal.cursor(Start::Oldest, Level::Persisted)?;
//! assert_eq!(cursor.read()?.map(|record| record.body), Some(&b"first"[..]));
//! assert_eq!(cursor.read()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod catalog;
mod chain;
mod checksum;
mod cursor;
mod directory;
mod encoder;
mod error;
mod group;
mod hold;
mod index;
mod intake;
mod journal;
mod log;
mod name;
mod opening;
mod reader;
mod record;
mod recovery;
mod repair;
mod reserve;
mod rest;
mod retention;
mod segment;
mod settings;
mod stock;
mod storage;
mod survey;
mod walk;
mod window;
mod writer;

pub use cursor::{Cursor, Start};
pub use directory::{Directory, Ownership, PlacedFile};
pub use error::{AppendError, Corruption, Flaw, OpenError, PersistError, ReadError, WaitError};
pub use hold::Hold;
pub use intake::{Health, Level};
pub use journal::Journal;
pub use log::Log;
pub use opening::Recovered;
pub use reader::Reader;
pub use record::{Entry, Record};
pub use repair::Repair;
pub use settings::{Retention, Settings};
pub use storage::{Fault, Mode, Outcome, Pace, Storage, StorageError, StoredFile};
pub use survey::{SegmentSurvey, Survey, Verdict};

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
