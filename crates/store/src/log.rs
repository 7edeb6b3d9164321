//! The log of a store, in a journal.

use crate::catalog::{Catalog, first_time};
use crate::checkpointer::Checkpointer;
use crate::error::DirectoryError;
use crate::index::{Place, StreamIndex};
use crate::record_heads::RecordHead;
use lanecast_journal::{
    AppendError, Cursor, Directory, Durability, Entry, Health, Journal, ReadError, Record,
    RetentionPin, Start, Storage, StorageError,
};
use lanecast_persistence::{LogFull, StoreLog};
use lanecast_wire::store::LogRecord;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the journal that are read to look up times between two calls of
/// [`JournalLog::set_time`]; the last look-up may read up to a stride beyond.
const SOUGHT_BYTES: usize = 16 << 20;
/// Answers that are remembered, since receivers ask again: those of all streams of a topic have to
/// be there at once.
const SOUGHT_MAX: usize = 16_384;
/// Readers whose place is remembered: catching up continues without a search.
const READINGS_MAX: usize = 16;
/// Longest wait for the disk at the end.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// The records of a store, and where the messages of its streams stand.
#[derive(Debug)]
pub(crate) struct JournalLog<S: Storage = Directory> {
    // Dropped before the journal, whose lock keeps other processes out.
    checkpointer: Option<Checkpointer>,
    // Before its pins: until it has ended, it removes segments that are not pinned.
    journal: Journal<S>,
    /// Keeps the segments that messages are in.
    pin: RetentionPin,
    /// The checkpointer's pin.
    checkpoint_pin: Option<Arc<RetentionPin>>,
    catalog: Catalog,
    /// Position of the last record.
    appended: u64,
    /// Head of the last record.
    head: Vec<u8>,
    /// Time of the next records, in nanoseconds since 1970.
    unix_ns: u64,
    readings: RefCell<Vec<Reading<S>>>,
    read_error: RefCell<Option<ReadError>>,
    sought: RefCell<Sought>,
}

/// Answers by stream and time, and the bytes that may be read for others by now.
#[derive(Debug, Default)]
struct Sought {
    answers: BTreeMap<(u32, u64), Answer>,
    bytes_left: usize,
}

/// Result of a look-up.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// All messages before it are older than the time.
    sequence: u64,
    /// The message there is not older; otherwise it is the end of the stream, or was.
    is_found: bool,
    /// The stream's generation, after which the answer is another one.
    generation: u64,
}

/// A reader that may go on where it stopped.
#[derive(Debug)]
struct Reading<S: Storage> {
    stream: u32,
    generation: u64,
    place: Place,
    cursor: Cursor<S>,
    /// The message that was read and not taken, and whether there is one.
    ahead: MessageAhead,
    has_ahead: bool,
}

#[derive(Debug)]
struct MessageAhead {
    sequence: u64,
    unix_ns: u64,
    body: Vec<u8>,
}

/// A message in the journal.
#[derive(Clone, Copy, Debug)]
struct StoredMessage<'a> {
    sequence: u64,
    unix_ns: u64,
    is_moved: bool,
    body: &'a [u8],
}

impl<'a> StoredMessage<'a> {
    /// The message of a record of `stream`, if it is one.
    fn of(record: &Record<'a>, stream: u32) -> Option<Self> {
        if record.topic != stream {
            return None;
        }
        match LogRecord::read(record.body)? {
            LogRecord::Message { sequence, body, .. } => {
                Some(Self { sequence, unix_ns: record.unix_ns, is_moved: false, body })
            }
            LogRecord::Copied { sequence, unix_ns, body, .. } => {
                let unix_ns = first_time(unix_ns, record.unix_ns);
                Some(Self { sequence, unix_ns, is_moved: false, body })
            }
            LogRecord::Moved { sequence, unix_ns, body, .. } => {
                let unix_ns = first_time(unix_ns, record.unix_ns);
                Some(Self { sequence, unix_ns, is_moved: true, body })
            }
            _ => None,
        }
    }
}

impl<S: Storage> JournalLog<S> {
    /// The log in `journal`, whose records `catalog` knows already.
    pub(crate) fn new(
        journal: Journal<S>,
        catalog: Catalog,
        checkpointer: Option<Checkpointer>,
    ) -> Self {
        Self {
            checkpoint_pin: checkpointer.as_ref().map(Checkpointer::pin),
            checkpointer,
            // Until retention has found out which messages are in the first ones.
            pin: journal.pin(1),
            appended: journal.recovered().last,
            journal,
            catalog,
            head: Vec::new(),
            unix_ns: 0,
            readings: RefCell::default(),
            read_error: RefCell::default(),
            sought: RefCell::default(),
        }
    }

    /// Sets the time of the next records; times never decrease in a journal.
    pub(crate) fn set_time(&mut self, unix_ns: u64) {
        self.unix_ns = self.unix_ns.max(unix_ns);
        self.sought.get_mut().bytes_left = SOUGHT_BYTES;
    }

    /// The error after which nothing is kept any more.
    pub(crate) fn failure(&self) -> Option<StorageError> {
        self.journal.failure()
    }

    /// The last error of reading, if there was one since the last call.
    pub(crate) fn take_read_error(&self) -> Option<ReadError> {
        self.read_error.borrow_mut().take()
    }

    /// The error after which durable records cannot be read back.
    pub(crate) fn take_checkpoint_error(&self) -> Option<DirectoryError> {
        self.checkpointer.as_ref()?.take_error()
    }

    /// Checkpoints since the start.
    pub(crate) fn checkpoints(&self) -> u64 {
        self.checkpointer.as_ref().map_or(0, Checkpointer::written)
    }

    /// Records that are read back for checkpoints, because their heads found no room.
    pub(crate) fn read_back(&self) -> u64 {
        self.checkpointer.as_ref().map_or(0, Checkpointer::left_out)
    }

    /// Reason why the last checkpoint could not be written.
    pub(crate) fn checkpoint_failure(&self) -> Option<String> {
        self.checkpointer.as_ref()?.failure()
    }

    /// Index of a stream.
    pub(crate) fn index(&self, stream: u32) -> Option<&StreamIndex> {
        self.catalog.streams.get(stream as usize)
    }

    /// Position of the last record.
    pub(crate) const fn appended(&self) -> u64 {
        self.appended
    }

    /// Position behind the oldest segment, if that is beyond the limits.
    pub(crate) fn retention_due(&self) -> Option<u64> {
        self.journal.retention_due()
    }

    /// No message is needed before position `cut` any more.
    pub(crate) fn release(&self, cut: u64) {
        self.pin.move_to(cut);
        self.journal.request_retention();
    }

    /// Whether the disk is full: nothing is taken until there is space.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.journal.health() == Health::NoSpace
    }

    /// Forgets the places of readers: an idle one would hold the segments behind it.
    pub(crate) fn forget_readings(&self) {
        self.readings.borrow_mut().clear();
    }

    /// Bytes that wait for the disk.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.journal.pending_bytes()
    }

    /// Writes what was accepted and a checkpoint, and closes the journal.
    pub(crate) fn close(self) -> Result<(), StorageError> {
        self.readings.borrow_mut().clear();
        // The checkpoint covers what is durable by then; `close` reports errors.
        if self.journal.health() == Health::Good {
            let _ = self.journal.wait(self.appended, Durability::Persisted, CLOSE_WAIT);
        }
        let Self { checkpointer, journal, pin, checkpoint_pin, .. } = self;
        if let Some(checkpointer) = checkpointer {
            checkpointer.finish();
        }
        let outcome = journal.close();
        drop((pin, checkpoint_pin));
        outcome
    }

    /// The reader that stopped in front of `from`. Its next message was read already.
    fn remembered(&self, stream: u32, from: u64) -> Option<Reading<S>> {
        let generation = self.catalog.streams.get(stream as usize)?.generation();
        let mut readings = self.readings.borrow_mut();
        let is_it = |it: &Reading<S>| {
            it.stream == stream && it.ahead.sequence == from && it.generation == generation
        };
        let at = readings.iter().position(is_it)?;
        Some(readings.swap_remove(at))
    }

    /// A reader from message `from` on, which takes over the `cursor` of one that is behind it.
    fn reading(
        &self,
        stream: u32,
        from: u64,
        cursor: Option<Cursor<S>>,
    ) -> Result<Option<Reading<S>>, ReadError> {
        let Some(index) = self.catalog.streams.get(stream as usize) else { return Ok(None) };
        let Some(place) = index.place(from) else { return Ok(None) };
        if place.position > self.persisted() {
            return Ok(None);
        }
        // Spans often follow each other at once.
        let follows = |it: &Cursor<S>| it.position().is_some_and(|next| next == place.position);
        let cursor = match cursor.filter(follows) {
            Some(cursor) => cursor,
            None => self.journal.cursor(Start::Sequence(place.position), Durability::Persisted)?,
        };
        let generation = index.generation();
        let ahead = MessageAhead { sequence: from, unix_ns: 0, body: Vec::new() };
        Ok(Some(Reading { stream, generation, place, cursor, ahead, has_ahead: false }))
    }

    /// Reads the messages `among` until one is of this time or later; returns where that one is, or
    /// the end of what could be read. Charges what it reads.
    fn seek(
        &self,
        stream: u32,
        among: Range<u64>,
        unix_ns: u64,
        bytes_left: &mut usize,
    ) -> Result<(u64, bool), ReadError> {
        let mut sequence = among.start;
        let mut next = self.reading(stream, sequence, None)?;
        while let Some(Reading { place, mut cursor, .. }) = next {
            while sequence < place.end.min(among.end) {
                let Some(record) = cursor.read()? else { return Ok((sequence, false)) };
                *bytes_left = bytes_left.saturating_sub(record.body.len());
                let message = StoredMessage::of(&record, stream);
                if let Some(message) = message.filter(|it| it.sequence == sequence) {
                    if message.unix_ns >= unix_ns {
                        return Ok((sequence, true));
                    }
                    sequence += 1;
                }
            }
            if sequence >= among.end {
                break;
            }
            next = self.reading(stream, sequence, Some(cursor))?;
        }
        Ok((sequence, false))
    }

    fn remember(&self, reading: Reading<S>) {
        let mut readings = self.readings.borrow_mut();
        if readings.len() >= READINGS_MAX {
            readings.remove(0);
        }
        readings.push(reading);
    }

    fn try_read(
        &self,
        stream: u32,
        from: u64,
        visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool,
    ) -> Result<(), ReadError> {
        let mut expected = from;
        let mut next = match self.remembered(stream, from) {
            Some(mut reading) => {
                let MessageAhead { sequence, unix_ns, body } = &reading.ahead;
                if !visit(*sequence, *unix_ns, body) {
                    self.remember(reading);
                    return Ok(());
                }
                expected += 1;
                reading.has_ahead = false;
                Some(reading)
            }
            None => self.reading(stream, from, None)?,
        };
        while let Some(mut reading) = next {
            // The span that is written to has grown since.
            if let Some(index) = self.catalog.streams.get(stream as usize)
                && let Some(place) = index.place(expected)
                && place.is_moved == reading.place.is_moved
                && place.position <= reading.cursor.position().unwrap_or(0)
            {
                reading.place.end = place.end;
            }
            if !self.read_span(&mut reading, &mut expected, visit)? {
                if reading.has_ahead {
                    self.remember(reading);
                }
                return Ok(());
            }
            next = self.reading(stream, expected, Some(reading.cursor))?;
        }
        Ok(())
    }

    /// Reads the rest of a span; returns whether the reader takes more.
    fn read_span(
        &self,
        reading: &mut Reading<S>,
        expected: &mut u64,
        visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool,
    ) -> Result<bool, ReadError> {
        let Reading { stream, place, cursor, ahead, has_ahead, .. } = reading;
        while *expected < place.end {
            let Some(record) = cursor.read()? else { return Ok(false) };
            let is_next =
                |it: &StoredMessage<'_>| it.is_moved == place.is_moved && it.sequence == *expected;
            let Some(message) = StoredMessage::of(&record, *stream).filter(is_next) else {
                continue;
            };
            let StoredMessage { sequence, unix_ns, body, .. } = message;
            if !visit(sequence, unix_ns, body) {
                (ahead.sequence, ahead.unix_ns) = (sequence, unix_ns);
                ahead.body.clear();
                ahead.body.extend_from_slice(body);
                *has_ahead = true;
                return Ok(false);
            }
            *expected += 1;
        }
        Ok(true)
    }
}

impl<S: Storage> StoreLog for JournalLog<S> {
    fn append(&mut self, record: &LogRecord<'_>) -> Result<u64, LogFull> {
        let body = record.write_head(&mut self.head);
        let length = self.head.len() + body.len();
        let client_sequence = match record {
            LogRecord::Message { sequence, .. } | LogRecord::Copied { sequence, .. } => *sequence,
            _ => 0,
        };
        let entry = Entry {
            topic: record.stream(),
            client_sequence,
            unix_ns: self.unix_ns,
            head: &self.head,
            body,
            ..Entry::default()
        };
        let appended = self.journal.append(&[entry]);
        let position = *appended.map_err(|_: AppendError| LogFull)?.end();
        self.appended = position;
        self.catalog.note(record, position, length, self.unix_ns);
        if let Some(checkpointer) = &self.checkpointer {
            let (unix_ns, bytes) = (self.unix_ns, self.head.as_slice());
            checkpointer.add(RecordHead { position, unix_ns, length, bytes });
        }
        Ok(position)
    }

    fn persisted(&self) -> u64 {
        self.journal.last_sequence(Durability::Persisted)
    }

    fn unix_ns(&self) -> u64 {
        self.unix_ns
    }

    fn first_since(&self, stream: u32, unix_ns: u64) -> Option<u64> {
        let Some(index) = self.catalog.streams.get(stream as usize) else { return Some(0) };
        let generation = index.generation();
        let Sought { answers, bytes_left } = &mut *self.sought.borrow_mut();
        let answer = answers.get(&(stream, unix_ns)).copied();
        let answer = answer.filter(|answer| answer.generation == generation);
        let mut among = index.first_since(unix_ns);
        match answer {
            Some(Answer { sequence, is_found: true, .. }) => return Some(sequence),
            // Without a later message there was none: those since then are to be looked at.
            Some(Answer { sequence, .. }) => among.start = among.start.max(sequence),
            None => {}
        }
        // Nothing to be read, and so nothing to be remembered.
        if among.is_empty() {
            return Some(among.start);
        }
        if *bytes_left == 0 {
            return None;
        }
        match self.seek(stream, among.clone(), unix_ns, bytes_left) {
            Ok((sequence, is_read)) => {
                if answers.len() >= SOUGHT_MAX {
                    answers.retain(|(_, of), _| *of == unix_ns);
                }
                if answers.len() >= SOUGHT_MAX {
                    answers.clear();
                }
                // Behind them is a message that is not older, or the end of the stream.
                let is_next = sequence == among.end && index.place(sequence).is_some();
                let is_found = is_read || is_next;
                answers.insert((stream, unix_ns), Answer { sequence, is_found, generation });
                Some(sequence)
            }
            Err(error) => {
                *self.read_error.borrow_mut() = Some(error);
                None
            }
        }
    }

    fn read(&self, stream: u32, from: u64, visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool) {
        if let Err(error) = self.try_read(stream, from, visit) {
            *self.read_error.borrow_mut() = Some(error);
        }
    }
}
