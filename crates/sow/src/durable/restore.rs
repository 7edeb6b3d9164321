//! Bringing topics back.

use super::checkpoint::{checksum, covered_by, name_of};
use super::error::ArchiveError;
use crate::definition::TopicDefinition;
use crate::key::Identity;
use crate::publication::Publication;
use crate::refusal::Refusal;
use crate::topic::Topic;
use lanecast_journal::{Journal, Level, Mode, Start, Storage, StoredFile};
use lanecast_wire::state::{
    BLOCK_MAX, BlockHeader, CHECKPOINT_MAGIC, CheckpointHeader, STATE_CLIENT, STATE_PUT,
    STATE_TOPIC, STATE_VERSION, StateEntry,
};
use std::collections::HashMap;
use zerocopy::FromBytes;

/// Topics on their way back.
pub(crate) struct Restoring {
    pub(crate) topics: Vec<Topic>,
    /// The last number of each client.
    pub(crate) clients: HashMap<Box<str>, u64>,
    /// Where each topic is, by number.
    indexes: HashMap<u32, usize>,
}

/// Why an entry was not applied.
enum EntryError {
    NoEntry,
    Refused(usize, Refusal),
}

impl Restoring {
    pub(crate) fn new(definitions: Vec<TopicDefinition>) -> Result<Self, ArchiveError> {
        let (mut topics, mut indexes) = (Vec::<Topic>::new(), HashMap::new());
        for definition in definitions {
            let topic = Topic::new(definition)?;
            if let Some(other) = indexes.insert(topic.number(), topics.len()) {
                let [one, two] =
                    [&topics[other], &topic].map(|topic| topic.definition().name.to_string());
                return Err(ArchiveError::SameNumber(one, two));
            }
            topics.push(topic);
        }
        Ok(Self { topics, clients: HashMap::new(), indexes })
    }

    /// Reads the newest checkpoint; tells what it covers, 0 if there is none.
    pub(crate) fn load<S: Storage>(&mut self, storage: &S) -> Result<u64, ArchiveError> {
        let Some(mut file) = Blocks::newest(storage)? else { return Ok(0) };
        while let Some(entries) = file.next()? {
            let mut rest = entries;
            while !rest.is_empty() {
                rest = match self.apply(rest) {
                    Ok(rest) => rest,
                    Err(EntryError::NoEntry) => return Err(file.damaged()),
                    Err(EntryError::Refused(index, refusal)) => {
                        return Err(self.refused(index, refusal));
                    }
                };
            }
        }
        Ok(file.covered)
    }

    /// Makes the changes behind `covered` again.
    pub(crate) fn replay<S: Storage>(
        &mut self,
        journal: &Journal<S>,
        covered: u64,
    ) -> Result<(), ArchiveError> {
        let mut cursor = journal.cursor(Start::Sequence(covered + 1), Level::Persisted)?;
        while let Some(record) = cursor.read()? {
            let mut rest = record.body;
            loop {
                rest = match self.apply(rest) {
                    Ok([]) => break,
                    Ok(rest) => rest,
                    Err(EntryError::NoEntry) => {
                        return Err(ArchiveError::Foreign(record.sequence));
                    }
                    Err(EntryError::Refused(index, refusal)) => {
                        return Err(self.refused(index, refusal));
                    }
                }
            }
        }
        Ok(())
    }

    /// Applies the first entry of `bytes`; gives the rest.
    fn apply<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], EntryError> {
        let (entry, rest) = StateEntry::split(bytes).ok_or(EntryError::NoEntry)?;
        let StateEntry { header, name, message } = entry;
        if header.kind.get() == STATE_CLIENT {
            let name = str::from_utf8(name).map_err(|_| EntryError::NoEntry)?;
            let last = self.clients.entry(name.into()).or_default();
            *last = header.sequence.get().max(*last);
            return Ok(rest);
        }
        let Some(index) = self.indexes.get(&header.topic.get()).copied() else { return Ok(rest) };
        let (topic, sequence) = (&mut self.topics[index], header.sequence.get());
        match header.kind.get() {
            STATE_PUT => {
                let name = str::from_utf8(name).map_err(|_| EntryError::NoEntry)?;
                let key = Some(name).filter(|name| !name.is_empty());
                let publication = Publication { key, ..Publication::of(message) };
                let restored = topic.restore(&publication, sequence, header.expires_unix_ns.get());
                restored.map_err(|refusal| EntryError::Refused(index, refusal))?;
            }
            STATE_TOPIC => {
                // No more records than can be in the bytes at hand, whatever they say.
                let likely = usize::try_from(header.key.get()).unwrap_or(0).min(HINT_MAX);
                topic.resume(sequence, likely);
            }
            _ => {
                let (checksum, proof) = (header.key.get(), header.proof.get());
                topic.remove_again(Identity { checksum, proof }, sequence);
            }
        }
        Ok(rest)
    }

    fn refused(&self, index: usize, refusal: Refusal) -> ArchiveError {
        ArchiveError::Refused { topic: self.topics[index].definition().name.to_string(), refusal }
    }
}

/// Records that room is made for before they are read.
const HINT_MAX: usize = 1 << 20;

/// The blocks of a checkpoint.
pub(crate) struct Blocks<F> {
    file: F,
    path: String,
    covered: u64,
    length: u64,
    offset: u64,
    number: u64,
    entries: Vec<u8>,
}

impl<F: StoredFile> Blocks<F> {
    /// Those of the newest checkpoint, if there is one.
    pub(crate) fn newest<S: Storage<File = F>>(storage: &S) -> Result<Option<Self>, ArchiveError> {
        let newest = storage.list()?.iter().filter_map(|name| covered_by(name)).max();
        newest.map(|covered| Self::open(storage, covered)).transpose()
    }

    /// The last journal record that they cover.
    pub(crate) fn covered(&self) -> u64 {
        self.covered
    }

    fn open<S: Storage<File = F>>(storage: &S, covered: u64) -> Result<Self, ArchiveError> {
        let name = name_of(covered);
        let file = storage.open(&name, Mode::Read)?;
        let (path, length) = (storage.path(&name), file.length()?);
        let (number, entries) = (0, Vec::new());
        let mut blocks = Self { file, path, covered, length, offset: 0, number, entries };
        let header: CheckpointHeader = blocks.header()?;
        let is_whole = header.crc.get() == crc32c::crc32c(header.checked());
        if header.magic != CHECKPOINT_MAGIC || !is_whole || header.covered.get() != covered {
            return Err(blocks.damaged());
        }
        if header.version.get() != STATE_VERSION {
            let found = header.version.get();
            return Err(ArchiveError::Version { path: blocks.path, found });
        }
        blocks.offset = size_of::<CheckpointHeader>() as u64;
        Ok(blocks)
    }

    /// The entries of the next block; nothing behind the last one.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, ArchiveError> {
        self.offset += if self.number == 0 { 0 } else { BLOCK_HEADER + self.entries.len() as u64 };
        let header: BlockHeader = self.header()?;
        let length = header.length.get();
        let end = self.offset + BLOCK_HEADER + u64::from(length);
        if length > BLOCK_MAX || end > self.length {
            return Err(self.damaged());
        }
        self.entries.resize(length as usize, 0);
        let read = self.file.fill_at(&mut self.entries, self.offset + BLOCK_HEADER)?;
        if read < length as usize || checksum(self.number, &self.entries) != header.crc.get() {
            return Err(self.damaged());
        }
        self.number += 1;
        Ok((length > 0).then_some(&*self.entries))
    }

    /// What stands at the offset.
    fn header<T: FromBytes>(&self) -> Result<T, ArchiveError> {
        let mut bytes = [0; 64];
        let bytes = &mut bytes[..size_of::<T>()];
        if self.file.fill_at(bytes, self.offset)? < bytes.len() {
            return Err(self.damaged());
        }
        T::read_from_bytes(bytes).map_err(|_| self.damaged())
    }

    pub(crate) fn damaged(&self) -> ArchiveError {
        ArchiveError::Damaged { path: self.path.clone(), offset: self.offset }
    }
}

const BLOCK_HEADER: u64 = size_of::<BlockHeader>() as u64;
