//! An append-only durable log (write-ahead log): every record that was acknowledged as persisted is
//! found again after a crash.
//!
//! Path of an append: [`Journal::append`] encodes entries (`encoder`) into the pending batch of the
//! `append_queue`; the committer thread, or a waiting caller, takes the batch and the `writer`
//! writes and synchronizes it; a `preallocator` thread keeps empty segments ready and applies
//! `retention`. Opening (`open`) finds the end of the log (`recovery`, `scanner`, `tail`). A
//! [`Cursor`] reads records through the same `scanner`.
//!
//! - [`Journal`]: the writer, with its own committer and preallocator threads; [`Log`]: the same
//!   without threads;
//! - [`Cursor`]: reads records in order and follows the end; [`Reader`]: opens a journal for
//!   reading only, also beside a writer in another process;
//! - [`Replay`]: a cursor with an end, a pace and a pause;
//! - [`JournalReport`]: inspects or verifies a whole journal; [`Repair`]: truncates a damaged one;
//! - [`RetentionPin`]: keeps retention from removing records;
//! - [`Storage`]: the file operations a journal needs; [`Directory`]: a directory of the file
//!   system.
//!
//! `docs/protocol/journal.md` describes the bytes on disk.
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
mod clock;
mod config;
mod cursor;
mod cut_mark;
mod direct;
mod directory;
mod encoder;
mod error;
mod file_name;
mod index;
mod index_file;
mod journal;
mod lock;
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
mod replay;
mod retention;
mod scanner;
mod segment;
mod sequence_check;
mod start;
mod storage;
mod tail;
mod verify;
mod writer;

pub use append_queue::{Durability, Health};
pub use config::{JournalConfig, Retention};
pub use cursor::Cursor;
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
pub use replay::{Replay, ReplayEnd, ReplayPace, ReplayStep};
pub use start::Start;
pub use storage::{
    Fill, OpenMode, Storage, StorageError, StorageErrorKind, StorageResult, StoredFile, Throttle,
};
pub use verify::{JournalReport, SegmentReport, Verdict};
