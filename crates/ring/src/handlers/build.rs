//! Giving a ring its handlers.

use super::arrival::Arrival;
use super::feed::{Feed, Plan};
use super::panics::OnPanic;
use super::post::{Attendance, Crew, Post, Record, Shared};
use super::running::{Handlers, Thread};
use super::stage::{Seat, Stage};
use crate::error::BuildError;
use crate::multi::MultiRings;
use crate::rings::Rings;
use core::fmt;
use lanecast_base::sync::AtomicU64;
use lanecast_os::affinity;
use std::io;
use std::sync::Arc;

/// Why handlers cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ring does not allow it.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A stage without handlers.
    #[error("stage {0} has no handlers: give it at least one")]
    EmptyStage(usize),
    /// A stage after one that shares the work.
    #[error("stage {0} shares its work, so nobody can follow it: let it be the last")]
    AfterSharing(usize),
    /// The system gives no thread.
    #[error("there is no thread for handler {handler}: {error}")]
    Thread {
        /// Whose thread.
        handler: String,
        /// The system's words.
        error: io::Error,
    },
    /// A handler's thread cannot be kept on its CPU.
    #[error("handler {handler} cannot be kept on its CPU: {error}")]
    Pin {
        /// Whose thread.
        handler: String,
        /// The system's words.
        error: io::Error,
    },
}

/// A ring that is being given handlers, stage by stage.
///
/// ```
/// use lanecast_ring::rings::{self, Place, named};
/// use std::sync::mpsc::channel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (result, results) = channel();
/// let journal = |_order: &u64, place: Place| assert!(place.sequence < 3);
/// let replicate = |order: &u64, _: Place| assert!(*order > 0);
/// let business = move |order: &u64, _: Place| result.send(order * 2).unwrap_or_default();
/// let mut handlers = rings::single_producer(64, || 0_u64)?
///     .handle_with((named("journal", journal), replicate)) // Side by side,
///     .then(named("business", business)) // and this one when both are done.
///     .start()?;
/// for order in 1..=3 {
///     handlers.producer().push(order)?;
/// }
/// let report = handlers.finish()?; // Drains, joins, and tells of panics.
/// assert_eq!(report.handlers[2].handler, "business");
/// assert_eq!(report.handlers[2].messages, 3);
/// assert_eq!(results.iter().collect::<Vec<_>>(), [2, 4, 6]);
/// # Ok(())
/// # }
/// ```
pub struct Staged<T, P> {
    plan: P,
    stages: Vec<Row<T>>,
    on_panic: OnPanic,
    cpus: Vec<usize>,
}

/// The handlers of one stage.
struct Row<T> {
    seats: Vec<Seat<T>>,
    shares_work: bool,
}

/// The ends of the ring that a stage's handlers read.
type Ends<T> = Vec<Box<dyn Feed<T>>>;

impl<T: Send + Sync + 'static> Rings<T> {
    /// Handlers that see every message; see [`Staged`].
    pub fn handle_with<K>(self, stage: impl Stage<T, K>) -> Staged<T, Self> {
        Staged::new(self).then(stage)
    }

    /// Handlers each message of which goes to one of them; see [`Staged`].
    pub fn share_among<K, S: Stage<T, K>>(self, handlers: Vec<S>) -> Staged<T, Self> {
        Staged::new(self).share_among(handlers)
    }
}

impl<T: Send + Sync + 'static> MultiRings<T> {
    /// As [`Rings::handle_with`].
    pub fn handle_with<K>(self, stage: impl Stage<T, K>) -> Staged<T, Self> {
        Staged::new(self).then(stage)
    }

    /// As [`Rings::share_among`].
    pub fn share_among<K, S: Stage<T, K>>(self, handlers: Vec<S>) -> Staged<T, Self> {
        Staged::new(self).share_among(handlers)
    }
}

impl<T: Send + Sync + 'static, P: Plan<T>> Staged<T, P> {
    const fn new(plan: P) -> Self {
        Self { plan, stages: Vec::new(), on_panic: OnPanic::Halt, cpus: Vec::new() }
    }

    /// The next stage: handlers that see a message when the stage before is done with it.
    #[must_use]
    pub fn then<K>(mut self, stage: impl Stage<T, K>) -> Self {
        self.stages.push(Row { seats: stage.seats(), shares_work: false });
        self
    }

    /// The last stage: handlers that share the work, each message for one of them.
    #[must_use]
    pub fn share_among<K, S: Stage<T, K>>(mut self, handlers: Vec<S>) -> Self {
        let seats = handlers.into_iter().flat_map(S::seats).collect();
        self.stages.push(Row { seats, shares_work: true });
        self
    }

    /// What happens to a handler that panics; [`OnPanic::Halt`] unless said otherwise.
    #[must_use]
    pub const fn on_panic(mut self, on_panic: OnPanic) -> Self {
        self.on_panic = on_panic;
        self
    }

    /// Keeps the handlers' threads on these CPUs, in turn; anywhere if there are none.
    #[must_use]
    pub fn pin(mut self, cpus: &[usize]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// Starts a thread for each handler and returns when all of them are there.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is running then.
    pub fn start(mut self) -> Result<Handlers<T, P::Producers>, StartError> {
        let ends = self.ends()?;
        let (producers, alarm) = self.plan.complete()?;
        let shared = Arc::new(Shared::new(alarm));
        let mut handlers = Handlers::new(producers, Arc::clone(&shared));
        let mut before = None;
        let mut cpus = self.cpus.iter().copied().cycle();
        for (stage, (row, ends)) in self.stages.into_iter().zip(ends).enumerate() {
            let crew = Arc::new(Crew::new(row.seats.len()));
            for (number, (seat, feed)) in row.seats.into_iter().zip(ends).enumerate() {
                let name = format!("handler-{}-{}", stage + 1, number + 1);
                let name = seat.name.clone().unwrap_or(name);
                let handled = Arc::new(AtomicU64::new(0));
                let record = Record::new(name, self.on_panic, Arc::clone(&handled));
                let (shared, crew) = (Arc::clone(&shared), Arc::clone(&crew));
                let attendance = Attendance { shared, crew, before: before.clone() };
                let post = Post { feed, attendance, record };
                handlers.add(start_one(seat, post, cpus.next(), handled)?);
            }
            before = Some(crew);
        }
        handlers.wait_for_arrivals()?;
        Ok(handlers)
    }

    /// An end of the ring for each handler.
    fn ends(&mut self) -> Result<Vec<Ends<T>>, StartError> {
        let mut whole: Vec<Vec<P::End>> = Vec::new();
        let mut shared = Vec::new();
        for (number, row) in self.stages.iter().enumerate() {
            let stage = number + 1;
            if row.seats.is_empty() {
                return Err(StartError::EmptyStage(stage));
            }
            if row.shares_work && stage < self.stages.len() {
                return Err(StartError::AfterSharing(stage));
            }
            let before: Vec<&P::End> = whole.last().into_iter().flatten().collect();
            if row.shares_work {
                shared = self.plan.share(row.seats.len(), &before)?;
            } else {
                let ends = row.seats.iter().map(|_| self.plan.add(&before));
                let ends = ends.collect::<Result<_, _>>()?;
                whole.push(ends);
            }
        }
        let boxed = |end| Box::new(end) as Box<dyn Feed<T>>;
        let mut ends: Vec<Ends<T>> =
            whole.into_iter().map(|ends| ends.into_iter().map(boxed).collect()).collect();
        ends.push(shared.into_iter().map(|end| Box::new(end) as Box<dyn Feed<T>>).collect());
        Ok(ends)
    }
}

fn start_one<T: Send + Sync + 'static>(
    seat: Seat<T>,
    post: Post<T>,
    cpu: Option<usize>,
    handled: Arc<AtomicU64>,
) -> Result<Thread<T>, StartError> {
    let name = post.record.name.clone();
    let builder = std::thread::Builder::new().name(name.replace('\0', " "));
    let arrival = Arc::new(Arrival::new());
    let begin = {
        let arrival = Arc::clone(&arrival);
        move || {
            let pinned = cpu.map_or(Ok(()), affinity::pin);
            arrival.tell(pinned.is_ok());
            pinned.map(|()| (seat.work)(post))
        }
    };
    match builder.spawn(begin) {
        Ok(join) => Ok(Thread { name, handled, arrival, join }),
        Err(error) => Err(StartError::Thread { handler: name, error }),
    }
}

impl<T, P> fmt::Debug for Staged<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = self.stages.iter().map(|row| &row.seats);
        f.debug_list().entries(stages).finish()
    }
}
