//! Recovery of topics from the newest checkpoint and the journal behind it.

use super::checkpoint::{checksum, covered_by, name_of};
use super::clients::Clients;
use super::definition_text::text_of_topic;
use super::error::{MismatchKind, SowStoreError};
use super::schema::{Schema, SchemaChange, StoredSchema};
use crate::definition::TopicDefinition;
use crate::key::Identity;
use crate::publication::Publication;
use crate::topic::Topic;
use lanecast_journal::{Durability, Journal, OpenMode, Start, Storage, StoredFile};
use lanecast_wire::checksum::crc32c;
use lanecast_wire::command::SEQUENCE_MAX;
use lanecast_wire::state::{
    BLOCK_MAX, BlockHeader, CHECKPOINT_MAGIC, CheckpointHeader, STATE_CLIENT, STATE_CLIENT_GONE,
    STATE_DEFINE, STATE_FORGET, STATE_PUT, STATE_TOPIC, STATE_VERSION, STATE_VERSION_LEAST,
    STATE_VIEW, StateEntry,
};
use std::collections::HashMap;
use zerocopy::FromBytes;

/// Topics in recovery.
pub(crate) struct Recovery {
    pub(crate) topics: Vec<Topic>,
    /// Last sequence of each client.
    pub(crate) clients: Clients,
    /// Index of each topic, by number.
    indexes: HashMap<u32, usize>,
    /// Definitions found on disk.
    stored: StoredSchema,
}

impl Recovery {
    pub(crate) fn new(definitions: &[TopicDefinition]) -> Result<Self, SowStoreError> {
        let (mut topics, mut indexes) = (Vec::<Topic>::new(), HashMap::new());
        for definition in definitions {
            let topic = new_topic(definition)?;
            if let Some(other) = indexes.insert(topic.number(), topics.len()) {
                let [one, two] =
                    [&topics[other], &topic].map(|topic| topic.definition().name.to_string());
                return Err(SowStoreError::SameNumber(one, two));
            }
            topics.push(topic);
        }
        Ok(Self { topics, clients: Clients::new(), indexes, stored: StoredSchema::default() })
    }

    /// Loads the newest checkpoint; returns the covered sequence, 0 if there is none.
    pub(crate) fn load<S: Storage>(&mut self, storage: &S) -> Result<u64, SowStoreError> {
        let Some(mut file) = CheckpointReader::newest(storage)? else { return Ok(0) };
        while let Some(entries) = file.next()? {
            let mut rest = entries;
            while !rest.is_empty() {
                match self.apply(rest)? {
                    Some(behind) => rest = behind,
                    None => return Err(file.damaged()),
                }
            }
        }
        Ok(file.covered)
    }

    /// Replays the journal behind `covered`.
    pub(crate) fn replay<S: Storage>(
        &mut self,
        journal: &Journal<S>,
        covered: u64,
    ) -> Result<(), SowStoreError> {
        let mut cursor = journal.cursor(Start::Sequence(covered + 1), Durability::Persisted)?;
        while let Some(record) = cursor.read()? {
            let mut rest = record.body;
            loop {
                rest = self.apply(rest)?.ok_or(SowStoreError::Foreign(record.sequence))?;
                if rest.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Compares the disk with `schema` and drops the records of topics that it allows to drop;
    /// returns the entries to append.
    pub(crate) fn reconcile(&mut self, schema: &Schema) -> Result<SchemaChange, SowStoreError> {
        let change = self.stored.check(schema)?;
        for number in &change.dropped {
            self.drop_records(*number)?;
        }
        Ok(change)
    }

    /// Applies the first entry of `bytes`; returns the rest, or `None` if it is invalid.
    fn apply<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, SowStoreError> {
        let Some((entry, rest)) = StateEntry::split(bytes) else { return Ok(None) };
        let kind = entry.header.kind.get();
        let is_applied = match kind {
            STATE_CLIENT | STATE_CLIENT_GONE | STATE_VIEW => self.apply_named(&entry),
            STATE_DEFINE | STATE_TOPIC => self.apply_definition(&entry),
            STATE_FORGET => {
                let number = entry.header.topic.get();
                self.stored.topics.remove(&number);
                self.drop_records(number)?;
                true
            }
            _ => self.apply_record(&entry),
        };
        Ok(is_applied.then_some(rest))
    }

    /// Applies an entry without a topic; returns whether it is valid.
    fn apply_named(&mut self, entry: &StateEntry<'_>) -> bool {
        let (header, Ok(name)) = (entry.header, str::from_utf8(entry.name)) else { return false };
        match header.kind.get() {
            // Earlier versions accepted any sequence; one above the limit would block its client
            // for good.
            STATE_CLIENT if header.sequence.get() > SEQUENCE_MAX => {}
            STATE_CLIENT => {
                let (sequence, unix_ns) = (header.sequence.get(), header.key.get());
                self.clients.entry(name.into()).or_default().advance(sequence, unix_ns);
            }
            STATE_CLIENT_GONE => drop(self.clients.remove(name)),
            _ if entry.message.is_empty() => drop(self.stored.views.remove(name)),
            _ => {
                let Ok(text) = str::from_utf8(entry.message) else { return false };
                self.stored.views.insert(name.into(), text.into());
            }
        }
        true
    }

    fn apply_definition(&mut self, entry: &StateEntry<'_>) -> bool {
        let texts = (str::from_utf8(entry.name), str::from_utf8(entry.message));
        let (Ok(name), Ok(text)) = texts else { return false };
        let number = entry.header.topic.get();
        let index = self.indexes.get(&number).copied();
        let stored = self.stored.topics.entry(number).or_default();
        stored.name = Some(name.into());
        // Version 1 stores no definitions: mismatches show when messages are restored.
        if !text.is_empty() {
            stored.definition = Some(text.into());
        }
        let Some(topic) = index.map(|index| &mut self.topics[index]) else { return true };
        let is = text_of_topic(topic.definition());
        if !text.is_empty() && text != is {
            stored.mismatch = Some(MismatchKind::Changed { was: text.into(), is });
        }
        if entry.header.kind.get() == STATE_TOPIC {
            // Bounded, whatever the file claims.
            let likely = usize::try_from(entry.header.key.get()).unwrap_or(0).min(HINT_MAX);
            topic.resume(entry.header.sequence.get(), likely);
        }
        true
    }

    /// Applies a change of a record; returns whether it is valid. A message that does not fit its
    /// topic is noted as a mismatch.
    fn apply_record(&mut self, entry: &StateEntry<'_>) -> bool {
        let (header, Ok(name)) = (entry.header, str::from_utf8(entry.name)) else { return false };
        let stored = self.stored.topics.entry(header.topic.get()).or_default();
        let index = self.indexes.get(&header.topic.get()).filter(|_| stored.mismatch.is_none());
        let Some(topic) = index.map(|index| &mut self.topics[*index]) else { return true };
        let (checksum, proof) = (header.key.get(), header.proof.get());
        let (identity, sequence) = (Identity { checksum, proof }, header.sequence.get());
        if header.kind.get() != STATE_PUT {
            topic.replay_remove(identity, sequence);
            return true;
        }
        let key = Some(name).filter(|name| !name.is_empty());
        let publication = Publication { key, ..Publication::of(entry.message) };
        let expires_ns = header.expires_unix_ns.get();
        if let Err(refusal) = topic.restore(&publication, sequence, expires_ns, identity) {
            stored.mismatch = Some(MismatchKind::Refused(refusal));
        }
        true
    }

    /// Empties a configured topic.
    fn drop_records(&mut self, number: u32) -> Result<(), SowStoreError> {
        if let Some(index) = self.indexes.get(&number) {
            let topic = &mut self.topics[*index];
            *topic = new_topic(topic.definition())?;
        }
        Ok(())
    }
}

/// Most records to reserve space for.
const HINT_MAX: usize = 1 << 20;

/// Reads the blocks of a checkpoint.
pub(crate) struct CheckpointReader<F> {
    file: F,
    path: String,
    covered: u64,
    length: u64,
    offset: u64,
    number: u64,
    entries: Vec<u8>,
}

impl<F: StoredFile> CheckpointReader<F> {
    /// Opens the newest checkpoint, if there is one.
    pub(crate) fn newest<S: Storage<File = F>>(storage: &S) -> Result<Option<Self>, SowStoreError> {
        let newest = storage.list()?.iter().filter_map(|name| covered_by(name)).max();
        newest.map(|covered| Self::open(storage, covered)).transpose()
    }

    /// Sequence that the checkpoint covers.
    pub(crate) fn covered(&self) -> u64 {
        self.covered
    }

    fn open<S: Storage<File = F>>(storage: &S, covered: u64) -> Result<Self, SowStoreError> {
        let name = name_of(covered);
        let file = storage.open(&name, OpenMode::Read)?;
        let (path, length) = (storage.path(&name), file.length()?);
        let (number, entries) = (0, Vec::new());
        let mut blocks = Self { file, path, covered, length, offset: 0, number, entries };
        let header: CheckpointHeader = blocks.header()?;
        let is_whole = header.crc.get() == crc32c(header.checked());
        if header.magic != CHECKPOINT_MAGIC || !is_whole || header.covered.get() != covered {
            return Err(blocks.damaged());
        }
        if !(STATE_VERSION_LEAST..=STATE_VERSION).contains(&header.version.get()) {
            let found = header.version.get();
            return Err(SowStoreError::Version { path: blocks.path, found });
        }
        blocks.offset = size_of::<CheckpointHeader>() as u64;
        Ok(blocks)
    }

    /// The entries of the next block; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, SowStoreError> {
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

    /// Reads a header at the offset.
    fn header<T: FromBytes>(&self) -> Result<T, SowStoreError> {
        let mut bytes = [0; 64];
        let bytes = &mut bytes[..size_of::<T>()];
        if self.file.fill_at(bytes, self.offset)? < bytes.len() {
            return Err(self.damaged());
        }
        T::read_from_bytes(bytes).map_err(|_| self.damaged())
    }

    pub(crate) fn damaged(&self) -> SowStoreError {
        SowStoreError::Damaged { path: self.path.clone(), offset: self.offset }
    }
}

const BLOCK_HEADER: u64 = size_of::<BlockHeader>() as u64;

/// An empty topic.
fn new_topic(definition: &TopicDefinition) -> Result<Topic, SowStoreError> {
    let topic = Topic::new(definition.clone());
    topic.map_err(|error| SowStoreError::Topic { name: definition.name.clone(), error })
}
