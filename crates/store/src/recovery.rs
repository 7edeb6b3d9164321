//! The state of a store that starts, as its journal and checkpoints say, and the identity of its
//! data.

use crate::checkpoint::{Checkpoints, Recovered, StoreIdentity};
use crate::error::DirectoryError;
use crate::incarnation::Incarnation;
use lanecast_journal::{Directory, Durability, Journal};
use lanecast_persistence::StoreSettings;
use std::path::Path;

/// Reads the state of the store in `directory`, whose journal is open. Draws another identity if a
/// checkpoint tells of durable records that the journal lacks, as on a disk that lost its last
/// writes, or in a directory that was copied while its store was running.
pub(crate) fn recover(
    directory: &Path,
    storage: &Directory,
    journal: &Journal<Directory>,
    incarnation: Incarnation,
    settings: StoreSettings,
) -> Result<(StoreIdentity, Recovered<Directory>), DirectoryError> {
    let read = |identity: &StoreIdentity| {
        Checkpoints::recover(storage, identity, |start| {
            journal.cursor(start, Durability::Persisted)
        })
    };
    let mut identity = StoreIdentity {
        settings,
        incarnation: incarnation.number,
        has_older_checkpoints: incarnation.has_older_records(),
        segment_bytes: journal.segment_bytes(),
    };
    let recovered = read(&identity)?;
    if !recovered.recovery.has_lost_records {
        return Ok((identity, recovered));
    }
    let renewed = incarnation.renew(directory)?;
    identity.incarnation = renewed.number;
    identity.has_older_checkpoints = renewed.has_older_records();
    let mut recovered = read(&identity)?;
    recovered.recovery.has_lost_records = true;
    Ok((identity, recovered))
}
