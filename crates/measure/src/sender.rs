//! The loops that send, in the publisher's thread.
//!
//! All decisions that do not depend on the message are constants of a loop: stamps, filling, the
//! schedule. Flat out and without stamps, a message costs one store into its claim and the
//! transport's commit; the clock is read at the start and at the end. The delay of a stamped
//! message is recorded after its commit.

mod round_robin;

pub(crate) use round_robin::RoundRobin;

use crate::linear::LinearResult;
use crate::pacing::{Burst, Pace, Slot};
use crate::record::{self, FILLED, Stamps, TIMESTAMPED};
use crate::recorder::Recorder;
use lanecast_base::clock::Clock;
use lanecast_transport::{Claim, ClaimError, Publish, Shared};
use std::time::Duration;

/// Format of the messages of a run, and behaviour at a full window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFormat {
    pub(crate) size: usize,
    /// The number of the first message.
    pub(crate) first: u64,
    /// The flags of every message.
    pub(crate) kind: u64,
    pub(crate) non_blocking: bool,
    pub(crate) clock: Clock,
}

impl MessageFormat {
    const fn is_stamped(&self) -> bool {
        self.kind & TIMESTAMPED != 0
    }

    const fn is_filled(&self) -> bool {
        self.kind & FILLED != 0
    }
}

/// A run of messages to be sent.
pub(crate) struct Task<'a> {
    pub(crate) format: MessageFormat,
    /// Ends the run early as soon as it is true.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// Delay of stamped messages behind the schedule.
    pub(crate) lateness: &'a mut Recorder,
}

/// Result of a run of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) sent: u64,
    pub(crate) duration_ns: u64,
    pub(crate) largest_burst: u64,
    /// Longest gap between clock readings, if the schedule had waits.
    pub(crate) longest_gap_ns: Option<u64>,
}

/// A run that ended early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendError {
    pub(crate) sent: u64,
    pub(crate) error: ClaimError,
}

/// A send path of one publisher: in place, by copying, or round robin over topics.
pub(crate) trait SendPath: Sized {
    type Publisher: Publish;

    /// Sends all messages by the pace that `pace` creates for the start time.
    fn send_all<T: Pace>(
        &mut self,
        task: Task<'_>,
        pace: impl FnOnce(u64) -> T,
    ) -> Result<Run, SendError>;

    /// Calls `question` with the publisher.
    fn with_publisher<R>(&self, question: impl FnOnce(&Self::Publisher) -> R) -> R;

    /// Durations of the calls that sent measured messages, if timed.
    fn calls(&self) -> Option<LinearResult> {
        None
    }

    fn close(self, linger: Duration) -> bool;
}

/// Writes messages in place.
#[derive(Debug)]
pub(crate) struct InPlace<P>(pub(crate) P);

impl<P: Publish> SendPath for InPlace<P> {
    type Publisher = P;

    fn send_all<T: Pace>(
        &mut self,
        task: Task<'_>,
        pace: impl FnOnce(u64) -> T,
    ) -> Result<Run, SendError> {
        let publisher = &mut self.0;
        match (task.format.is_stamped(), task.format.is_filled()) {
            (false, false) => in_place::<false, false, P, T>(publisher, task, pace),
            (false, true) => in_place::<false, true, P, T>(publisher, task, pace),
            (true, false) => in_place::<true, false, P, T>(publisher, task, pace),
            (true, true) => in_place::<true, true, P, T>(publisher, task, pace),
        }
    }

    fn with_publisher<R>(&self, question: impl FnOnce(&P) -> R) -> R {
        question(&self.0)
    }

    fn close(self, linger: Duration) -> bool {
        self.0.close(linger).is_complete()
    }
}

/// Writes messages to a buffer and copies them by the thread-safe call.
#[derive(Debug)]
pub(crate) struct Copying<P>(pub(crate) Shared<P>);

impl<P: Publish> SendPath for Copying<P> {
    type Publisher = P;

    fn send_all<T: Pace>(
        &mut self,
        task: Task<'_>,
        pace: impl FnOnce(u64) -> T,
    ) -> Result<Run, SendError> {
        match (task.format.is_stamped(), task.format.is_filled()) {
            (false, false) => copying::<false, false, P, T>(&self.0, task, pace),
            (false, true) => copying::<false, true, P, T>(&self.0, task, pace),
            (true, false) => copying::<true, false, P, T>(&self.0, task, pace),
            (true, true) => copying::<true, true, P, T>(&self.0, task, pace),
        }
    }

    fn with_publisher<R>(&self, question: impl FnOnce(&P) -> R) -> R {
        question(&self.0.lock())
    }

    fn close(self, linger: Duration) -> bool {
        // This is the only handle, so `into_inner` succeeds at once.
        self.0.into_inner().is_ok_and(|publisher| publisher.close(linger).is_complete())
    }
}

fn in_place<const STAMP: bool, const FILL: bool, P: Publish, T: Pace>(
    publisher: &mut P,
    task: Task<'_>,
    pace: impl FnOnce(u64) -> T,
) -> Result<Run, SendError> {
    if task.format.non_blocking {
        trying::<STAMP, FILL, P, T>(publisher, task, pace)
    } else {
        waiting::<STAMP, FILL, P, T>(publisher, task, pace)
    }
}

/// Claims the first message before the clock starts, and each next one together with a commit, so
/// that waiting for space comes after publication. The last claim is returned.
fn waiting<const STAMP: bool, const FILL: bool, P: Publish, T: Pace>(
    publisher: &mut P,
    task: Task<'_>,
    pace: impl FnOnce(u64) -> T,
) -> Result<Run, SendError> {
    let Task { format, stop, lateness } = task;
    let claimed = publisher.claim(format.size);
    let mut claim = claimed.map_err(|error| SendError { sent: 0, error })?;
    let start = format.clock.ticks_ordered();
    let mut pace = pace(start);
    'run: while let Some(mut burst) = pace.next_burst(|| format.clock.ticks(), stop) {
        loop {
            // A transport may refuse the next claim instead of waiting: the burst goes on later.
            let error = match write_burst::<STAMP, FILL, _>(claim, &mut burst, &format, lateness) {
                Ok(next) => {
                    claim = next;
                    break;
                }
                Err(error) => error,
            };
            if burst.run_is_over() {
                break 'run;
            }
            let refused = |error| SendError { sent: burst.sent(), error };
            let ClaimError::BackPressured(_) = error else { return Err(refused(error)) };
            claim = publisher.claim(format.size).map_err(refused)?;
        }
    }
    Ok(run_since(start, &pace, &format))
}

/// Writes and publishes messages until the burst is over, or there is no room for another.
#[inline(always)]
fn write_burst<const STAMP: bool, const FILL: bool, C: Claim>(
    mut claim: C,
    burst: &mut impl Burst,
    format: &MessageFormat,
    lateness: &mut Recorder,
) -> Result<C, ClaimError> {
    for slot in burst {
        let late = write::<STAMP, FILL>(&mut claim, slot, format);
        let next = claim.commit_and_claim_next(format.size);
        count_late(late, format, lateness);
        claim = next?;
    }
    Ok(claim)
}

/// Claims each message when it is due; ends with an error if the window is full.
fn trying<const STAMP: bool, const FILL: bool, P: Publish, T: Pace>(
    publisher: &mut P,
    task: Task<'_>,
    pace: impl FnOnce(u64) -> T,
) -> Result<Run, SendError> {
    let Task { format, stop, lateness } = task;
    let start = format.clock.ticks_ordered();
    let mut pace = pace(start);
    while let Some(burst) = pace.next_burst(|| format.clock.ticks(), stop) {
        for slot in burst {
            let refused = |error| SendError { sent: slot.index, error };
            let mut claim = publisher.try_claim(format.size).map_err(refused)?;
            let late = write::<STAMP, FILL>(&mut claim, slot, &format);
            claim.commit();
            count_late(late, &format, lateness);
        }
    }
    Ok(run_since(start, &pace, &format))
}

fn copying<const STAMP: bool, const FILL: bool, P: Publish, T: Pace>(
    publisher: &Shared<P>,
    task: Task<'_>,
    pace: impl FnOnce(u64) -> T,
) -> Result<Run, SendError> {
    let Task { format, stop, lateness } = task;
    let mut buffer = vec![0; format.size];
    let start = format.clock.ticks_ordered();
    let mut pace = pace(start);
    while let Some(burst) = pace.next_burst(|| format.clock.ticks(), stop) {
        for slot in burst {
            let late = write::<STAMP, FILL>(&mut buffer, slot, &format);
            let sent = if format.non_blocking {
                publisher.try_send(&buffer)
            } else {
                publisher.send(&buffer)
            };
            sent.map_err(|error| SendError { sent: slot.index, error })?;
            count_late(late, &format, lateness);
        }
    }
    Ok(run_since(start, &pace, &format))
}

fn run_since(start: u64, pace: &impl Pace, format: &MessageFormat) -> Run {
    let duration_ns = format.clock.ns(format.clock.ticks_ordered().wrapping_sub(start));
    Run {
        sent: pace.sent(),
        duration_ns,
        largest_burst: pace.largest_burst(),
        longest_gap_ns: pace.longest_gap().map(|ticks| format.clock.ns(ticks)),
    }
}

/// Writes one message, its times last, so that writing it does not count as latency. Returns the
/// delay behind the schedule in ticks, for a stamped message with a schedule.
#[inline(always)]
fn write<const STAMP: bool, const FILL: bool>(
    bytes: &mut [u8],
    slot: Slot,
    format: &MessageFormat,
) -> Option<u64> {
    let word = format.first.wrapping_add(slot.index) | format.kind;
    if FILL {
        record::fill_body(bytes, word);
    }
    record::put_word(bytes, word);
    if !STAMP {
        return None;
    }
    let actual = format.clock.ticks();
    let intended = slot.due.unwrap_or(actual);
    record::put_stamps(bytes, Stamps { intended, actual });
    slot.due.map(|due| actual.saturating_sub(due))
}

#[inline(always)]
fn count_late(late: Option<u64>, format: &MessageFormat, lateness: &mut Recorder) {
    if let Some(ticks) = late {
        lateness.record(format.clock.ns(ticks));
    }
}
