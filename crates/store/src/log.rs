//! The log of a store, in a journal.

use crate::catalog::{Catalog, RECORD_OVERHEAD};
use crate::checkpointer::Checkpointer;
use crate::error::DirectoryError;
use crate::index::{Place, StreamIndex};
use crate::reading::Reading;
use crate::record_heads::RecordHead;
use lanecast_journal::{
    AppendError, Cursor, Directory, Durability, Entry, Health, Journal, ReadError, RetentionPin,
    Start, Storage, StorageError,
};
use lanecast_persistence::{LogFull, StoreLog};
use lanecast_wire::store::LogRecord;
use std::cell::{Cell, RefCell};
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
/// Bytes of the journal that are read at once: they stay in the processor's cache until they are
/// taken, and reading ahead holds up live messages no longer.
const SLICE: usize = 16 << 10;
/// Bytes of the journal that are read for one answer: a request for a message far away holds up
/// live messages no longer. The next request goes on there.
const ANSWER_READ_MAX: usize = 1 << 20;
/// Readers of which it is remembered how far they have looked for their next message.
const PASSED_MAX: usize = 16_384;
/// Bytes of messages that are read ahead for a reader.
const AHEAD_MAX: usize = 128 << 10;
/// Bytes of the journal that are read for these, with messages of other streams: a request for one
/// message makes no more work than that.
const AHEAD_READ_MAX: usize = 4 * AHEAD_MAX;
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
    /// Room in the segments that are made which is left to the records by which retention gives
    /// messages up.
    reserve: u64,
    /// A quarter of it is kept before the journal has noticed a full disk. Not in segments that are
    /// so short that a burst of messages is longer: it would have to wait for each of them.
    is_always_reserved: bool,
    /// Room by the last look, less what was appended since.
    room: u64,
    /// There is nothing but the reserve.
    is_reserved: bool,
    /// Longest record, in bytes.
    longest: usize,
    /// Longest message that the store can give to readers.
    longest_read: usize,
    /// Records that were refused since they are longer.
    too_long: u64,
    /// There are records that the journal has not been told to write.
    is_held: bool,
    /// Head of the last record.
    head: Vec<u8>,
    /// Time of the next records, in nanoseconds since 1970.
    unix_ns: u64,
    readings: RefCell<Vec<Reading<S>>>,
    passed: RefCell<PassedPlaces>,
    read_error: RefCell<Option<ReadError>>,
    sought: RefCell<Sought>,
    /// A reader waits for a segment's index, which the journal makes anew.
    awaits_index: Cell<bool>,
}

/// Positions from which on the next message is to be looked for, by stream and sequence, with the
/// stream's generation. Unlike readings they cost no memory and hold no segments, so they stay:
/// however many readers there are, each comes to its message.
type PassedPlaces = BTreeMap<(u32, u64), (u64, u64)>;

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
            is_held: false,
            reserve: journal.segment_bytes() / 2,
            is_always_reserved: journal.max_pending_bytes() as u64 <= journal.segment_bytes() / 4,
            room: 0,
            is_reserved: false,
            longest: journal.longest_body(),
            longest_read: usize::MAX,
            too_long: 0,
            journal,
            // The clock may have been set back since the last record.
            unix_ns: catalog.unix_ns,
            catalog,
            head: Vec::new(),
            readings: RefCell::default(),
            passed: RefCell::default(),
            read_error: RefCell::default(),
            sought: RefCell::default(),
            awaits_index: Cell::new(false),
        }
    }

    /// Sets the present, the time of the next records; times never decrease in a journal.
    pub(crate) fn set_time(&mut self, unix_ns: u64) {
        self.unix_ns = self.unix_ns.max(unix_ns);
        self.journal.set_time(self.unix_ns);
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

    /// Bytes of the journal's records since it began.
    pub(crate) const fn journal_bytes(&self) -> u64 {
        self.catalog.journal_bytes
    }

    /// Waits until the next segment was made, or could not be.
    #[cfg(test)]
    pub(crate) fn wait_for_segment(&self) {
        let _ = self.journal.wait_preallocated();
    }

    /// Looks whether there is room for messages beside what retention needs. The journal notices a
    /// full disk when it makes the next segment, which it usually does before half of the one in
    /// use was written; until then less is kept back, so that messages need not wait for it.
    pub(crate) fn look_at_disk(&mut self) {
        self.room = self.journal.room();
        let is_certain = self.is_always_reserved;
        let unnoticed = if is_certain { self.reserve / 4 } else { 0 };
        let reserve = if self.journal.is_disk_full() { self.reserve } else { unnoticed };
        self.is_reserved = self.room < reserve;
        if is_certain && self.room < self.reserve / 2 {
            self.journal.hurry_preallocation();
        }
    }

    /// Whether a message of `bytes` bytes leaves the reserve.
    fn has_room(&mut self, bytes: u64) -> bool {
        if self.room < self.reserve + bytes {
            self.look_at_disk();
        }
        !self.is_reserved
    }

    /// Has the journal try again to make a segment on a full disk: without messages it never would.
    pub(crate) fn retry_space(&self) {
        if self.is_reserved {
            self.journal.retry_preallocation();
        }
    }

    /// Records that were refused since no segment has room for them.
    pub(crate) const fn too_long(&self) -> u64 {
        self.too_long
    }

    /// The log, which refuses messages of more bytes: no frame that the store could give to a
    /// reader has room for them.
    pub(crate) fn limited(self, longest_read: usize) -> Self {
        Self { longest_read, ..self }
    }

    /// Longest message that can be kept, in bytes.
    pub(crate) fn longest_message(&self) -> usize {
        self.longest.saturating_sub(LogRecord::MESSAGE_HEAD_MAX).min(self.longest_read)
    }

    /// Position of the last record.
    pub(crate) const fn appended(&self) -> u64 {
        self.appended
    }

    /// Has the journal write the records since the last call.
    pub(crate) fn commit(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.journal.flush();
        }
    }

    /// Position behind the oldest segment, if that is beyond the limits.
    pub(crate) fn retention_due(&self) -> Option<u64> {
        self.journal.retention_due()
    }

    /// No message is needed before position `cut` any more. Asks for checkpoints that do not need
    /// the records before it either; returns whether these wait for another record.
    pub(crate) fn release(&self, cut: u64) -> bool {
        self.pin.move_to(cut);
        self.journal.request_retention();
        let checkpointer = self.checkpointer.as_ref();
        checkpointer.is_some_and(|it| it.release(cut, self.appended))
    }

    /// Whether the disk is full: nothing is taken until there is space.
    pub(crate) fn is_disk_full(&self) -> bool {
        let is_reserved = self.is_reserved && self.journal.is_disk_full();
        is_reserved || self.journal.health() == Health::NoSpace
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
            it.stream == stream && it.next() == from && it.generation == generation
        };
        let at = readings.iter().position(is_it)?;
        Some(readings.remove(at))
    }

    /// Reading has failed; what may pass is asked for again.
    fn note(&self, error: ReadError) {
        if !error.may_pass() {
            *self.read_error.borrow_mut() = Some(error);
        }
    }

    fn remember(&self, mut reading: Reading<S>) {
        reading.ahead_left = AHEAD_READ_MAX;
        let mut readings = self.readings.borrow_mut();
        if readings.len() >= READINGS_MAX {
            readings.remove(0);
        }
        readings.push(reading);
    }

    /// A reader from message `from` on; `None` if it is not durable, or cannot be found yet.
    fn reading(&self, stream: u32, from: u64) -> Result<Option<Reading<S>>, ReadError> {
        let Some(index) = self.catalog.streams.get(stream as usize) else { return Ok(None) };
        let Some(mut place) = self.durable_place(index, from) else { return Ok(None) };
        let generation = index.generation();
        if let Some((of, position)) = self.passed.borrow().get(&(stream, from))
            && *of == generation
        {
            place.position = place.position.max(*position);
        }
        let cursor = self.cursor(place)?;
        Ok(cursor.map(|cursor| Reading::new((stream, generation), from, place, cursor)))
    }

    /// Remembers how far a reader has looked for its next message, and the reader.
    fn interrupt(&self, reading: Reading<S>) {
        // At the end of a span the next message may stand anywhere.
        if let Some(position) = reading.position().filter(|_| !reading.is_at_end()) {
            let mut passed = self.passed.borrow_mut();
            if passed.len() >= PASSED_MAX {
                passed.clear();
            }
            passed.insert((reading.stream, reading.next()), (reading.generation, position));
        }
        self.remember(reading);
    }

    fn durable_place(&self, index: &StreamIndex, sequence: u64) -> Option<Place> {
        index.place(sequence).filter(|place| place.position <= self.persisted())
    }

    /// A cursor at the place; `None` while the journal makes the index of its segment anew, or no
    /// descriptor is free.
    fn cursor(&self, place: Place) -> Result<Option<Cursor<S>>, ReadError> {
        let start = Start::Sequence(place.position);
        let cursor = match self.journal.try_cursor(start, Durability::Persisted) {
            Err(error) if error.may_pass() => None,
            found => found?,
        };
        self.awaits_index.set(cursor.is_none());
        Ok(cursor)
    }

    /// Reads up to `limit` bytes of the journal ahead, and no more than a record beyond; returns
    /// how many it has read, 0 at the end, or where the rest cannot be found yet.
    fn fill(&self, reading: &mut Reading<S>, limit: usize) -> Result<usize, ReadError> {
        let Some(index) = self.catalog.streams.get(reading.stream as usize) else { return Ok(0) };
        // What it has read is void.
        if reading.generation != index.generation() {
            return Ok(0);
        }
        reading.extend(index);
        let place = || self.durable_place(index, reading.unread());
        if reading.is_at_end() {
            let Some(place) = place() else { return Ok(0) };
            if !reading.go_on(place, || self.cursor(place))? {
                return Ok(0);
            }
        } else if reading.is_seeking()
            && let Some(place) = place().filter(|it| Some(it.position) > reading.position())
        {
            // The next message has a mark: what is in between need not be read.
            if !reading.go_on(place, || self.cursor(place))? {
                return Ok(0);
            }
        }
        reading.fill(limit)
    }

    /// Reads a slice of what a reader is going to ask for when it has got the last answer, so that
    /// the store works meanwhile; returns whether there was something to read.
    pub(crate) fn read_ahead(&self) -> bool {
        let mut readings = self.readings.borrow_mut();
        let Some(at) = readings.iter().rposition(|it| it.ahead_left > 0) else { return false };
        let reading = &mut readings[at];
        match self.fill(reading, SLICE) {
            Ok(read) => {
                let is_enough = read == 0 || reading.ahead_bytes() >= AHEAD_MAX;
                let left = reading.ahead_left.saturating_sub(read);
                reading.ahead_left = if is_enough { 0 } else { left };
                read > 0
            }
            // The reader's own request finds the same error, and tells of it.
            Err(_) => {
                readings.remove(at);
                false
            }
        }
    }

    /// Reads the messages `among` until one is of this time or later; returns where that one is, or
    /// the end of what could be read. `None` if a place cannot be found yet. Charges what it reads.
    fn seek(
        &self,
        stream: u32,
        among: Range<u64>,
        unix_ns: u64,
        bytes_left: &mut usize,
    ) -> Result<Option<(u64, bool)>, ReadError> {
        self.awaits_index.set(false);
        let Some(mut reading) = self.reading(stream, among.start)? else {
            return Ok((!self.awaits_index.get()).then_some((among.start, false)));
        };
        while reading.next() < among.end {
            match reading.first() {
                Some((time, _)) if time >= unix_ns => return Ok(Some((reading.next(), true))),
                Some(_) => reading.advance(),
                None => {
                    let read = self.fill(&mut reading, SLICE)?;
                    *bytes_left = bytes_left.saturating_sub(read);
                    if read == 0 {
                        break;
                    }
                }
            }
        }
        Ok((!self.awaits_index.get()).then_some((reading.next(), false)))
    }

    /// Reads as [`read`](StoreLog::read) does, however much has to be read for it.
    pub(crate) fn read_whole(
        &self,
        stream: u32,
        from: u64,
        visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool,
    ) {
        self.try_read(stream, from, usize::MAX, visit).unwrap_or_else(|it| self.note(it));
    }

    /// Stops behind `limit` bytes of the journal, and no more than a slice beyond.
    fn try_read(
        &self,
        stream: u32,
        from: u64,
        limit: usize,
        visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool,
    ) -> Result<(), ReadError> {
        let reading = match self.remembered(stream, from) {
            Some(reading) => Some(reading),
            None => self.reading(stream, from)?,
        };
        let Some(mut reading) = reading else { return Ok(()) };
        let (mut read, mut left) = (Ok(1), limit);
        loop {
            while let Some((unix_ns, body)) = reading.first() {
                if !visit(reading.next(), unix_ns, body) {
                    self.remember(reading);
                    return Ok(());
                }
                reading.advance();
            }
            // An error is told behind the messages before it.
            let bytes = read?;
            if bytes == 0 {
                return Ok(());
            }
            left = left.saturating_sub(bytes);
            if left == 0 {
                self.interrupt(reading);
                return Ok(());
            }
            read = self.fill(&mut reading, SLICE);
        }
    }
}

impl<S: Storage> StoreLog for JournalLog<S> {
    fn append(&mut self, record: &LogRecord<'_>) -> Result<u64, LogFull> {
        let body = record.write_head(&mut self.head);
        let length = self.head.len() + body.len();
        // Every message can be moved by retention, and copied: those records have longer heads.
        let is_message = matches!(
            record,
            LogRecord::Message { .. } | LogRecord::Copied { .. } | LogRecord::Moved { .. }
        );
        let longest = if is_message { self.longest_message() } else { self.longest };
        if (if is_message { body.len() } else { length }) > longest {
            self.too_long += 1;
            return Err(LogFull);
        }
        let is_new = is_message && !matches!(record, LogRecord::Moved { .. });
        let bytes = length as u64 + RECORD_OVERHEAD;
        if is_new && !self.has_room(bytes) {
            return Err(LogFull);
        }
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
        let appended = self.journal.append_held(&[entry]);
        let position = *appended.map_err(|_: AppendError| LogFull)?.end();
        (self.appended, self.room) = (position, self.room.saturating_sub(bytes));
        self.is_held = true;
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

    fn bytes_from(&self, stream: u32, from: u64) -> u64 {
        self.index(stream).map_or(0, |index| index.bytes_from(from))
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
            Ok(None) => None,
            Ok(Some((sequence, is_read))) => {
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
                self.note(error);
                None
            }
        }
    }

    fn read(&self, stream: u32, from: u64, visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool) {
        self.try_read(stream, from, ANSWER_READ_MAX, visit).unwrap_or_else(|it| self.note(it));
    }
}

#[cfg(test)]
mod tests;
