//! [`Topic`]: records by key, and the operations that change them.

use crate::change::{Cause, Change, Version};
use crate::deadlines::Deadlines;
use crate::definition::TopicDefinition;
use crate::error::TopicError;
use crate::hash_index::{HashIndex, candidates};
use crate::key::{Identity, KEY_BYTES_MAX, Key, KeyHasher};
use crate::parsed_fields::ParsedFields;
use crate::publication::Publication;
use crate::query::Query;
use crate::record::{Header, NEVER, Record};
use crate::records::Records;
use lanecast_filter::fields::{FieldSet, Slot, TooManyFields};
use lanecast_filter::interpreter::Environment;
use lanecast_filter::merge::merge;
use lanecast_filter::path::Path;

/// A record prepared for [`commit`](Topic::commit), and the row it replaces.
#[derive(Debug)]
pub(crate) struct PreparedRecord {
    found: Option<u32>,
    record: Record,
}

impl PreparedRecord {
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }
}

/// A topic: the last message of each key.
#[derive(Debug)]
pub struct Topic {
    definition: TopicDefinition,
    hasher: KeyHasher,
    fields: FieldSet,
    keys: Box<[Slot]>,
    records: Records,
    indexes: Box<[(Path, HashIndex)]>,
    /// Rows of records with a lifetime.
    expiry: Deadlines,
    sequence: u64,
    /// Previous version of the record changed last: changes borrow it.
    previous: Option<Record>,
    previous_parsed: ParsedFields,
    parsed: ParsedFields,
}

impl Topic {
    /// A topic without records.
    ///
    /// # Errors
    /// If it has more key or index fields than there is room for.
    pub fn new(definition: TopicDefinition) -> Result<Self, TopicError> {
        let mut fields = FieldSet::new(definition.format);
        let keys = definition.keys.iter().map(|path| fields.slot(path));
        let keys = keys.collect::<Result<_, _>>()?;
        let indexes = definition.indexes.iter();
        let indexes = indexes.map(|path| Ok((path.clone(), HashIndex::new(fields.slot(path)?))));
        let indexes = indexes.collect::<Result<_, TooManyFields>>()?;
        Ok(Self {
            hasher: KeyHasher::new(&definition.name),
            keys,
            records: Records::default(),
            indexes,
            expiry: Deadlines::default(),
            sequence: 0,
            previous: None,
            previous_parsed: ParsedFields::new(&fields),
            parsed: ParsedFields::new(&fields),
            fields,
            definition,
        })
    }

    /// The topic's definition.
    pub fn definition(&self) -> &TopicDefinition {
        &self.definition
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sequence of the last change; 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The record with this key.
    pub fn get(&self, key: Key) -> Option<&Record> {
        self.records.get(self.records.find_key(key)?)
    }

    /// All records, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// All records with their rows.
    pub(crate) fn row_ids(&self) -> impl Iterator<Item = (u32, &Record)> {
        (0..self.end()).filter_map(|row_id| Some((row_id, self.at(row_id)?)))
    }

    /// Candidate rows of `query`; `None` if it needs a full scan.
    pub(crate) fn candidates(&self, query: &Query) -> Option<Vec<u32>> {
        match &query.keys {
            Some(keys) => {
                let mut row_ids: Vec<u32> =
                    keys.iter().filter_map(|key| self.records.find_key(*key)).collect();
                row_ids.sort_unstable();
                row_ids.dedup();
                Some(row_ids)
            }
            None => candidates(&self.indexes, query.filter.as_ref()?.expr()),
        }
    }

    #[cfg(test)]
    pub(crate) fn indexes(&self) -> &[(Path, HashIndex)] {
        &self.indexes
    }

    /// Number of rows.
    pub(crate) fn end(&self) -> u32 {
        self.records.end()
    }

    /// The record in a row.
    pub(crate) fn at(&self, row_id: u32) -> Option<&Record> {
        self.records.get(row_id)
    }

    /// The fields that the topic parses.
    pub fn fields(&self) -> &FieldSet {
        &self.fields
    }

    /// Lets `want` add or release fields to parse. Later changes have them in their rows.
    pub fn with_fields<R>(&mut self, want: impl FnOnce(&mut FieldSet) -> R) -> R {
        let result = want(&mut self.fields);
        self.previous = None;
        self.previous_parsed = ParsedFields::new(&self.fields);
        self.parsed = ParsedFields::new(&self.fields);
        result
    }

    /// Publishes a message: it becomes the record of its key.
    ///
    /// # Errors
    /// If the message has no key or is malformed. Nothing has changed then.
    pub fn publish<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Change<'a>, TopicError> {
        let next = self.prepare(publication, now_ns)?;
        Ok(self.commit(next, Cause::Published, publication.client, now_ns))
    }

    /// Publishes a delta: merges its fields into the record of its key. Without a record the
    /// message becomes the record.
    ///
    /// # Errors
    /// If the message has no key, is malformed, or its type has no deltas. Nothing has changed
    /// then.
    pub fn publish_delta<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Change<'a>, TopicError> {
        let (next, cause) = self.prepare_delta(publication, now_ns)?;
        Ok(self.commit(next, cause, publication.client, now_ns))
    }

    /// Key of the record that a message addresses, if there is one. Only the message's key is used.
    ///
    /// # Errors
    /// If the message has no key or is malformed.
    pub fn key_of(&mut self, publication: &Publication<'_>) -> Result<Option<Key>, TopicError> {
        let row_id = self.find_by_message(publication)?;
        Ok(row_id.and_then(|row_id| self.records.get(row_id)).map(Record::key))
    }

    /// Deletes the record with this key, if there is one.
    pub fn delete<'a>(&'a mut self, key: Key, client: &'a str, now_ns: u64) -> Option<Change<'a>> {
        let row_id = self.find(key)?;
        self.remove(row_id, Cause::Deleted, client, now_ns)
    }

    /// Deletes the record that a message addresses, if there is one. Only the message's key is
    /// used.
    ///
    /// # Errors
    /// If the message has no key or is malformed.
    pub fn delete_as<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Option<Change<'a>>, TopicError> {
        let Some(row_id) = self.find_by_message(publication)? else { return Ok(None) };
        Ok(self.remove(row_id, Cause::Deleted, publication.client, now_ns))
    }

    /// Removes one expired record, if there is one: call it until it returns `None`.
    pub fn expire(&mut self, now_ns: u64) -> Option<Change<'_>> {
        let row_id = self.due(now_ns)?;
        self.remove(row_id, Cause::Expired, "", now_ns)
    }

    /// Key of the record that [`expire`](Self::expire) would remove.
    pub fn next_expired(&self, now_ns: u64) -> Option<Key> {
        self.at(self.due(now_ns)?).map(Record::key)
    }

    /// Time at which the next record expires, in nanoseconds since 1970.
    pub fn next_expiry_ns(&self) -> Option<u64> {
        self.expiry.next_ns()
    }

    /// Row of the record with this key.
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        self.records.find_key(key)
    }

    /// Row of the record that a message addresses.
    pub(crate) fn find_by_message(
        &mut self,
        publication: &Publication<'_>,
    ) -> Result<Option<u32>, TopicError> {
        let identity = self.identity(publication)?;
        Ok(self.records.find(identity))
    }

    /// Row of an expired record.
    pub(crate) fn due(&self, now_ns: u64) -> Option<u32> {
        self.expiry.due(now_ns)
    }

    /// Number of the topic on disk, a hash of its name.
    pub(crate) fn number(&self) -> u32 {
        self.hasher.identity().checksum as u32
    }

    /// Prepares the record of a message, which becomes the current message of `parsed`.
    // Inlined, as the functions below: otherwise the record is copied from frame to frame.
    #[inline(always)]
    pub(crate) fn prepare(
        &mut self,
        publication: &Publication<'_>,
        now_ns: u64,
    ) -> Result<PreparedRecord, TopicError> {
        // Not checked when records are restored: earlier versions stored longer keys.
        if let Some(key) = publication.key.filter(|key| key.len() > KEY_BYTES_MAX) {
            return Err(TopicError::KeyTooLong(key.len()));
        }
        let (sequence, expires_ns) = (self.sequence + 1, self.expires_ns(publication, now_ns));
        self.prepare_as(publication, sequence, expires_ns)
    }

    #[inline(always)]
    fn prepare_as(
        &mut self,
        publication: &Publication<'_>,
        sequence: u64,
        expires_ns: u64,
    ) -> Result<PreparedRecord, TopicError> {
        let identity = self.identity(publication)?;
        let found = self.records.find(identity);
        let key = match found.and_then(|row_id| self.records.get(row_id)) {
            Some(record) => record.key(),
            None => self.records.free_key(identity).ok_or(TopicError::TooManyCollisions)?,
        };
        // Checked here, so that `commit` cannot fail after the journal has the change.
        if found.is_none() && self.records.free_row_id().is_none() {
            return Err(TopicError::Full);
        }
        let header = Header::new(identity, key, sequence, expires_ns);
        let name = publication.key.unwrap_or_default();
        Ok(PreparedRecord { found, record: Record::new(header, publication.bytes, name) })
    }

    /// Prepares the result of merging a delta into the current record, and the cause of the change.
    pub(crate) fn prepare_delta(
        &mut self,
        publication: &Publication<'_>,
        now_ns: u64,
    ) -> Result<(PreparedRecord, Cause), TopicError> {
        let found = self.find_by_message(publication)?;
        let Some(base) = found.and_then(|row_id| self.records.get(row_id)) else {
            return Ok((self.prepare(publication, now_ns)?, Cause::Published));
        };
        let mut merged = Vec::with_capacity(base.bytes().len() + publication.bytes.len());
        merge(self.definition.format, base.bytes(), publication.bytes, &mut merged)?;
        let (bytes, max) = (merged.len(), self.definition.merged_bytes_max);
        if bytes > max {
            return Err(TopicError::MergedTooLong { bytes, max });
        }
        let whole = Publication { bytes: &merged, ..*publication };
        Ok((self.prepare(&whole, now_ns)?, Cause::Merged))
    }

    /// Replaces the bytes of a record that keeps its key, if it is there.
    pub(crate) fn replace_bytes<'a>(
        &'a mut self,
        key: Key,
        bytes: &[u8],
        now_ns: u64,
    ) -> Option<Change<'a>> {
        let row_id = self.records.find_key(key)?;
        let record = self.records.get(row_id)?.renewed(bytes, self.sequence + 1);
        self.parsed.forget();
        Some(self.commit(
            PreparedRecord { found: Some(row_id), record },
            Cause::Published,
            "",
            now_ns,
        ))
    }

    /// Commits the record prepared last.
    #[inline(always)]
    pub(crate) fn commit<'a>(
        &'a mut self,
        next: PreparedRecord,
        cause: Cause,
        client: &'a str,
        now_ns: u64,
    ) -> Change<'a> {
        let key = next.record.key();
        self.sequence += 1;
        let row_id = self.store(next.found, next.record);
        self.change_event(key, row_id, cause, client, now_ns)
    }

    /// Restores a record from disk.
    pub(crate) fn restore(
        &mut self,
        publication: &Publication<'_>,
        sequence: u64,
        expires_ns: u64,
        identity: Identity,
    ) -> Result<(), TopicError> {
        let next = self.prepare_as(publication, sequence, expires_ns)?;
        (next.record.identity() == identity).then_some(()).ok_or(TopicError::KeyMismatch)?;
        self.sequence = self.sequence.max(sequence);
        self.store(next.found, next.record);
        Ok(())
    }

    /// Replays a removal, if the record is there.
    pub(crate) fn replay_remove(&mut self, identity: Identity, sequence: u64) {
        if let Some(row_id) = self.records.find(identity) {
            self.remove(row_id, Cause::Deleted, "", 0);
        }
        self.sequence = self.sequence.max(sequence);
    }

    /// Sets the sequence reached before a restart and reserves space for `records`.
    pub(crate) fn resume(&mut self, sequence: u64, records: usize) {
        self.sequence = self.sequence.max(sequence);
        self.records.reserve(records);
    }

    /// Identity of a message's key values. The message becomes the current one of `parsed`.
    #[inline]
    fn identity(&mut self, publication: &Publication<'_>) -> Result<Identity, TopicError> {
        let row = self.parsed.read(publication.bytes)?;
        match (publication.key, &*self.keys) {
            (Some(key), []) if !key.is_empty() => {
                Ok(self.hasher.clone().with(key.as_bytes()).identity())
            }
            (_, []) => Err(TopicError::MissingKey),
            (Some(_), _) => Err(TopicError::UnexpectedKey),
            (None, slots) => {
                let mut hasher = self.hasher.clone();
                for (slot, path) in slots.iter().zip(&self.definition.keys) {
                    let value = row.text(*slot, publication.bytes);
                    hasher.add(value.ok_or_else(|| TopicError::MissingKeyField(path.clone()))?);
                }
                Ok(hasher.identity())
            }
        }
    }

    fn expires_ns(&self, publication: &Publication<'_>, now_ns: u64) -> u64 {
        let Some(lifetime) = publication.lifetime.or(self.definition.lifetime) else {
            return NEVER;
        };
        now_ns.saturating_add(u64::try_from(lifetime.as_nanos()).unwrap_or(NEVER))
    }

    /// Stores `record` in the row of its previous version, or in a new one.
    #[inline(always)]
    fn store(&mut self, found: Option<u32>, record: Record) -> u32 {
        let to_ns = record.expires_ns().unwrap_or(NEVER);
        let (row_id, before) = match found {
            Some(row_id) => (row_id, self.records.replace(row_id, record)),
            None => (self.records.insert(record), None),
        };
        if !self.indexes.is_empty()
            && let Some(record) = self.records.get(row_id)
        {
            let row = self.parsed.row(record.bytes());
            self.indexes.iter_mut().for_each(|(_, index)| index.put(row_id, row, record));
        }
        let from_ns = before.as_ref().and_then(Record::expires_ns).unwrap_or(NEVER);
        self.expiry.moved(row_id, from_ns, to_ns);
        self.previous = before;
        row_id
    }

    /// Removes the record in a row.
    pub(crate) fn remove<'a>(
        &'a mut self,
        row_id: u32,
        cause: Cause,
        client: &'a str,
        now_ns: u64,
    ) -> Option<Change<'a>> {
        let record = self.records.remove(row_id)?;
        let (key, from_ns) = (record.key(), record.expires_ns().unwrap_or(NEVER));
        self.expiry.moved(row_id, from_ns, NEVER);
        self.indexes.iter_mut().for_each(|(_, index)| index.take(row_id));
        self.previous = Some(record);
        self.sequence += 1;
        Some(self.change_event(key, row_id, cause, client, now_ns))
    }

    /// Builds the event of the change in a row.
    fn change_event<'a>(
        &'a mut self,
        key: Key,
        row_id: u32,
        cause: Cause,
        client: &'a str,
        unix_ns: u64,
    ) -> Change<'a> {
        self.previous_parsed.forget();
        let previous = self.previous.as_ref();
        Change {
            key,
            sequence: self.sequence,
            cause,
            before: previous.map(|record| Version::new(record, &self.previous_parsed)),
            after: self.records.get(row_id).map(|record| Version::new(record, &self.parsed)),
            environment: Environment { topic: &self.definition.name, client, unix_ns },
            row_id,
        }
    }
}
