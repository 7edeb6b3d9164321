//! The loops that send, in the publisher's thread.
//!
//! Everything that a message does not need is decided outside of them: whether to stamp, to
//! fill, to keep a schedule. Flat out and without stamps, a message costs one store into its
//! claim and the transport's commit; the clock is read at the start and at the end. How late a
//! stamped message was for its schedule is counted when it is on its way.

mod round_robin;

pub(crate) use round_robin::RoundRobin;

use crate::linear::LinearResult;
use crate::pacing::{Burst, Pace, Slot};
use crate::record::{self, FILLED, Stamps, TIMESTAMPED};
use crate::recorder::Recorder;
use lanecast_base::clock::Clock;
use lanecast_transport::{Claim, ClaimError, Publish, Shared};
use std::time::Duration;

/// What the messages of a run look like, and what is done when there is no room for one.
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
    pub(crate) form: MessageFormat,
    /// Ends the run early as soon as it is true.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// By how much stamped messages missed their time.
    pub(crate) lateness: &'a mut Recorder,
}

/// What a run of messages came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) sent: u64,
    pub(crate) duration_ns: u64,
    pub(crate) largest_burst: u64,
    /// How long the waiting thread was held up, if its schedule let it wait.
    pub(crate) longest_gap_ns: Option<u64>,
}

/// Why a run ended early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendError {
    pub(crate) sent: u64,
    pub(crate) error: ClaimError,
}

/// A way of sending on one publisher.
pub(crate) trait SendPath: Sized {
    type Publisher: Publish;

    /// Sends by the pace that `pace` makes of the starting time.
    fn send_all<T: Pace>(
        &mut self,
        task: Task<'_>,
        pace: impl FnOnce(u64) -> T,
    ) -> Result<Run, SendError>;

    /// Asks the publisher something.
    fn ask<R>(&self, question: impl FnOnce(&Self::Publisher) -> R) -> R;

    /// How long the calls took that sent measured messages, if they were timed.
    fn calls(&self) -> Option<LinearResult> {
        None
    }

    fn close(self, linger: Duration) -> bool;
}

/// Messages are written where they are read.
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
        match (task.form.is_stamped(), task.form.is_filled()) {
            (false, false) => in_place::<false, false, P, T>(publisher, task, pace),
            (false, true) => in_place::<false, true, P, T>(publisher, task, pace),
            (true, false) => in_place::<true, false, P, T>(publisher, task, pace),
            (true, true) => in_place::<true, true, P, T>(publisher, task, pace),
        }
    }

    fn ask<R>(&self, question: impl FnOnce(&P) -> R) -> R {
        question(&self.0)
    }

    fn close(self, linger: Duration) -> bool {
        self.0.close(linger)
    }
}

/// Messages are written into a buffer, and copied by the thread-safe call.
#[derive(Debug)]
pub(crate) struct Copying<P>(pub(crate) Shared<P>);

impl<P: Publish> SendPath for Copying<P> {
    type Publisher = P;

    fn send_all<T: Pace>(
        &mut self,
        task: Task<'_>,
        pace: impl FnOnce(u64) -> T,
    ) -> Result<Run, SendError> {
        match (task.form.is_stamped(), task.form.is_filled()) {
            (false, false) => copying::<false, false, P, T>(&self.0, task, pace),
            (false, true) => copying::<false, true, P, T>(&self.0, task, pace),
            (true, false) => copying::<true, false, P, T>(&self.0, task, pace),
            (true, true) => copying::<true, true, P, T>(&self.0, task, pace),
        }
    }

    fn ask<R>(&self, question: impl FnOnce(&P) -> R) -> R {
        question(&self.0.lock())
    }

    fn close(self, linger: Duration) -> bool {
        // The only handle is this one, so there is nobody to wait for.
        self.0.into_inner().is_ok_and(|publisher| publisher.close(linger))
    }
}

fn in_place<const STAMP: bool, const FILL: bool, P: Publish, T: Pace>(
    publisher: &mut P,
    task: Task<'_>,
    pace: impl FnOnce(u64) -> T,
) -> Result<Run, SendError> {
    if task.form.non_blocking {
        trying::<STAMP, FILL, P, T>(publisher, task, pace)
    } else {
        waiting::<STAMP, FILL, P, T>(publisher, task, pace)
    }
}

/// Claims the first message's room before the clock starts, and each next one's together with a
/// commit, so that waiting for room comes after publication; the last claim is given back.
fn waiting<const STAMP: bool, const FILL: bool, P: Publish, T: Pace>(
    publisher: &mut P,
    task: Task<'_>,
    pace: impl FnOnce(u64) -> T,
) -> Result<Run, SendError> {
    let Task { form, stop, lateness } = task;
    let claimed = publisher.claim(form.size);
    let mut claim = claimed.map_err(|error| SendError { sent: 0, error })?;
    let start = form.clock.ticks_ordered();
    let mut pace = pace(start);
    'run: while let Some(mut burst) = pace.next_burst(|| form.clock.ticks(), stop) {
        loop {
            // A transport may refuse the next claim instead of waiting: the burst goes on later.
            let error = match write_burst::<STAMP, FILL, _>(claim, &mut burst, &form, lateness) {
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
            claim = publisher.claim(form.size).map_err(refused)?;
        }
    }
    Ok(run_since(start, &pace, &form))
}

/// Writes and publishes messages until the burst is over, or there is no room for another.
#[inline(always)]
fn write_burst<const STAMP: bool, const FILL: bool, C: Claim>(
    mut claim: C,
    burst: &mut impl Burst,
    form: &MessageFormat,
    lateness: &mut Recorder,
) -> Result<C, ClaimError> {
    for slot in burst {
        let late = write::<STAMP, FILL>(&mut claim, slot, form);
        let next = claim.commit_and_claim_next(form.size);
        count_late(late, form, lateness);
        claim = next?;
    }
    Ok(claim)
}

/// Claims each message's room when it is due, and gives up where there is none.
fn trying<const STAMP: bool, const FILL: bool, P: Publish, T: Pace>(
    publisher: &mut P,
    task: Task<'_>,
    pace: impl FnOnce(u64) -> T,
) -> Result<Run, SendError> {
    let Task { form, stop, lateness } = task;
    let start = form.clock.ticks_ordered();
    let mut pace = pace(start);
    while let Some(burst) = pace.next_burst(|| form.clock.ticks(), stop) {
        for slot in burst {
            let refused = |error| SendError { sent: slot.index, error };
            let mut claim = publisher.try_claim(form.size).map_err(refused)?;
            let late = write::<STAMP, FILL>(&mut claim, slot, &form);
            claim.commit();
            count_late(late, &form, lateness);
        }
    }
    Ok(run_since(start, &pace, &form))
}

fn copying<const STAMP: bool, const FILL: bool, P: Publish, T: Pace>(
    publisher: &Shared<P>,
    task: Task<'_>,
    pace: impl FnOnce(u64) -> T,
) -> Result<Run, SendError> {
    let Task { form, stop, lateness } = task;
    let mut buffer = vec![0; form.size];
    let start = form.clock.ticks_ordered();
    let mut pace = pace(start);
    while let Some(burst) = pace.next_burst(|| form.clock.ticks(), stop) {
        for slot in burst {
            let late = write::<STAMP, FILL>(&mut buffer, slot, &form);
            let sent =
                if form.non_blocking { publisher.offer(&buffer) } else { publisher.send(&buffer) };
            sent.map_err(|error| SendError { sent: slot.index, error })?;
            count_late(late, &form, lateness);
        }
    }
    Ok(run_since(start, &pace, &form))
}

fn run_since(start: u64, pace: &impl Pace, form: &MessageFormat) -> Run {
    let duration_ns = form.clock.ns(form.clock.ticks_ordered().wrapping_sub(start));
    Run {
        sent: pace.sent(),
        duration_ns,
        largest_burst: pace.largest_burst(),
        longest_gap_ns: pace.longest_gap().map(|ticks| form.clock.ns(ticks)),
    }
}

/// Writes one message. The times come last: what is written before them is not latency. Gives
/// the ticks by which a stamped message missed its time, if it had one.
#[inline(always)]
fn write<const STAMP: bool, const FILL: bool>(
    bytes: &mut [u8],
    slot: Slot,
    form: &MessageFormat,
) -> Option<u64> {
    let word = form.first.wrapping_add(slot.index) | form.kind;
    if FILL {
        record::fill_body(bytes, word);
    }
    record::put_word(bytes, word);
    if !STAMP {
        return None;
    }
    let actual = form.clock.ticks();
    let intended = slot.due.unwrap_or(actual);
    record::put_stamps(bytes, Stamps { intended, actual });
    slot.due.map(|due| actual.saturating_sub(due))
}

#[inline(always)]
fn count_late(late: Option<u64>, form: &MessageFormat, lateness: &mut Recorder) {
    if let Some(ticks) = late {
        lateness.record(form.clock.ns(ticks));
    }
}
