//! Durable topics: a write-ahead journal and checkpoints.
//!
//! Each change is appended to a journal before the topic changes. A checkpoint stores all records
//! from time to time, so that a restart replays only the journal behind it.
//! `docs/protocol/state.md` describes the bytes.

mod checkpoint;
mod clients;
mod definition_text;
mod dump;
mod entry;
mod error;
mod recovery;
mod schema;
mod store;

pub use checkpoint::Checkpoint;
pub use clients::ClientSequence;
pub use dump::{Dump, DumpedRecord};
pub use error::{MismatchKind, SchemaMismatch, SowStoreError, WriteError};
pub use schema::Schema;
pub use store::{LoggedChange, SowStore};
