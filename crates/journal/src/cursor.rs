//! Reading from some record on, to the end and behind it as it moves.

mod seek;

use self::seek::{Place, first_of};
use crate::append_queue::{AppendQueue, Durability};
use crate::catalog::Catalog;
use crate::deadline;
use crate::error::{OpenError, ReadError};
use crate::file_name;
use crate::pin::{RetentionPin, RetentionPins};
use crate::read_buffer::ReadBuffer;
use crate::record::Record;
use crate::recovery::corruption;
use crate::scanner::{RecordScanner, Step};
use crate::segment::{Segment, segment_numbers};
use crate::sequence_check::SequenceCheck;
use crate::storage::{OpenMode, Storage, StorageErrorKind};
use crate::tail::{Tail, is_blank};
use lanecast_wire::journal::{RECORDS_OFFSET, RecordHeader};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Between two looks of a cursor that nobody wakes.
const LOOK: Duration = Duration::from_millis(1);

/// Where a cursor starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the oldest record that is kept.
    Oldest,
    /// At the record with this sequence, which may be the next one to come.
    Sequence(u64),
    /// At the first record of this time or later, in nanoseconds since 1970.
    Time(u64),
    /// Behind the last record.
    End,
}

/// What cursors read from.
#[derive(Debug)]
pub(crate) struct Source<S> {
    pub(crate) storage: S,
    pub(crate) catalog: Mutex<Catalog>,
}

/// How far a cursor may read.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) append_queue: Arc<AppendQueue>,
    pub(crate) durability: Durability,
}

/// A reader's place in a journal.
///
/// It reads in large pieces and checks every record. What it has not read yet is not removed,
/// if the journal was opened for writing by this process.
#[derive(Debug)]
pub struct Cursor<S: Storage> {
    source: Arc<Source<S>>,
    segment: Segment<S::File>,
    scanner: RecordScanner,
    read_buffer: ReadBuffer,
    limit: Option<Limit>,
    /// The last sequence that may be read, as far as this cursor has heard.
    readable: u64,
    /// The segment is complete, and the next one was not there yet.
    is_sealed: bool,
    /// The end at which the rest was last found to be none of its business.
    torn_at: Option<u64>,
    pin: Option<RetentionPin>,
}

impl<S: Storage> Cursor<S> {
    pub(crate) fn new(
        source: Arc<Source<S>>,
        limit: Option<Limit>,
        pins: Option<&RetentionPins>,
        from: Start,
    ) -> Result<Self, ReadError> {
        // Held from the beginning: what is looked for must not be removed meanwhile.
        let pin = pins.map(|pins| pins.pin(0));
        let place = Place::find(&source, from)?;
        let number = place.segment;
        let segment = Segment::open(&source.storage, number, OpenMode::Read)?;
        let readable = if limit.is_some() { 0 } else { u64::MAX };
        let mut cursor = Self {
            scanner: RecordScanner::new(SequenceCheck::at_segment(number)),
            source,
            segment,
            read_buffer: ReadBuffer::default(),
            limit,
            readable,
            is_sealed: false,
            torn_at: None,
            pin,
        };
        cursor.seek(from, place.index)?;
        cursor.advance_pin(place.first);
        Ok(cursor)
    }

    /// The sequence of the record that comes next, if that is known.
    pub const fn position(&self) -> Option<u64> {
        self.scanner.sequence_check.next
    }

    /// The next record; `None` if there is none yet: ask again later.
    ///
    /// # Errors
    /// If what comes is damaged or was removed, or the disk refuses.
    #[inline]
    pub fn read(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(self.advance()?.map(|(header, body)| self.record(&header, body)))
    }

    /// Hands the next records to `handle`, at most `limit`; tells how many.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn for_each(
        &mut self,
        limit: usize,
        mut handle: impl FnMut(Record<'_>),
    ) -> Result<usize, ReadError> {
        for count in 0..limit {
            match self.advance()? {
                Some((header, body)) => handle(self.record(&header, body)),
                None => return Ok(count),
            }
        }
        Ok(limit)
    }

    /// Waits until there may be a record; tells whether there may. At most `timeout`.
    pub fn wait(&self, timeout: Duration) -> bool {
        let Some(limit) = &self.limit else {
            std::thread::sleep(timeout.min(LOOK));
            return true;
        };
        let next = self.scanner.sequence_check.next.unwrap_or(1);
        limit.append_queue.wait(next, limit.durability, deadline(timeout)).is_ok()
    }

    fn record(&self, header: &RecordHeader, body: u64) -> Record<'_> {
        Record {
            sequence: header.sequence.get(),
            topic: header.topic.get(),
            client: header.client.get(),
            client_sequence: header.client_sequence.get(),
            unix_ns: header.unix_ns.get(),
            flags: header.flags.get(),
            body: self.read_buffer.cached(body, header.length.get() as usize),
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<Option<(RecordHeader, u64)>, ReadError> {
        loop {
            if self.is_sealed && !self.next_segment()? {
                return Ok(None);
            }
            if !self.is_readable() {
                return Ok(None);
            }
            match self.scanner.step(&mut self.read_buffer, &self.segment)? {
                Step::Record(header, body) => return Ok(Some((header, body))),
                Step::Sealed => self.is_sealed = true,
                Step::Stopped(_) => {
                    if !self.retry()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Whether the next record may be read yet.
    #[inline]
    fn is_readable(&mut self) -> bool {
        let next = self.scanner.sequence_check.next.unwrap_or(1);
        if next > self.readable
            && let Some(limit) = &self.limit
        {
            self.readable = limit.append_queue.last_sequence(limit.durability);
        }
        next <= self.readable
    }

    /// Goes on in the next segment, if it is there.
    fn next_segment(&mut self) -> Result<bool, ReadError> {
        let number = self.segment.number + 1;
        match Segment::open(&self.source.storage, number, OpenMode::Read) {
            Ok(segment) if segment.journal != self.segment.journal => {
                let path = self.source.storage.path(&file_name::segment(number));
                return Err(OpenError::ForeignSegment { segment: number, path }.into());
            }
            Ok(segment) => self.segment = segment,
            Err(OpenError::Storage(error)) if error.kind == StorageErrorKind::NotFound => {
                self.check_removed(number)?;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.scanner.offset = RECORDS_OFFSET;
        self.read_buffer.forget();
        self.is_sealed = false;
        self.torn_at = None;
        self.advance_pin(0);
        Ok(true)
    }

    /// A file whose segment was removed may be another segment by now.
    fn check_recycled(&self) -> Result<(), ReadError> {
        let number = self.segment.number;
        match Segment::open(&self.source.storage, number, OpenMode::Read) {
            Err(OpenError::Storage(error)) if error.kind == StorageErrorKind::NotFound => {
                self.check_removed(number)
            }
            _ => Ok(()),
        }
    }

    /// A segment is missing: it is not there yet, or not any more.
    fn check_removed(&self, number: u64) -> Result<(), ReadError> {
        let requested = self.scanner.sequence_check.next.unwrap_or(1);
        match segment_numbers(&self.source.storage)?.first() {
            Some(oldest) if *oldest > number => {
                let oldest = first_of(&self.source, *oldest)?;
                Err(ReadError::Removed { requested, oldest })
            }
            _ => Ok(()),
        }
    }

    /// No record came. Is it there after all, if the file is read anew? If not: is that the end?
    fn retry(&mut self) -> Result<bool, ReadError> {
        let mut ahead = self.scanner;
        self.read_buffer.forget();
        let kind = match ahead.step(&mut self.read_buffer, &self.segment)? {
            Step::Stopped(kind) => kind,
            _ => return Ok(true),
        };
        let is_committed = self.limit.is_some();
        if !is_committed && (self.torn_at == Some(self.scanner.offset) || !self.is_damaged()?) {
            self.check_recycled()?;
            return Ok(false);
        }
        // It may have been written between the two looks.
        self.read_buffer.forget();
        if !matches!(ahead.step(&mut self.read_buffer, &self.segment)?, Step::Stopped(_)) {
            return Ok(true);
        }
        self.check_recycled()?;
        let (storage, number) = (&self.source.storage, self.segment.number);
        let next = self.scanner.sequence_check.next;
        Err(corruption(storage, number, &self.scanner, next, kind).into())
    }

    /// Whether what is behind says that there was a durable record here.
    fn is_damaged(&mut self) -> Result<bool, ReadError> {
        let Some(expected) = self.scanner.sequence_check.next else {
            return Ok(self.segment.number > 1);
        };
        let rest = Tail::scan(&mut self.read_buffer, &self.segment, self.scanner.offset)?;
        if rest.durable >= Some(expected) {
            return Ok(true);
        }
        let next = Segment::open(&self.source.storage, self.segment.number + 1, OpenMode::Read);
        let is_followed = match next {
            Ok(next) => !is_blank(&mut self.read_buffer, &next)?,
            Err(OpenError::Storage(error)) if error.kind == StorageErrorKind::NotFound => false,
            Err(error) => return Err(error.into()),
        };
        if !is_followed {
            self.torn_at = Some(self.scanner.offset);
        }
        Ok(is_followed)
    }

    fn advance_pin(&self, first: u64) {
        if let Some(pin) = &self.pin {
            pin.move_to(self.scanner.sequence_check.next.unwrap_or(first));
        }
    }
}
