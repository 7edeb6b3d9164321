//! Reading from some record on, to the end and behind it as it moves.

mod seek;

use self::seek::{Place, first_of};
use crate::catalog::Catalog;
use crate::chain::Chain;
use crate::deadline;
use crate::error::{OpenError, ReadError};
use crate::hold::{Hold, Holds};
use crate::intake::{Intake, Level};
use crate::name;
use crate::record::Record;
use crate::recovery::corruption;
use crate::rest::{Rest, is_blank};
use crate::segment::{Segment, numbers};
use crate::storage::{Fault, Mode, Storage};
use crate::walk::{Step, Walk};
use crate::window::Window;
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
    pub(crate) intake: Arc<Intake>,
    pub(crate) level: Level,
}

/// A reader's place in a journal.
///
/// It reads in large pieces and checks every record. What it has not read yet is not removed,
/// if the journal was opened for writing by this process.
#[derive(Debug)]
pub struct Cursor<S: Storage> {
    source: Arc<Source<S>>,
    segment: Segment<S::File>,
    walk: Walk,
    window: Window,
    limit: Option<Limit>,
    /// The last sequence that may be read, as far as this cursor has heard.
    readable: u64,
    /// The segment is complete, and the next one was not there yet.
    is_sealed: bool,
    /// The end at which the rest was last found to be none of its business.
    judged: Option<u64>,
    hold: Option<Hold>,
}

impl<S: Storage> Cursor<S> {
    pub(crate) fn new(
        source: Arc<Source<S>>,
        limit: Option<Limit>,
        holds: Option<&Holds>,
        from: Start,
    ) -> Result<Self, ReadError> {
        // Held from the beginning: what is looked for must not be removed meanwhile.
        let hold = holds.map(|holds| holds.hold(0));
        let place = Place::find(&source, from)?;
        let number = place.segment;
        let segment = Segment::open(&source.storage, number, Mode::Read)?;
        let readable = if limit.is_some() { 0 } else { u64::MAX };
        let mut cursor = Self {
            walk: Walk::new(Chain::at_segment(number)),
            source,
            segment,
            window: Window::default(),
            limit,
            readable,
            is_sealed: false,
            judged: None,
            hold,
        };
        cursor.seek(from, place.index)?;
        cursor.hold_on(place.first);
        Ok(cursor)
    }

    /// The sequence of the record that comes next, if that is known.
    pub const fn position(&self) -> Option<u64> {
        self.walk.chain.next
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
        let next = self.walk.chain.next.unwrap_or(1);
        limit.intake.wait(next, limit.level, deadline(timeout)).is_ok()
    }

    fn record(&self, header: &RecordHeader, body: u64) -> Record<'_> {
        Record {
            sequence: header.sequence.get(),
            topic: header.topic.get(),
            client: header.client.get(),
            client_sequence: header.client_sequence.get(),
            unix_ns: header.unix_ns.get(),
            flags: header.flags.get(),
            body: self.window.again(body, header.length.get() as usize),
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<Option<(RecordHeader, u64)>, ReadError> {
        loop {
            if self.is_sealed && !self.go_on()? {
                return Ok(None);
            }
            if !self.may_read() {
                return Ok(None);
            }
            match self.walk.step(&mut self.window, &self.segment)? {
                Step::Record(header, body) => return Ok(Some((header, body))),
                Step::Sealed => self.is_sealed = true,
                Step::Stopped(_) => {
                    if !self.look_again()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Whether the next record may be read yet.
    #[inline]
    fn may_read(&mut self) -> bool {
        let next = self.walk.chain.next.unwrap_or(1);
        if next > self.readable
            && let Some(limit) = &self.limit
        {
            self.readable = limit.intake.reached(limit.level);
        }
        next <= self.readable
    }

    /// Goes on in the next segment, if it is there.
    fn go_on(&mut self) -> Result<bool, ReadError> {
        let number = self.segment.number + 1;
        match Segment::open(&self.source.storage, number, Mode::Read) {
            Ok(segment) if segment.journal != self.segment.journal => {
                let path = self.source.storage.path(&name::segment(number));
                return Err(OpenError::Mixed { segment: number, path }.into());
            }
            Ok(segment) => self.segment = segment,
            Err(OpenError::Storage(error)) if error.fault == Fault::Missing => {
                self.refuse_removed(number)?;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.walk.offset = RECORDS_OFFSET;
        self.window.forget();
        self.is_sealed = false;
        self.judged = None;
        self.hold_on(0);
        Ok(true)
    }

    /// A file whose segment was removed may be another segment by now.
    fn refuse_given_up(&self) -> Result<(), ReadError> {
        let number = self.segment.number;
        match Segment::open(&self.source.storage, number, Mode::Read) {
            Err(OpenError::Storage(error)) if error.fault == Fault::Missing => {
                self.refuse_removed(number)
            }
            _ => Ok(()),
        }
    }

    /// A segment is missing: it is not there yet, or not any more.
    fn refuse_removed(&self, number: u64) -> Result<(), ReadError> {
        let wanted = self.walk.chain.next.unwrap_or(1);
        match numbers(&self.source.storage)?.first() {
            Some(oldest) if *oldest > number => {
                let oldest = first_of(&self.source, *oldest)?;
                Err(ReadError::Gone { wanted, oldest })
            }
            _ => Ok(()),
        }
    }

    /// No record came. Is it there after all, if the file is read anew? If not: is that the end?
    fn look_again(&mut self) -> Result<bool, ReadError> {
        let mut ahead = self.walk;
        self.window.forget();
        let flaw = match ahead.step(&mut self.window, &self.segment)? {
            Step::Stopped(flaw) => flaw,
            _ => return Ok(true),
        };
        let is_promised = self.limit.is_some();
        if !is_promised && (self.judged == Some(self.walk.offset) || !self.is_damaged()?) {
            self.refuse_given_up()?;
            return Ok(false);
        }
        // It may have been written between the two looks.
        self.window.forget();
        if !matches!(ahead.step(&mut self.window, &self.segment)?, Step::Stopped(_)) {
            return Ok(true);
        }
        self.refuse_given_up()?;
        let (storage, number) = (&self.source.storage, self.segment.number);
        let next = self.walk.chain.next;
        Err(corruption(storage, number, &self.walk, next, flaw).into())
    }

    /// Whether what is behind says that there was a durable record here.
    fn is_damaged(&mut self) -> Result<bool, ReadError> {
        let Some(expected) = self.walk.chain.next else {
            return Ok(self.segment.number > 1);
        };
        let rest = Rest::look(&mut self.window, &self.segment, self.walk.offset)?;
        if rest.durable >= Some(expected) {
            return Ok(true);
        }
        let next = Segment::open(&self.source.storage, self.segment.number + 1, Mode::Read);
        let is_followed = match next {
            Ok(next) => !is_blank(&mut self.window, &next)?,
            Err(OpenError::Storage(error)) if error.fault == Fault::Missing => false,
            Err(error) => return Err(error.into()),
        };
        if !is_followed {
            self.judged = Some(self.walk.offset);
        }
        Ok(is_followed)
    }

    fn hold_on(&self, first: u64) {
        if let Some(hold) = &self.hold {
            hold.move_to(self.walk.chain.next.unwrap_or(first));
        }
    }
}
