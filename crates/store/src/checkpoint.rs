//! Checkpoints: files beside the journal with the state that its records up to a position say, so
//! that a store which starts again reads only the records behind it.
//!
//! A [`Replica`] is made of durable records alone. The server's thread has one made at the start
//! and goes on with its parts; a copy stays with the `checkpointer`, which follows the server on a
//! thread of its own by the heads of the records that have become durable, and writes it from time
//! to time. So nothing that was not durable can be in a checkpoint. Only the last record of each
//! checkpoint is read back, for the checksum that identifies the journal up to it.

use crate::catalog::Catalog;
use crate::error::{DirectoryError, RecordError};
use crate::record_heads::RecordHead;
use lanecast_journal::{
    Cursor, OpenMode, ReadError, Record, Start, Storage, StorageResult, StoredFile,
};
use lanecast_persistence::{Store, StoreSettings};
use lanecast_wire::checksum::crc32c;
use lanecast_wire::store::{
    CHECKPOINT_MAGIC, CHECKPOINT_VERSION, CHECKPOINT_VERSION_READ, CheckpointHeader, LogRecord,
    StreamCheckpoint, StreamPositions,
};
use zerocopy::{FromBytes, IntoBytes};

/// Checkpoints that are kept: an older one is used if the last one is damaged.
const KEPT: usize = 2;
const HEADER_BYTES: usize = size_of::<CheckpointHeader>();
/// Reason to refuse a checkpoint.
const DAMAGED: &str = "it is damaged";
const ENDING: &str = ".checkpoint";
const UNFINISHED: &str = "checkpoint.new";

/// Sources of a store's state when it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreRecovery {
    /// Position of the checkpoint that was used, in the journal; `None` if all records were read.
    pub checkpoint: Option<u64>,
    /// Records that were read.
    pub records: u64,
    /// Checkpoints that could not be used, with the reasons.
    pub refused: Vec<String>,
    /// The journal lacks records that were durable: a checkpoint of the same data tells of them. So
    /// the store has another identity from now on, copies what is missing, and becomes a member of
    /// its streams again.
    pub has_lost_records: bool,
}

/// The store whose state a journal says.
#[derive(Clone, Debug)]
pub(crate) struct StoreIdentity {
    pub(crate) settings: StoreSettings,
    pub(crate) incarnation: u64,
    /// Checkpoints of an earlier incarnation count, too: this one was drawn for its records.
    pub(crate) has_older_checkpoints: bool,
    /// Length of the journal's segments.
    pub(crate) segment_bytes: u64,
}

/// State of a store as the durable records of its journal up to a position say.
#[derive(Clone, Debug)]
pub(crate) struct Replica {
    pub(crate) machine: Store,
    pub(crate) catalog: Catalog,
    incarnation: u64,
    /// The last record, and the checksum that identifies the journal up to it.
    position: u64,
    checksum: u32,
}

impl Replica {
    /// An empty replica.
    pub(crate) fn new(identity: &StoreIdentity) -> Self {
        let StoreIdentity { settings, incarnation, segment_bytes, .. } = identity;
        let machine = Store::new(settings.clone(), *incarnation);
        let (catalog, incarnation) = (Catalog::new(*segment_bytes), *incarnation);
        Self { machine, catalog, incarnation, position: 0, checksum: 0 }
    }

    /// The last record.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Reads the records up to the end; returns their count.
    pub(crate) fn advance<S: Storage>(
        &mut self,
        cursor: &mut Cursor<S>,
    ) -> Result<u64, DirectoryError> {
        let mut count = 0;
        while let Some(record) = cursor.read()? {
            self.follow(RecordHead::of(&record))?;
            self.checksum = record.checksum;
            count += 1;
        }
        Ok(count)
    }

    /// Takes over the next record, which is durable.
    pub(crate) fn follow(&mut self, head: RecordHead<'_>) -> Result<(), DirectoryError> {
        let RecordHead { position, unix_ns, length, bytes } = head;
        let refused = |error| DirectoryError::Record { position, error };
        let read = LogRecord::read(bytes).ok_or(refused(RecordError::Unknown))?;
        self.machine.replay(&read).map_err(|error| refused(error.into()))?;
        self.catalog.note(&read, position, length, unix_ns);
        self.position = position;
        Ok(())
    }

    /// Reads the last record back, and takes its checksum.
    pub(crate) fn read_back<S: Storage>(
        &mut self,
        cursor: &mut Cursor<S>,
    ) -> Result<(), DirectoryError> {
        let position = self.position;
        cursor.move_to(Start::Sequence(position))?;
        let found = cursor.read()?.filter(|record| record.sequence == position);
        let missing = DirectoryError::Record { position, error: RecordError::Missing };
        self.checksum = found.ok_or(missing)?.checksum;
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let (mut streams, mut indexes) = (0_u32, self.catalog.streams.iter());
        for stream in self.machine.checkpoint() {
            stream.write(&mut bytes);
            indexes
                .next()
                .map_or(&StreamPositions::default(), |it| it.positions())
                .write(&mut bytes);
            streams += 1;
        }
        let body = &bytes[HEADER_BYTES..];
        let mut header = CheckpointHeader {
            magic: CHECKPOINT_MAGIC,
            version: CHECKPOINT_VERSION.into(),
            streams: streams.into(),
            incarnation: self.incarnation.into(),
            position: self.position.into(),
            record_crc: self.checksum.into(),
            reserved: 0.into(),
            journal_bytes: self.catalog.journal_bytes.into(),
            length: (body.len() as u64).into(),
            body_crc: crc32c(body).into(),
            crc: 0.into(),
        };
        header.crc = crc32c(header.covered()).into();
        bytes[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        bytes
    }

    /// Reads a checkpoint, which may hold any bytes.
    pub(crate) fn decode(bytes: &[u8], identity: &StoreIdentity) -> Result<Self, &'static str> {
        let (header, body) = read_header(bytes, bytes.len() as u64)?;
        if header.body_crc.get() != crc32c(body) {
            return Err(DAMAGED);
        }
        let is_ours = header.incarnation.get() == identity.incarnation;
        if !is_ours && !identity.has_older_checkpoints {
            return Err("it is of other data");
        }
        let mut replica = Self::new(identity);
        let mut rest = body;
        for _ in 0..header.streams.get() {
            let (stream, behind) =
                StreamCheckpoint::read(rest, header.version.get()).ok_or("a stream is damaged")?;
            let (positions, behind) = StreamPositions::read(behind).ok_or("an index is damaged")?;
            replica.machine.restore(stream).map_err(|_| "a stream is there twice")?;
            replica.catalog.streams.push(crate::index::StreamIndex::new(positions));
            rest = behind;
        }
        if !rest.is_empty() {
            return Err("it is longer than its streams");
        }
        replica.catalog.journal_bytes = header.journal_bytes.get();
        (replica.position, replica.checksum) = (header.position.get(), header.record_crc.get());
        Ok(replica)
    }
}

/// The checkpoints of a journal, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints(Vec<u64>);

impl Checkpoints {
    /// Records from this one on are needed by the checkpoints that are kept; 1 until there are
    /// enough of them.
    pub(crate) fn needed(&self) -> u64 {
        if self.0.len() < KEPT { 1 } else { self.0[0] }
    }

    /// Writes one of `replica`, durably and atomically, and removes those that are not kept.
    pub(crate) fn write<S: Storage>(
        &mut self,
        storage: &S,
        replica: &Replica,
    ) -> StorageResult<()> {
        let file = storage.create(UNFINISHED)?;
        file.write_all_at(&replica.encode(), 0)?;
        file.sync_data()?;
        // It appears under its name when it is complete.
        storage.rename(UNFINISHED, &name(replica.position))?;
        storage.sync_directory()?;
        self.0.retain(|position| *position != replica.position);
        self.0.push(replica.position);
        let superfluous = self.0.len().saturating_sub(KEPT);
        self.0.drain(..superfluous);
        for found in storage.list()? {
            if position_of(&found).is_some_and(|position| !self.0.contains(&position)) {
                storage.remove(&found)?;
            }
        }
        Ok(())
    }

    /// The state that the journal says: that of the latest checkpoint that can be used, and the
    /// records behind it; all records without one. The cursor stands behind the last record.
    pub(crate) fn recover<S: Storage>(
        storage: &S,
        identity: &StoreIdentity,
        open: impl Fn(Start) -> Result<Cursor<S>, ReadError>,
    ) -> Result<Recovered<S>, DirectoryError> {
        let mut recovery = StoreRecovery::default();
        let mut positions: Vec<u64> = storage
            .list()
            .map_err(ReadError::from)?
            .iter()
            .filter_map(|it| position_of(it))
            .collect();
        positions.sort_unstable();
        let mut usable = None;
        while let Some(position) = positions.pop() {
            match load(storage, position, identity, &open) {
                Ok(found) => {
                    usable = Some(found);
                    recovery.checkpoint = Some(position);
                    positions.push(position);
                    break;
                }
                Err(Refusal { reason, proves_loss }) => {
                    recovery.refused.push(format!("{}: {reason}", storage.path(&name(position))));
                    recovery.has_lost_records |= proves_loss;
                }
            }
        }
        let (mut replica, mut cursor) = match usable {
            Some(found) => found,
            None => (Replica::new(identity), open(Start::Oldest)?),
        };
        recovery.records = match replica.advance(&mut cursor) {
            // Without a checkpoint the records that retention has left say nothing.
            Err(DirectoryError::Record { position, .. })
                if replica.position == 0 && position > 1 =>
            {
                return Err(DirectoryError::Checkpoint(recovery.refused.join("; ")));
            }
            counted => counted?,
        };
        let superfluous = positions.len().saturating_sub(KEPT);
        positions.drain(..superfluous);
        Ok(Recovered { replica, cursor, checkpoints: Self(positions), recovery })
    }
}

/// A store's state as it was found.
#[derive(Debug)]
pub(crate) struct Recovered<S: Storage> {
    pub(crate) replica: Replica,
    /// Behind the last record.
    pub(crate) cursor: Cursor<S>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) recovery: StoreRecovery,
}

/// The header at the front of `bytes`, of a checkpoint that is `length` bytes long; and the rest.
fn read_header(bytes: &[u8], length: u64) -> Result<(CheckpointHeader, &[u8]), &'static str> {
    let (header, rest) =
        CheckpointHeader::read_from_prefix(bytes).map_err(|_| "it is too short")?;
    if header.magic != CHECKPOINT_MAGIC {
        return Err("it is none");
    }
    if !(CHECKPOINT_VERSION_READ..=CHECKPOINT_VERSION).contains(&header.version.get()) {
        return Err("it is of another version");
    }
    let is_whole = header.crc.get() == crc32c(header.covered())
        && length.checked_sub(HEADER_BYTES as u64) == Some(header.length.get());
    if is_whole { Ok((header, rest)) } else { Err(DAMAGED) }
}

/// Reason why a checkpoint cannot be used.
#[derive(Debug)]
struct Refusal {
    reason: String,
    /// The checkpoint is whole and of this data, and the journal lacks what it covers.
    proves_loss: bool,
}

impl<E: ToString> From<E> for Refusal {
    fn from(reason: E) -> Self {
        Self { reason: reason.to_string(), proves_loss: false }
    }
}

/// Reads a checkpoint and the record at its position, which has to be the one that it names.
fn load<S: Storage>(
    storage: &S,
    position: u64,
    identity: &StoreIdentity,
    open: &impl Fn(Start) -> Result<Cursor<S>, ReadError>,
) -> Result<(Replica, Cursor<S>), Refusal> {
    let file = storage.open(&name(position), OpenMode::Read)?;
    let length = file.length()?;
    let mut bytes = vec![0; HEADER_BYTES];
    let filled = file.fill_at(&mut bytes, 0)?;
    // Before memory is taken for the rest: the header names its length.
    let (header, _) = read_header(&bytes[..filled], length)?;
    bytes.resize(usize::try_from(length)?, 0);
    let filled = file.fill_at(&mut bytes, 0)?;
    let mut replica = Replica::decode(&bytes[..filled], identity)?;
    if replica.position != position {
        return Err("its name is that of another".into());
    }
    // Only durable records are covered, so all of them were.
    let proves_loss = header.incarnation.get() == identity.incarnation;
    let lost = |reason: &str| Refusal { reason: reason.into(), proves_loss };
    let mut cursor = match open(Start::Sequence(position)) {
        Err(ReadError::Ahead { .. }) => return Err(lost("the journal ends before it")),
        opened => opened?,
    };
    let found = cursor.read()?;
    let is_it = |it: &Record<'_>| it.sequence == position && it.checksum == replica.checksum;
    let record = found.filter(is_it).ok_or_else(|| lost("the journal has another history"))?;
    replica.catalog.unix_ns = record.unix_ns;
    Ok((replica, cursor))
}

fn name(position: u64) -> String {
    format!("{position:016x}{ENDING}")
}

fn position_of(found: &str) -> Option<u64> {
    let position = u64::from_str_radix(found.strip_suffix(ENDING)?, 16).ok()?;
    (found == name(position)).then_some(position)
}

#[cfg(test)]
mod tests;
