//! Topics that outlive their process.
//!
//! Each change is appended to a journal before the topic changes. Now and then a checkpoint writes
//! down all records, so that a restart does not have to go through everything that ever happened.
//! `docs/protocol/state.md` has the bytes.

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
