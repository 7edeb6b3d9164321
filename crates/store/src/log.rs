//! The log of a store, in a journal.

use crate::index::{Place, StreamIndex};
use lanecast_journal::{
    AppendError, Cursor, Directory, Durability, Entry, Journal, ReadError, Start, StorageError,
};
use lanecast_persistence::{LogFull, StoreLog};
use lanecast_wire::store::LogRecord;
use std::cell::RefCell;

/// Readers whose place is remembered: catching up continues without a search.
const READINGS_MAX: usize = 16;

/// The records of a store, and where the messages of its streams stand.
#[derive(Debug)]
pub(crate) struct JournalLog {
    journal: Journal<Directory>,
    indexes: Vec<StreamIndex>,
    record: Vec<u8>,
    /// Time of the next records, in nanoseconds since 1970.
    unix_ns: u64,
    readings: RefCell<Vec<Reading>>,
    read_error: RefCell<Option<ReadError>>,
}

/// A reader that may go on where it stopped.
#[derive(Debug)]
struct Reading {
    stream: u32,
    generation: u64,
    place: Place,
    cursor: Cursor<Directory>,
    /// The message that was read and not taken.
    ahead: (u64, Vec<u8>),
}

impl JournalLog {
    pub(crate) fn new(journal: Journal<Directory>) -> Self {
        Self {
            journal,
            indexes: Vec::new(),
            record: Vec::new(),
            unix_ns: 0,
            readings: RefCell::default(),
            read_error: RefCell::default(),
        }
    }

    /// Reads all records in their order, once, at the start.
    pub(crate) fn replay<E: From<ReadError>>(
        &mut self,
        mut visit: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cursor = self.journal.cursor(Start::Oldest, Durability::Persisted)?;
        while let Some(record) = cursor.read()? {
            visit(record.sequence, record.body)?;
            if let Some(read) = LogRecord::read(record.body) {
                note(&mut self.indexes, &read, record.sequence, record.body.len());
            }
        }
        Ok(())
    }

    /// Sets the time of the next records.
    pub(crate) const fn set_time(&mut self, unix_ns: u64) {
        self.unix_ns = unix_ns;
    }

    /// The error after which nothing is kept any more.
    pub(crate) fn failure(&self) -> Option<StorageError> {
        self.journal.failure()
    }

    /// The last error of reading, if there was one since the last call.
    pub(crate) fn take_read_error(&self) -> Option<ReadError> {
        self.read_error.borrow_mut().take()
    }

    /// Forgets the places of readers: an idle one would hold the segments behind it.
    pub(crate) fn forget_readings(&self) {
        self.readings.borrow_mut().clear();
    }

    /// Bytes that wait for the disk.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.journal.pending_bytes()
    }

    pub(crate) fn close(self) -> Result<(), StorageError> {
        self.readings.borrow_mut().clear();
        self.journal.close()
    }

    /// The reader that stopped in front of `from`, or a new one. The flag tells that its next
    /// message was read already.
    fn reading(&self, stream: u32, from: u64) -> Result<Option<(Reading, bool)>, ReadError> {
        let Some(index) = self.indexes.get(stream as usize) else { return Ok(None) };
        let generation = index.generation();
        let mut readings = self.readings.borrow_mut();
        let is_it =
            |it: &Reading| it.stream == stream && it.ahead.0 == from && it.generation == generation;
        if let Some(at) = readings.iter().position(is_it) {
            return Ok(Some((readings.swap_remove(at), true)));
        }
        let Some(place) = index.place(from) else { return Ok(None) };
        let cursor = self.journal.cursor(Start::Sequence(place.position), Durability::Persisted)?;
        let ahead = (from, Vec::new());
        Ok(Some((Reading { stream, generation, place, cursor, ahead }, false)))
    }

    fn try_read(
        &self,
        stream: u32,
        from: u64,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), ReadError> {
        let Some((mut reading, has_ahead)) = self.reading(stream, from)? else { return Ok(()) };
        let mut expected = from;
        if has_ahead {
            if !visit(reading.ahead.0, &reading.ahead.1) {
                self.readings.borrow_mut().push(reading);
                return Ok(());
            }
            expected += 1;
        }
        let index = &self.indexes[stream as usize];
        while let Some(record) = reading.cursor.read()? {
            if record.topic != stream {
                continue;
            }
            let Some(LogRecord::Message { sequence, body, .. }) = LogRecord::read(record.body)
            else {
                continue;
            };
            let is_valid = index.is_valid(&mut reading.place, sequence, record.sequence);
            if sequence < expected || !is_valid {
                continue;
            }
            if sequence != expected {
                break;
            }
            if !visit(sequence, body) {
                reading.ahead.0 = sequence;
                reading.ahead.1.clear();
                reading.ahead.1.extend_from_slice(body);
                let mut readings = self.readings.borrow_mut();
                if readings.len() >= READINGS_MAX {
                    readings.remove(0);
                }
                readings.push(reading);
                break;
            }
            expected += 1;
        }
        Ok(())
    }
}

/// Keeps where messages are.
fn note(indexes: &mut Vec<StreamIndex>, record: &LogRecord<'_>, position: u64, length: usize) {
    let stream = record.stream() as usize;
    if let LogRecord::Stream { .. } = record {
        indexes.resize_with(indexes.len().max(stream + 1), StreamIndex::default);
    }
    let Some(index) = indexes.get_mut(stream) else { return };
    match record {
        LogRecord::Message { sequence, .. } => index.on_message(*sequence, position, length),
        LogRecord::Truncated { next, .. } => index.on_truncated(*next),
        LogRecord::Trimmed { first, .. } => index.on_trimmed(*first),
        _ => {}
    }
}

impl StoreLog for JournalLog {
    fn append(&mut self, record: &LogRecord<'_>) -> Result<u64, LogFull> {
        record.write(&mut self.record);
        let client_sequence = match record {
            LogRecord::Message { sequence, .. } => *sequence,
            _ => 0,
        };
        let entry = Entry {
            topic: record.stream(),
            client_sequence,
            unix_ns: self.unix_ns,
            body: &self.record,
            ..Entry::default()
        };
        let appended = self.journal.append(&[entry]);
        let position = *appended.map_err(|_: AppendError| LogFull)?.end();
        note(&mut self.indexes, record, position, self.record.len());
        Ok(position)
    }

    fn persisted(&self) -> u64 {
        self.journal.last_sequence(Durability::Persisted)
    }

    fn read(&self, stream: u32, from: u64, visit: &mut dyn FnMut(u64, &[u8]) -> bool) {
        if let Err(error) = self.try_read(stream, from, visit) {
            *self.read_error.borrow_mut() = Some(error);
        }
    }
}
