//! Cursors: read records in order from a start position and follow the end of the journal. A cursor
//! belongs to one thread; it shares the catalog and the append queue with the writer.

use crate::append_queue::{AppendQueue, Durability};
use crate::error::{OpenError, ReadError};
use crate::file_name;
use crate::index::{Index, Interval, Mark};
use crate::index_file;
use crate::pin::{RetentionPin, RetentionPins};
use crate::read_buffer::ReadBuffer;
use crate::record::Record;
use crate::recovery::corruption;
use crate::scanner::{RecordScanner, Step, header_at};
use crate::segment::{Segment, segment_numbers};
use crate::sequence_check::SequenceCheck;
use crate::start::{Source, Start, StartSegment, first_of, is_from};
use crate::storage::{OpenMode, Storage, StorageErrorKind};
use crate::tail::{Tail, is_blank};
use lanecast_base::clock::deadline;
use lanecast_wire::journal::{INDEX_STRIDE, RECORDS_OFFSET};
use std::sync::Arc;
use std::time::Duration;

/// Poll interval of a cursor without a writer in this process.
const LOOK: Duration = Duration::from_millis(1);

/// Read limit: the last sequence with the given durability.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) append_queue: Arc<AppendQueue>,
    pub(crate) durability: Durability,
}

/// A sealed segment, by its number, whose index is neither in memory nor in its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexLost(pub(crate) u64);

/// A position in a journal, and the records from there on.
///
/// Reads in blocks of up to 256 KiB and verifies every record. A cursor of a
/// [`Journal`](crate::Journal) or [`Log`](crate::Log) pins the records that it has not read yet
/// against retention.
#[derive(Debug)]
pub struct Cursor<S: Storage> {
    source: Arc<Source<S>>,
    segment: Segment<S::File>,
    scanner: RecordScanner,
    read_buffer: ReadBuffer,
    limit: Option<Limit>,
    /// Last readable sequence, cached from `limit`.
    readable: u64,
    /// The segment's seal was read, and the next segment did not exist yet.
    is_sealed: bool,
    /// Offset at which the bytes behind were last found to be a torn write and not damage.
    torn_at: Option<u64>,
    pin: Option<RetentionPin>,
    /// Offset of the next record, if it was looked at: the read buffer holds it.
    peeked: Option<u64>,
}

impl<S: Storage> Cursor<S> {
    /// A cursor; makes the index of a sealed segment anew that has lost it.
    pub(crate) fn new(
        source: Arc<Source<S>>,
        limit: Option<Limit>,
        pins: Option<&RetentionPins>,
        from: Start,
    ) -> Result<Self, ReadError> {
        // The segment stays while it is read.
        let _pin = pins.map(|pins| pins.pin(0));
        loop {
            match Self::try_new(Arc::clone(&source), limit.clone(), pins, from)? {
                Ok(cursor) => return Ok(cursor),
                Err(IndexLost(number)) => index_file::restore(&source, number)?,
            }
        }
    }

    /// The same, but leaves a lost index to the caller: reading the whole segment takes long.
    pub(crate) fn try_new(
        source: Arc<Source<S>>,
        limit: Option<Limit>,
        pins: Option<&RetentionPins>,
        from: Start,
    ) -> Result<Result<Self, IndexLost>, ReadError> {
        // Pinned before the search: retention must not remove the start position meanwhile.
        let pin = pins.map(|pins| pins.pin(0));
        let place = StartSegment::find(&source, from)?;
        let number = place.segment;
        let segment = Segment::open(&source.storage, number, OpenMode::Read)?;
        let index = match place.index {
            None if place.is_complete && from != Start::Oldest => {
                let read = index_file::read(&source.storage, &segment, place.first);
                let Some(index) = read else { return Ok(Err(IndexLost(number))) };
                Some(index)
            }
            index => index,
        };
        // Without a writer's limit every record in the files may be read.
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
            peeked: None,
        };
        cursor.seek(from, index)?;
        cursor.advance_pin(place.first);
        Ok(Ok(cursor))
    }

    /// Moves to another position of the journal.
    ///
    /// # Errors
    /// If the position was removed or cannot be read; the cursor stays where it is.
    pub fn move_to(&mut self, from: Start) -> Result<(), ReadError> {
        let (source, pins) = (Arc::clone(&self.source), self.pin.as_ref().map(RetentionPin::pins));
        *self = Self::new(source, self.limit.clone(), pins, from)?;
        Ok(())
    }

    /// Sequence of the last record that may be read by now; `u64::MAX` if only the files' end is
    /// the limit.
    pub fn end(&self) -> u64 {
        let last = |limit: &Limit| limit.append_queue.last_sequence(limit.durability);
        self.limit.as_ref().map_or(u64::MAX, last)
    }

    /// Sequence of the next record; `None` if it is not known yet.
    pub fn position(&self) -> Option<u64> {
        match self.peeked {
            Some(at) => Some(self.read_buffer.record(at).0.sequence.get()),
            None => self.scanner.sequence_check.next,
        }
    }

    /// Sequence and time of the next record, in nanoseconds since 1970, without reading it; `None`
    /// if there is none yet.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn peek(&mut self) -> Result<Option<(u64, u64)>, ReadError> {
        if self.peeked.is_none() {
            self.peeked = self.advance()?;
        }
        Ok(self.peeked.map(|at| {
            let (header, _) = self.read_buffer.record(at);
            (header.sequence.get(), header.unix_ns.get())
        }))
    }

    /// The next record; `None` if there is none yet.
    ///
    /// # Errors
    /// If the record is damaged or was removed, or the disk refuses.
    #[inline]
    pub fn read(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(self.advance()?.map(|at| self.record(at)))
    }

    /// Passes the next records to `handle`, at most `limit`; returns their count.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn for_each(
        &mut self,
        limit: usize,
        mut handle: impl FnMut(Record<'_>),
    ) -> Result<usize, ReadError> {
        let mut left = limit;
        let mut count = |record: Record<'_>| {
            handle(record);
            left -= 1;
            left > 0
        };
        if limit > 0 { self.read_while(&mut count) } else { Ok(0) }
    }

    /// Passes the next records to `handle` until it returns false; returns their count.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn read_while(
        &mut self,
        mut handle: impl FnMut(Record<'_>) -> bool,
    ) -> Result<usize, ReadError> {
        let mut count = 0;
        while let Some(at) = self.advance()? {
            count += 1;
            // The record borrows the read buffer, so it cannot outlive this step.
            if !handle(self.record(at)) {
                break;
            }
        }
        Ok(count)
    }

    /// Waits up to `timeout` for the next record; returns whether there may be one.
    pub fn wait(&self, timeout: Duration) -> bool {
        if self.peeked.is_some() {
            return true;
        }
        let Some(limit) = &self.limit else {
            std::thread::sleep(timeout.min(LOOK));
            return true;
        };
        let next = self.scanner.sequence_check.next.unwrap_or(1);
        limit.append_queue.wait(next, limit.durability, deadline(timeout)).is_ok()
    }

    #[inline]
    fn record(&self, at: u64) -> Record<'_> {
        let (header, body) = self.read_buffer.record(at);
        Record {
            sequence: header.sequence.get(),
            topic: header.topic.get(),
            client: header.client.get(),
            client_sequence: header.client_sequence.get(),
            unix_ns: header.unix_ns.get(),
            flags: header.flags.get(),
            checksum: header.crc.get(),
            body,
        }
    }

    /// Advances behind the next record; returns its offset.
    #[inline]
    fn advance(&mut self) -> Result<Option<u64>, ReadError> {
        // The buffer holds it still: nothing was read since.
        if self.peeked.is_some() {
            return Ok(self.peeked.take());
        }
        loop {
            // The next segment may be created after the seal was read.
            if self.is_sealed && !self.next_segment()? {
                return Ok(None);
            }
            if !self.is_readable() {
                return Ok(None);
            }
            match self.scanner.step(&mut self.read_buffer, &self.segment)? {
                Step::Record(at) => return Ok(Some(at)),
                Step::Sealed => self.is_sealed = true,
                Step::Stopped(_) => {
                    if !self.retry()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Whether the next record is within the read limit.
    #[inline]
    fn is_readable(&mut self) -> bool {
        let next = self.scanner.sequence_check.next.unwrap_or(1);
        // One atomic load per refill, not per record.
        if next > self.readable {
            self.readable = self.end();
        }
        next <= self.readable
    }

    /// Moves to the next segment; returns whether it exists.
    fn next_segment(&mut self) -> Result<bool, ReadError> {
        let number = self.segment.number + 1;
        match Segment::open(&self.source.storage, number, OpenMode::Read) {
            // A file copied here from another journal.
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
        // The buffer still holds bytes of the previous file.
        self.read_buffer.forget();
        self.read_buffer.set_end(None);
        self.is_sealed = false;
        self.torn_at = None;
        self.advance_pin(0);
        Ok(true)
    }

    /// Fails if the current segment was removed: its file may have become another segment.
    fn check_recycled(&self) -> Result<(), ReadError> {
        let number = self.segment.number;
        match Segment::open(&self.source.storage, number, OpenMode::Read) {
            Err(OpenError::Storage(error)) if error.kind == StorageErrorKind::NotFound => {
                self.check_removed(number)
            }
            _ => Ok(()),
        }
    }

    /// Fails if segment `number` was removed by retention; succeeds if it does not exist yet.
    fn check_removed(&self, number: u64) -> Result<(), ReadError> {
        let requested = self.scanner.sequence_check.next.unwrap_or(1);
        // A newer oldest segment proves the removal; otherwise the writer has not created the
        // requested one yet.
        match segment_numbers(&self.source.storage)?.first() {
            Some(oldest) if *oldest > number => {
                let oldest = first_of(&self.source, *oldest)?;
                Err(ReadError::Removed { requested, oldest })
            }
            _ => Ok(()),
        }
    }

    /// Handles a failed read at the current position: returns `true` if the record is there after a
    /// fresh read, `false` at the end of the journal, and an error if the record is damaged.
    fn retry(&mut self) -> Result<bool, ReadError> {
        // On a copy: a failed attempt must leave the position unchanged.
        let mut ahead = self.scanner;
        self.read_buffer.forget();
        let kind = match ahead.step(&mut self.read_buffer, &self.segment)? {
            Step::Stopped(kind) => kind,
            _ => return Ok(true),
        };
        // Within the limit the writer has promised the record, so its absence is damage. Without a
        // writer it may be the torn or unfinished end.
        let is_committed = self.limit.is_some();
        if !is_committed && (self.torn_at == Some(self.scanner.offset) || !self.is_damaged()?) {
            self.check_recycled()?;
            return Ok(false);
        }
        // The writer may have completed the record since; only a second failure is damage.
        self.read_buffer.forget();
        if !matches!(ahead.step(&mut self.read_buffer, &self.segment)?, Step::Stopped(_)) {
            return Ok(true);
        }
        self.check_recycled()?;
        let (storage, number) = (&self.source.storage, self.segment.number);
        let next = self.scanner.sequence_check.next;
        Err(corruption(storage, number, &self.scanner, next, kind).into())
    }

    /// Whether the bytes behind prove that a durable record stood here.
    fn is_damaged(&mut self) -> Result<bool, ReadError> {
        let Some(expected) = self.scanner.sequence_check.next else {
            return Ok(self.segment.number > 1);
        };
        // A later record that states this one was durable makes its loss damage, not a torn end.
        let tail = Tail::scan(&mut self.read_buffer, &self.segment, self.scanner.offset)?;
        if tail.durable >= Some(expected) {
            return Ok(true);
        }
        // A successor with records proves that this segment was complete once.
        let next = Segment::open(&self.source.storage, self.segment.number + 1, OpenMode::Read);
        let is_followed = match next {
            Ok(next) => !is_blank(&mut self.read_buffer, &next)?,
            Err(OpenError::Storage(error)) if error.kind == StorageErrorKind::NotFound => false,
            Err(error) => return Err(error.into()),
        };
        // Remembered, so that polling at a torn end does not scan the tail each time.
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

    /// Scans forward to `from`, starting at the nearest index mark.
    fn seek(&mut self, from: Start, index: Option<Index>) -> Result<(), ReadError> {
        if from == Start::Oldest {
            return Ok(());
        }
        // Read once: records appended during the search must not move its end.
        let end = self.end();
        let interval = index.and_then(|index| match from {
            Start::Sequence(requested) => index.before_sequence(requested),
            Start::Time(unix_ns) => index.before_time(unix_ns),
            _ => index.before_sequence(u64::MAX),
        });
        self.jump(interval)?;
        loop {
            let next = self.scanner.sequence_check.next;
            let is_there = match from {
                Start::Sequence(requested) => next.is_some_and(|next| next >= requested),
                _ => false,
            };
            let is_behind = next.is_some_and(|next| next > end);
            if is_there || is_behind {
                break;
            }
            let before = self.scanner;
            match self.scanner.step(&mut self.read_buffer, &self.segment)? {
                Step::Record(at) if is_from(self.read_buffer.record(at).0, from) => {
                    // Step back, so that the first read returns this record.
                    self.scanner = before;
                    break;
                }
                Step::Record(..) => {}
                Step::Sealed => {
                    self.is_sealed = true;
                    if !self.next_segment()? {
                        break;
                    }
                }
                Step::Stopped(_) if self.retry()? => {}
                Step::Stopped(_) => break,
            }
        }
        self.read_buffer.set_end(None);
        match (from, self.scanner.sequence_check.next) {
            (Start::Sequence(requested), Some(next)) if next < requested => {
                Err(ReadError::Ahead { requested, next })
            }
            _ => Ok(()),
        }
    }

    /// Moves to the mark of `interval`, and reads no more than the interval.
    fn jump(&mut self, interval: Option<Interval>) -> Result<(), ReadError> {
        // Without a mark the scan starts at the segment's first record.
        let Some(Interval { mark, end }) = interval else { return Ok(()) };
        self.read_buffer.set_end(Some(end.unwrap_or(mark.offset + INDEX_STRIDE)));
        let there = header_at(&mut self.read_buffer, &self.segment, mark.offset)?;
        // A file that was restored from a copy can have the index of another one.
        if there.is_ok_and(|header| Mark::of(header, mark.offset) == mark) {
            let next = Some(mark.sequence);
            let sequence_check = SequenceCheck { next, ..SequenceCheck::ANYWHERE };
            self.scanner = RecordScanner { sequence_check, offset: mark.offset };
        } else {
            self.read_buffer.set_end(None);
        }
        Ok(())
    }
}
