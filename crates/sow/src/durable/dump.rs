//! Dump of a store for tools: needs neither the writer nor the topics' definitions.

use super::error::SowStoreError;
use super::recovery::CheckpointReader;
use crate::key::{Key, KeyHasher};
use crate::record::NEVER;
use lanecast_journal::{Reader, Start, Storage};
use lanecast_wire::state::{
    STATE_DEFINE, STATE_DELETE, STATE_EXPIRE, STATE_FORGET, STATE_PUT, STATE_TOPIC, StateEntry,
};
use std::collections::{BTreeMap, HashMap};

/// Records of a store, as far as they can be read.
///
/// Locks and changes nothing: a writer may be alive, and files may be damaged.
#[derive(Debug, Default)]
pub struct Dump {
    /// Records, by topic and sequence.
    pub records: Vec<DumpedRecord>,
    /// Names of topics by number, as far as entries tell them.
    pub names: BTreeMap<u32, String>,
    /// Last journal sequence covered by a checkpoint.
    pub covered: u64,
    /// Last journal sequence read; 0 if none.
    pub last: u64,
    /// Unreadable parts. If there are none, the dump is complete.
    pub damage: Vec<SowStoreError>,
}

/// A dumped record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedRecord {
    /// Number of the topic.
    pub topic: u32,
    /// Checksum of its key values; its key in the topic, unless that was taken.
    pub key: Key,
    /// Sequence of the change that made this version.
    pub sequence: u64,
    /// Expiry time, in nanoseconds since 1970.
    pub expires_ns: Option<u64>,
    /// Key supplied by the publisher; empty in topics with key fields.
    pub name: String,
    /// Payload.
    pub message: Vec<u8>,
}

/// Records by topic and identity.
type Records = HashMap<(u32, u64, u64), DumpedRecord>;

impl Dump {
    /// Reads the store in `storage`.
    ///
    /// # Errors
    /// If there is none, or the disk refuses. Damage is reported in the dump.
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
            // A checkpoint without a journal is still worth showing.
            Err(error) if dump.covered > 0 => dump.damage.push(error.into()),
            Err(error) => return Err(error.into()),
        }
        dump.records = records.into_values().collect();
        dump.records.sort_unstable_by_key(|record| (record.topic, record.sequence));
        Ok(dump)
    }

    /// Number of the topic with this name.
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
            // A record may hold several entries: a change, then the publisher's sequence.
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

    /// Applies the first entry of `bytes`; returns the rest.
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
