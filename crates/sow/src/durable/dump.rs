//! Looking at what is kept without its owner, and without knowing what the topics are.

use super::error::SowStoreError;
use super::recovery::CheckpointReader;
use crate::key::{Key, KeyHasher};
use crate::record::NEVER;
use lanecast_journal::{Reader, Start, Storage};
use lanecast_wire::state::{
    STATE_DEFINE, STATE_DELETE, STATE_EXPIRE, STATE_FORGET, STATE_PUT, STATE_TOPIC, StateEntry,
};
use std::collections::{BTreeMap, HashMap};

/// The records of an archive, as far as they can be read.
///
/// Nothing is locked or changed: the owner may be alive, and its files may be damaged.
#[derive(Debug, Default)]
pub struct Dump {
    /// By topic, then in the order in which they were last changed.
    pub records: Vec<DumpedRecord>,
    /// The names of topics, by number, as far as they are told.
    pub names: BTreeMap<u32, String>,
    /// The last journal record that a checkpoint covers.
    pub covered: u64,
    /// The last journal record that was read; 0 if there was none.
    pub last: u64,
    /// What could not be read. Without any, this is all there is.
    pub damage: Vec<SowStoreError>,
}

/// A record of some topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedRecord {
    /// The topic's number.
    pub topic: u32,
    /// Its own, unless that was taken when it came.
    pub key: Key,
    /// The number of the topic's change that made it what it is.
    pub sequence: u64,
    /// When it expires, in nanoseconds since 1970.
    pub expires_ns: Option<u64>,
    /// The key that its publisher has supplied; empty if they do not.
    pub name: String,
    /// Its last message.
    pub message: Vec<u8>,
}

/// Records by topic and the whole checksum of their key.
type Records = HashMap<(u32, u64, u64), DumpedRecord>;

impl Dump {
    /// Reads the archive in `storage`.
    ///
    /// # Errors
    ///
    /// If there is none, or the disk refuses. What is merely damaged is told in the dump.
    pub fn read<S: Storage + Clone>(storage: &S) -> Result<Self, SowStoreError> {
        let journal = Reader::open(storage.clone());
        let mut dump = Self::default();
        let mut records = Records::new();
        let loaded = dump.load(storage, &mut records);
        dump.note(loaded)?;
        match journal {
            Ok(journal) => {
                let replayed = dump.replay(&journal, &mut records);
                dump.note(replayed)?;
            }
            // A checkpoint alone is worth showing.
            Err(error) if dump.covered > 0 => dump.damage.push(error.into()),
            Err(error) => return Err(error.into()),
        }
        dump.records = records.into_values().collect();
        dump.records.sort_unstable_by_key(|record| (record.topic, record.sequence));
        Ok(dump)
    }

    /// The number of the topic with this name.
    pub fn number_of(topic: &str) -> u32 {
        KeyHasher::new(topic).identity().checksum as u32
    }

    fn note(&mut self, result: Result<(), SowStoreError>) -> Result<(), SowStoreError> {
        match result {
            Err(error @ SowStoreError::Storage(_)) => Err(error),
            Err(error) => {
                self.damage.push(error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn load<S: Storage>(
        &mut self,
        storage: &S,
        records: &mut Records,
    ) -> Result<(), SowStoreError> {
        let Some(mut blocks) = CheckpointReader::newest(storage)? else { return Ok(()) };
        self.covered = blocks.covered();
        while let Some(mut entries) = blocks.next()? {
            while !entries.is_empty() {
                match self.apply(entries, records) {
                    Some(rest) => entries = rest,
                    None => return Err(blocks.damaged()),
                }
            }
        }
        Ok(())
    }

    fn replay<S: Storage>(
        &mut self,
        journal: &Reader<S>,
        records: &mut Records,
    ) -> Result<(), SowStoreError> {
        self.last = self.covered;
        let mut cursor = journal.cursor(Start::Sequence(self.covered + 1))?;
        while let Some(record) = cursor.read()? {
            let mut rest = record.body;
            // Behind a change may stand the number that its publisher gave it.
            loop {
                rest = self.apply(rest, records).ok_or(SowStoreError::Foreign(record.sequence))?;
                if rest.is_empty() {
                    break;
                }
            }
            self.last = record.sequence;
        }
        Ok(())
    }

    /// Applies the first entry of `bytes`; gives the rest.
    fn apply<'a>(&mut self, bytes: &'a [u8], records: &mut Records) -> Option<&'a [u8]> {
        let (StateEntry { header, name, message }, rest) = StateEntry::split(bytes)?;
        let (topic, key) = (header.topic.get(), header.key.get());
        let place = (topic, key, header.proof.get());
        let name = str::from_utf8(name).ok()?.to_owned();
        match header.kind.get() {
            STATE_PUT => {
                let (sequence, expires) = (header.sequence.get(), header.expires_unix_ns.get());
                let expires_ns = Some(expires).filter(|expires| *expires != NEVER);
                let message = message.to_vec();
                let key = Key(key);
                let record = DumpedRecord { topic, key, sequence, expires_ns, name, message };
                records.insert(place, record);
            }
            STATE_DELETE | STATE_EXPIRE => {
                records.remove(&place);
            }
            STATE_TOPIC | STATE_DEFINE => {
                self.names.insert(topic, name);
            }
            STATE_FORGET => {
                self.names.remove(&topic);
                records.retain(|(of, ..), _| *of != topic);
            }
            _ => {}
        }
        Some(rest)
    }
}
