//! A topic: its records, and what changes them.

use crate::change::{Cause, Change, Version};
use crate::definition::TopicDefinition;
use crate::error::TopicError;
use crate::expiry::Expiry;
use crate::hash_index::{HashIndex, candidates};
use crate::key::{Identity, Key, Sum};
use crate::publication::Publication;
use crate::query::Query;
use crate::reading::Reading;
use crate::record::{Header, NEVER, Record};
use crate::records::Records;
use crate::scan::QueryCursor;
use lanecast_filter::fields::{FieldSet, Slot, TooManyFields};
use lanecast_filter::interpreter::Environment;
use lanecast_filter::merge::merge;
use lanecast_filter::path::Path;

/// A record that is about to be.
#[derive(Debug)]
pub(crate) struct Next {
    found: Option<u32>,
    record: Record,
}

impl Next {
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }
}

/// The last messages of a topic by key.
#[derive(Debug)]
pub struct Topic {
    definition: TopicDefinition,
    sum: Sum,
    fields: FieldSet,
    keys: Box<[Slot]>,
    records: Records,
    indexes: Box<[(Path, HashIndex)]>,
    expiry: Expiry,
    sequence: u64,
    /// What the last change has left of the record.
    past: Option<Record>,
    past_reading: Reading,
    reading: Reading,
}

impl Topic {
    /// A topic without records.
    ///
    /// # Errors
    ///
    /// If it has more key fields than there is room for.
    pub fn new(definition: TopicDefinition) -> Result<Self, TopicError> {
        let mut fields = FieldSet::new(definition.format);
        let keys = definition.keys.iter().map(|path| fields.slot(path));
        let keys = keys.collect::<Result<_, _>>()?;
        let indexes = definition.indexes.iter();
        let indexes = indexes.map(|path| Ok((path.clone(), HashIndex::new(fields.slot(path)?))));
        let indexes = indexes.collect::<Result<_, TooManyFields>>()?;
        Ok(Self {
            sum: Sum::new(&definition.name),
            keys,
            records: Records::default(),
            indexes,
            expiry: Expiry::default(),
            sequence: 0,
            past: None,
            past_reading: Reading::new(&fields),
            reading: Reading::new(&fields),
            fields,
            definition,
        })
    }

    /// What the topic is.
    pub fn definition(&self) -> &TopicDefinition {
        &self.definition
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of the last change; 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The record with this number.
    pub fn get(&self, key: Key) -> Option<&Record> {
        self.records.get(self.records.find_key(key)?)
    }

    /// All records, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// The same with their places.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u32, &Record)> {
        (0..self.end()).filter_map(|place| Some((place, self.at(place)?)))
    }

    /// Answers `query` at once.
    ///
    /// # Errors
    ///
    /// If the query names more fields than there is room for.
    pub fn query(&self, query: &Query, now_ns: u64) -> Result<Vec<Record>, TooManyFields> {
        let (mut scan, mut found) = (QueryCursor::new(self, query, now_ns)?, Vec::new());
        scan.advance(self, usize::MAX, &mut found);
        Ok(found)
    }

    /// The places of all records that `query` may be about, if not all have to be looked at.
    pub(crate) fn candidates(&self, query: &Query) -> Option<Vec<u32>> {
        match &query.keys {
            Some(keys) => {
                let mut places: Vec<u32> =
                    keys.iter().filter_map(|key| self.records.find_key(*key)).collect();
                places.sort_unstable();
                places.dedup();
                Some(places)
            }
            None => candidates(&self.indexes, query.filter.as_ref()?.expr()),
        }
    }

    /// One more than the last place of a record.
    pub(crate) fn end(&self) -> u32 {
        self.records.end()
    }

    /// The record at `place`.
    pub(crate) fn at(&self, place: u32) -> Option<&Record> {
        self.records.get(place)
    }

    /// The fields that somebody wants of this topic.
    pub fn fields(&self) -> &FieldSet {
        &self.fields
    }

    /// Lets `want` ask for fields, or release some. Changes from then on have them in their rows.
    pub fn with_fields<R>(&mut self, want: impl FnOnce(&mut FieldSet) -> R) -> R {
        let result = want(&mut self.fields);
        self.past = None;
        self.past_reading = Reading::new(&self.fields);
        self.reading = Reading::new(&self.fields);
        result
    }

    /// Makes the message the record of its key.
    ///
    /// # Errors
    ///
    /// If the message has no key, or cannot be read. Then nothing has changed.
    pub fn publish<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Change<'a>, TopicError> {
        let next = self.prepare(publication, now_ns)?;
        Ok(self.commit(next, Cause::Published, publication.client, now_ns))
    }

    /// Changes those fields of a record that the message has, and leaves all others as they are.
    /// The message becomes the record if there is none.
    ///
    /// # Errors
    ///
    /// If the message has no key, or cannot be read, or if messages of this kind have no deltas.
    /// Then nothing has changed.
    pub fn publish_delta<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Change<'a>, TopicError> {
        let (next, cause) = self.prepare_delta(publication, now_ns)?;
        Ok(self.commit(next, cause, publication.client, now_ns))
    }

    /// The number of the record of a message's key, if there is one. All but the key is ignored.
    ///
    /// # Errors
    ///
    /// If the message has no key, or cannot be read.
    pub fn key_of(&mut self, publication: &Publication<'_>) -> Result<Option<Key>, TopicError> {
        let place = self.find_as(publication)?;
        Ok(place.and_then(|place| self.records.get(place)).map(Record::key))
    }

    /// Deletes the record with this number, if there is one.
    pub fn delete<'a>(&'a mut self, key: Key, client: &'a str, now_ns: u64) -> Option<Change<'a>> {
        let place = self.find(key)?;
        self.remove(place, Cause::Deleted, client, now_ns)
    }

    /// Deletes the record of a message's key, if there is one. All but the key is ignored.
    ///
    /// # Errors
    ///
    /// If the message has no key, or cannot be read.
    pub fn delete_as<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Option<Change<'a>>, TopicError> {
        let Some(place) = self.find_as(publication)? else { return Ok(None) };
        Ok(self.remove(place, Cause::Deleted, publication.client, now_ns))
    }

    /// Removes one record whose time is over, if there is one: call it until there is none.
    pub fn expire(&mut self, now_ns: u64) -> Option<Change<'_>> {
        let place = self.due(now_ns)?;
        self.remove(place, Cause::Expired, "", now_ns)
    }

    /// When the next record expires, in nanoseconds since 1970.
    pub fn next_expiry_ns(&self) -> Option<u64> {
        self.expiry.next_ns()
    }

    /// Where the record with this number is.
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        self.records.find_key(key)
    }

    /// Where the record of a message's key is.
    pub(crate) fn find_as(
        &mut self,
        publication: &Publication<'_>,
    ) -> Result<Option<u32>, TopicError> {
        let identity = self.identity(publication)?;
        Ok(self.records.find(identity))
    }

    /// Where a record is whose time is over.
    pub(crate) fn due(&self, now_ns: u64) -> Option<u32> {
        self.expiry.due(now_ns)
    }

    /// The topic's number on disk.
    pub(crate) fn number(&self) -> u32 {
        self.sum.identity().checksum as u32
    }

    /// The record that a message will be: the message is at hand from now on.
    // Inline, as those below: a record that is handed from one to the next is copied each time.
    #[inline(always)]
    pub(crate) fn prepare(
        &mut self,
        publication: &Publication<'_>,
        now_ns: u64,
    ) -> Result<Next, TopicError> {
        let (sequence, expires_ns) = (self.sequence + 1, self.expires_ns(publication, now_ns));
        self.prepare_as(publication, sequence, expires_ns)
    }

    #[inline(always)]
    fn prepare_as(
        &mut self,
        publication: &Publication<'_>,
        sequence: u64,
        expires_ns: u64,
    ) -> Result<Next, TopicError> {
        let identity = self.identity(publication)?;
        let found = self.records.find(identity);
        let key = match found.and_then(|place| self.records.get(place)) {
            Some(record) => record.key(),
            None => self.records.free_key(identity).ok_or(TopicError::TooManyCollisions)?,
        };
        if found.is_none() && self.records.free_place().is_none() {
            return Err(TopicError::Full);
        }
        let header = Header::new(identity, key, sequence, expires_ns);
        let name = publication.key.unwrap_or_default();
        Ok(Next { found, record: Record::new(header, publication.bytes, name) })
    }

    /// The record that a message will make of the one that is there, and why.
    pub(crate) fn prepare_delta(
        &mut self,
        publication: &Publication<'_>,
        now_ns: u64,
    ) -> Result<(Next, Cause), TopicError> {
        let found = self.find_as(publication)?;
        let Some(base) = found.and_then(|place| self.records.get(place)) else {
            return Ok((self.prepare(publication, now_ns)?, Cause::Published));
        };
        let mut merged = Vec::with_capacity(base.bytes().len() + publication.bytes.len());
        merge(self.definition.format, base.bytes(), publication.bytes, &mut merged)?;
        let whole = Publication { bytes: &merged, ..*publication };
        Ok((self.prepare(&whole, now_ns)?, Cause::Merged))
    }

    /// Puts `bytes` in the place of those of a record, if it is there. They have its key too.
    pub(crate) fn renew<'a>(
        &'a mut self,
        key: Key,
        bytes: &[u8],
        now_ns: u64,
    ) -> Option<Change<'a>> {
        let place = self.records.find_key(key)?;
        let record = self.records.get(place)?.renewed(bytes, self.sequence + 1);
        self.reading.forget();
        Some(self.commit(Next { found: Some(place), record }, Cause::Published, "", now_ns))
    }

    /// Makes what was prepared last the record.
    #[inline(always)]
    pub(crate) fn commit<'a>(
        &'a mut self,
        next: Next,
        cause: Cause,
        client: &'a str,
        now_ns: u64,
    ) -> Change<'a> {
        let key = next.record.key();
        self.sequence += 1;
        let place = self.store(next.found, next.record);
        self.changed(key, place, cause, client, now_ns)
    }

    /// Brings a record back as it was.
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

    /// Removes a record again, if it is there.
    pub(crate) fn remove_again(&mut self, identity: Identity, sequence: u64) {
        if let Some(place) = self.records.find(identity) {
            self.remove(place, Cause::Deleted, "", 0);
        }
        self.sequence = self.sequence.max(sequence);
    }

    /// The topic had come this far, and will have about as many records.
    pub(crate) fn resume(&mut self, sequence: u64, records: usize) {
        self.sequence = self.sequence.max(sequence);
        self.records.reserve(records);
    }

    /// What a message's key values are. Leaves the message at hand.
    #[inline]
    fn identity(&mut self, publication: &Publication<'_>) -> Result<Identity, TopicError> {
        let row = self.reading.read(publication.bytes)?;
        match (publication.key, &*self.keys) {
            (Some(key), []) if !key.is_empty() => {
                Ok(self.sum.clone().with(key.as_bytes()).identity())
            }
            (_, []) => Err(TopicError::MissingKey),
            (Some(_), _) => Err(TopicError::UnexpectedKey),
            (None, slots) => {
                let mut sum = self.sum.clone();
                for (slot, path) in slots.iter().zip(&self.definition.keys) {
                    let value = row.text(*slot, publication.bytes);
                    sum.add(value.ok_or_else(|| TopicError::MissingKeyField(path.clone()))?);
                }
                Ok(sum.identity())
            }
        }
    }

    fn expires_ns(&self, publication: &Publication<'_>, now_ns: u64) -> u64 {
        let Some(lifetime) = publication.lifetime.or(self.definition.lifetime) else {
            return NEVER;
        };
        now_ns.saturating_add(u64::try_from(lifetime.as_nanos()).unwrap_or(NEVER))
    }

    /// Puts `record` where the one before it is, or at a new place.
    #[inline(always)]
    fn store(&mut self, found: Option<u32>, record: Record) -> u32 {
        let to_ns = record.expires_ns().unwrap_or(NEVER);
        let (place, before) = match found {
            Some(place) => (place, self.records.replace(place, record)),
            None => (self.records.insert(record), None),
        };
        if !self.indexes.is_empty()
            && let Some(record) = self.records.get(place)
        {
            let row = self.reading.row(record.bytes());
            self.indexes.iter_mut().for_each(|(_, index)| index.put(place, row, record));
        }
        let from_ns = before.as_ref().and_then(Record::expires_ns).unwrap_or(NEVER);
        self.expiry.moved(place, from_ns, to_ns);
        self.past = before;
        place
    }

    /// Removes the record at `place`.
    pub(crate) fn remove<'a>(
        &'a mut self,
        place: u32,
        cause: Cause,
        client: &'a str,
        now_ns: u64,
    ) -> Option<Change<'a>> {
        let record = self.records.remove(place)?;
        let (key, from_ns) = (record.key(), record.expires_ns().unwrap_or(NEVER));
        self.expiry.moved(place, from_ns, NEVER);
        self.indexes.iter_mut().for_each(|(_, index)| index.take(place));
        self.past = Some(record);
        self.sequence += 1;
        Some(self.changed(key, place, cause, client, now_ns))
    }

    /// Says what has happened at `place`.
    fn changed<'a>(
        &'a mut self,
        key: Key,
        place: u32,
        cause: Cause,
        client: &'a str,
        unix_ns: u64,
    ) -> Change<'a> {
        self.past_reading.forget();
        let past = self.past.as_ref();
        Change {
            key,
            sequence: self.sequence,
            cause,
            before: past.map(|record| Version::new(record, &self.past_reading)),
            after: self.records.get(place).map(|record| Version::new(record, &self.reading)),
            environment: Environment { topic: &self.definition.name, client, unix_ns },
            place,
        }
    }
}
