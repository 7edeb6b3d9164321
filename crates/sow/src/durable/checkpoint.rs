//! Checkpoints: a copy of all records, written while the topics keep changing.

use super::clients::Clients;
use super::entry;
use crate::topic::Topic;
use lanecast_journal::{
    AppendError, Storage, StorageError, StorageErrorKind, StorageResult, StoredFile,
};
use lanecast_wire::checksum::{crc32c, crc32c_append};
use lanecast_wire::state::{BlockHeader, CheckpointHeader};
use std::collections::BTreeMap;
use zerocopy::IntoBytes;

/// Bytes of entries per block.
const BLOCK: usize = 1 << 20;

/// File name suffix of finished checkpoints.
const ENDING: &str = ".checkpoint";

/// File name suffix of unfinished checkpoints.
const UNFINISHED: &str = ".checkpoint.part";

/// File name of the checkpoint that covers the journal up to `covered`.
pub(crate) fn name_of(covered: u64) -> String {
    format!("{covered:016x}{ENDING}")
}

/// Sequence covered by the checkpoint with this name; `None` if it is not a finished one.
pub(crate) fn covered_by(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(ENDING)?;
    u64::from_str_radix(digits, 16).ok().filter(|covered| name == name_of(*covered))
}

/// Whether this is the name of a checkpoint, finished or not.
pub(crate) fn is_checkpoint(name: &str) -> bool {
    let finished = name.strip_suffix(".part").unwrap_or(name);
    covered_by(finished).is_some()
}

/// Checksum of a block.
pub(crate) fn checksum(number: u64, entries: &[u8]) -> u32 {
    crc32c_append(crc32c(&number.to_le_bytes()), &[entries])
}

/// A checkpoint in progress.
///
/// [`advance`](Self::advance) writes some records at a time, between changes. [`seal`](Self::seal)
/// makes the file durable, which may take long and can run on any thread.
/// [`SowStore::install_checkpoint`](super::SowStore::install_checkpoint) puts it in force. A
/// dropped checkpoint leaves an unfinished file, which the next one removes.
#[derive(Debug)]
pub struct Checkpoint<S: Storage> {
    file: S::File,
    covered: u64,
    /// Offset and number of the next block.
    offset: u64,
    block: u64,
    /// Entries of the next block.
    entries: Vec<u8>,
    topic: usize,
    row_id: u32,
    is_sealed: bool,
}

impl<S: Storage> Checkpoint<S> {
    pub(crate) fn new(
        storage: &S,
        covered: u64,
        clients: &Clients,
        views: &BTreeMap<Box<str>, String>,
    ) -> StorageResult<Self> {
        let file = storage.create(&unfinished(covered))?;
        let mut header = CheckpointHeader::new(covered);
        header.crc = crc32c(header.checked()).into();
        file.write_all_at(header.as_bytes(), 0)?;
        let mut checkpoint = Self {
            file,
            covered,
            offset: size_of::<CheckpointHeader>() as u64,
            block: 0,
            entries: Vec::new(),
            topic: 0,
            row_id: 0,
            is_sealed: false,
        };
        for (name, text) in views {
            let entry = entry::view(name, text).map_err(|error| refused(covered, error))?;
            checkpoint.entries.extend_from_slice(&entry);
        }
        for (name, client) in clients {
            entry::client(name, client.sequence, client.unix_ns, &mut checkpoint.entries)
                .map_err(|error| refused(covered, error))?;
            if checkpoint.entries.len() >= BLOCK {
                checkpoint.write_block()?;
            }
        }
        Ok(checkpoint)
    }

    /// Writes about `limit` records of `topics`, which must be all topics of the store, in their
    /// order. Returns whether there are more.
    ///
    /// # Errors
    /// If the disk refuses. Drop the checkpoint then and begin another.
    pub fn advance(&mut self, topics: &[&Topic], limit: usize) -> StorageResult<bool> {
        let covered = self.covered;
        let refused = |error| refused(covered, error);
        for _ in 0..limit {
            let Some(topic) = topics.get(self.topic) else { break };
            if self.row_id == 0 {
                entry::begins(topic, &mut self.entries).map_err(refused)?;
            }
            if let Some(record) = topic.at(self.row_id) {
                entry::put(topic.number(), record, &mut self.entries).map_err(refused)?;
            }
            self.row_id += 1;
            if self.row_id >= topic.end() {
                (self.topic, self.row_id) = (self.topic + 1, 0);
            }
            if self.entries.len() >= BLOCK {
                self.write_block()?;
            }
        }
        Ok(self.topic < topics.len())
    }

    /// Writes the end mark and synchronizes the file.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn seal(&mut self) -> StorageResult<()> {
        if !self.entries.is_empty() {
            self.write_block()?;
        }
        self.write_block()?;
        self.file.sync_data()?;
        self.is_sealed = true;
        Ok(())
    }

    /// Renames the file, which puts it in force, and removes the previous checkpoint. It may take
    /// long and can run on any thread. The journal must be durable up to everything that the
    /// checkpoint may contain. Returns the covered sequence, for
    /// [`SowStore::checkpoint_installed`](super::SowStore::checkpoint_installed).
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn install(mut self, storage: &S) -> StorageResult<u64> {
        if !self.is_sealed {
            self.seal()?;
        }
        storage.rename(&unfinished(self.covered), &name_of(self.covered))?;
        storage.sync_directory()?;
        remove_others(storage, self.covered)?;
        Ok(self.covered)
    }

    fn write_block(&mut self) -> StorageResult<()> {
        let length = self.entries.len() as u32;
        let crc = checksum(self.block, &self.entries);
        let header = BlockHeader { length: length.into(), crc: crc.into() };
        self.file.write_all_at(header.as_bytes(), self.offset)?;
        self.offset += size_of::<BlockHeader>() as u64;
        self.file.write_all_at(&self.entries, self.offset)?;
        self.offset += u64::from(length);
        self.block += 1;
        self.entries.clear();
        Ok(())
    }
}

/// Removes all other checkpoints, finished or not.
pub(crate) fn remove_others(storage: &impl Storage, in_force: u64) -> StorageResult<()> {
    let kept = name_of(in_force);
    for name in storage.list()? {
        if is_checkpoint(&name) && name != kept {
            storage.remove(&name)?;
        }
    }
    Ok(())
}

/// The error of an entry that cannot be encoded.
fn refused(covered: u64, error: AppendError) -> StorageError {
    StorageError {
        operation: "write an entry of",
        path: unfinished(covered),
        kind: StorageErrorKind::Other,
        message: error.to_string(),
    }
}

fn unfinished(covered: u64) -> String {
    format!("{covered:016x}{UNFINISHED}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert_eq!(covered_by(&name_of(255)), Some(255));
        assert_eq!(name_of(255), "00000000000000ff.checkpoint");
        for other in ["ff.checkpoint", "00000000000000FF.checkpoint", "00000000000000ff.segment"] {
            assert_eq!(covered_by(other), None);
            assert!(!is_checkpoint(other));
        }
        assert!(is_checkpoint(&name_of(3)) && is_checkpoint(&unfinished(3)));
        assert_eq!(covered_by(&unfinished(3)), None);
    }
}
