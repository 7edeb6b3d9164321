//! Replays: a cursor with an end, a pace and a pause. A replay belongs to one thread.

use crate::cursor::Cursor;
use crate::error::ReadError;
use crate::record::Record;
use crate::storage::Storage;
use std::time::{Duration, Instant};

/// End of a replay, which is not part of it: whichever of the two comes first. With neither it
/// follows the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayEnd {
    /// The record with this sequence.
    pub sequence: Option<u64>,
    /// The first record of this time or later, in nanoseconds since 1970.
    pub unix_ns: Option<u64>,
}

/// Pace of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ReplayPace {
    /// As fast as the reader takes records.
    #[default]
    Full,
    /// Records per second, at even distances.
    Rate(f64),
    /// The recorded distances, divided by this: 2.0 is twice as fast.
    Speed(f64),
}

/// The next step of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayStep<'a> {
    /// A record that is due.
    Record(Record<'a>),
    /// The next record is due then.
    Due(Instant),
    /// There is no record yet.
    Waiting,
    /// The replay is paused.
    Paused,
    /// All records in front of the end were given.
    Ended,
}

/// A cursor with an end, a pace and a pause.
///
/// ```
/// use lanecast_journal::{
///     Directory, Entry, JournalConfig, Log, Replay, ReplayEnd, ReplayPace, ReplayStep, Start,
/// };
/// # let directory = tempfile::tempdir()?;
/// let mut log = Log::open(Directory::new(directory.path()), JournalConfig::default())?;
/// log.append(&[Entry { body: b"first", ..Entry::default() }; 3])?;
/// log.commit()?;
///
/// let end = ReplayEnd { sequence: Some(3), ..ReplayEnd::default() };
/// let mut replay = Replay::new(log.cursor(Start::Oldest)?, end, ReplayPace::Rate(1000.0));
/// let mut count = 0;
/// loop {
///     match replay.step()? {
///         ReplayStep::Record(_) => count += 1,
///         ReplayStep::Due(at) => std::thread::sleep(at - std::time::Instant::now()),
///         _ => break,
///     }
/// }
/// assert_eq!(count, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replay<S: Storage> {
    cursor: Cursor<S>,
    end: ReplayEnd,
    pace: ReplayPace,
    /// Moment and recorded time from which distances count, and the records since then.
    origin: Option<(Instant, u64)>,
    given: u64,
    is_paused: bool,
    has_ended: bool,
}

impl<S: Storage> Replay<S> {
    /// Replays what `cursor` reads up to `end`. A rate or speed that is not a positive number
    /// counts as [`ReplayPace::Full`].
    pub const fn new(cursor: Cursor<S>, end: ReplayEnd, pace: ReplayPace) -> Self {
        let (origin, given) = (None, 0);
        Self { cursor, end, pace, origin, given, is_paused: false, has_ended: false }
    }

    /// Pauses: no record is given until [`resume`](Self::resume).
    pub const fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Goes on where it was paused; the time of the pause does not count.
    pub const fn resume(&mut self) {
        self.is_paused = false;
        // The next record is due at once, and gives the new origin.
        self.origin = None;
        self.given = 0;
    }

    /// Changes the pace, from the next record on.
    pub const fn set_pace(&mut self, pace: ReplayPace) {
        self.pace = pace;
        self.origin = None;
        self.given = 0;
    }

    /// The cursor, to wait for records.
    pub const fn cursor(&self) -> &Cursor<S> {
        &self.cursor
    }

    /// The next step, by the time now. Never waits.
    ///
    /// # Errors
    /// As [`Cursor::read`].
    pub fn step(&mut self) -> Result<ReplayStep<'_>, ReadError> {
        self.step_at(Instant::now())
    }

    /// The next step, by the time `now`, for programs with a clock of their own.
    ///
    /// # Errors
    /// As [`Cursor::read`].
    pub fn step_at(&mut self, now: Instant) -> Result<ReplayStep<'_>, ReadError> {
        if self.has_ended {
            return Ok(ReplayStep::Ended);
        }
        if self.is_paused {
            return Ok(ReplayStep::Paused);
        }
        let Some((sequence, unix_ns)) = self.cursor.peek()? else {
            let next = self.cursor.position();
            self.has_ended = self.end.sequence.zip(next).is_some_and(|(end, next)| next >= end);
            return Ok(if self.has_ended { ReplayStep::Ended } else { ReplayStep::Waiting });
        };
        self.has_ended = self.end.sequence.is_some_and(|end| sequence >= end)
            || self.end.unix_ns.is_some_and(|end| unix_ns >= end);
        if self.has_ended {
            return Ok(ReplayStep::Ended);
        }
        if let Some(due) = self.due(unix_ns, now)
            && due > now
        {
            return Ok(ReplayStep::Due(due));
        }
        self.given += 1;
        Ok(self.cursor.read()?.map_or(ReplayStep::Waiting, ReplayStep::Record))
    }

    /// Moment at which the next record is due; `None` at once.
    fn due(&mut self, unix_ns: u64, now: Instant) -> Option<Instant> {
        let (start, first_ns) = *self.origin.get_or_insert((now, unix_ns));
        let seconds = match self.pace {
            ReplayPace::Rate(rate) if rate > 0.0 => self.given as f64 / rate,
            ReplayPace::Speed(factor) if factor > 0.0 => {
                unix_ns.saturating_sub(first_ns) as f64 / 1e9 / factor
            }
            _ => return None,
        };
        let distance = Duration::try_from_secs_f64(seconds).ok();
        let due = distance.and_then(|distance| start.checked_add(distance));
        // Beyond what a moment holds: asked again and again, and never due.
        Some(due.unwrap_or_else(|| now + Duration::from_secs(1)))
    }
}
