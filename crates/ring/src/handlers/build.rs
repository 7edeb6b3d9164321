//! Builder of a ring's handlers: stages, panic policy, CPUs, and the start of the threads.

use super::event_source::{EventSource, HandlerRing};
use super::handler_thread::{HandlerRecord, HandlerThread, HandlersShared, StageCount, StageGuard};
use super::panics::OnPanic;
use super::running::{Handlers, RunningThread, StartError};
use super::stage::{HandlerSlot, Stage};
use super::start_signal::StartSignal;
use core::fmt;
use lanecast_base::sync::AtomicU64;
use lanecast_os::affinity;
use std::sync::Arc;

/// Builder of a ring's handlers, stage by stage.
///
/// ```
/// use lanecast_ring::rings::{self, EventInfo, named};
/// use std::sync::mpsc::channel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (result, results) = channel();
/// let journal = |_order: &u64, info: EventInfo| assert!(info.sequence < 3);
/// let replicate = |order: &u64, _: EventInfo| assert!(*order > 0);
/// let business = move |order: &u64, _: EventInfo| result.send(order * 2).unwrap_or_default();
/// let mut handlers = rings::single_producer(64, || 0_u64)?
///     .handle_with((named("journal", journal), replicate)) // Side by side,
///     .then(named("business", business)) // and this one when both are done.
///     .start()?;
/// for order in 1..=3 {
///     handlers.producer().push(order)?;
/// }
/// let report = handlers.finish()?; // Drains, joins, and reports panics.
/// assert_eq!(report.handlers[2].handler, "business");
/// assert_eq!(report.handlers[2].messages, 3);
/// assert_eq!(results.iter().collect::<Vec<_>>(), [2, 4, 6]);
/// # Ok(())
/// # }
/// ```
pub struct Staged<T, P> {
    ring: P,
    stages: Vec<StageHandlers<T>>,
    on_panic: OnPanic,
    cpus: Vec<usize>,
}

/// The handlers of one stage.
struct StageHandlers<T> {
    slots: Vec<HandlerSlot<T>>,
    shares_work: bool,
}

/// The ends of the ring that a stage's handlers read.
type Ends<T> = Vec<Box<dyn EventSource<T>>>;

impl<T: Send + Sync + 'static, P: HandlerRing<T>> Staged<T, P> {
    pub(crate) const fn new(ring: P) -> Self {
        Self { ring, stages: Vec::new(), on_panic: OnPanic::Halt, cpus: Vec::new() }
    }

    /// Adds a stage: its handlers see a message once the stage before has handled it.
    #[must_use]
    pub fn then<K>(mut self, stage: impl Stage<T, K>) -> Self {
        self.stages.push(StageHandlers { slots: stage.slots(), shares_work: false });
        self
    }

    /// Adds the last stage: its handlers share the messages, each message for one of them.
    #[must_use]
    pub fn share_among<K, S: Stage<T, K>>(mut self, handlers: Vec<S>) -> Self {
        let slots = handlers.into_iter().flat_map(S::slots).collect();
        self.stages.push(StageHandlers { slots, shares_work: true });
        self
    }

    /// Policy for a handler that panics; [`OnPanic::Halt`] by default.
    #[must_use]
    pub const fn on_panic(mut self, on_panic: OnPanic) -> Self {
        self.on_panic = on_panic;
        self
    }

    /// Pins the handlers' threads to these CPUs, in turn; to none if the list is empty.
    #[must_use]
    pub fn pin(mut self, cpus: &[usize]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// Starts a thread for each handler and returns when all of them run.
    ///
    /// # Errors
    /// See [`StartError`]; no thread runs then.
    pub fn start(mut self) -> Result<Handlers<T, P::Producers>, StartError> {
        let ends = self.ends()?;
        let (producers, control) = self.ring.complete()?;
        let shared = Arc::new(HandlersShared::new(control));
        let mut handlers = Handlers::new(producers, Arc::clone(&shared));
        let mut before = None;
        let mut cpus = self.cpus.iter().copied().cycle();
        for (stage, (row, ends)) in self.stages.into_iter().zip(ends).enumerate() {
            let stage_count = Arc::new(StageCount::new(row.slots.len()));
            for (number, (slot, source)) in row.slots.into_iter().zip(ends).enumerate() {
                let name = format!("handler-{}-{}", stage + 1, number + 1);
                let name = slot.name.clone().unwrap_or(name);
                let handled = Arc::new(AtomicU64::new(0));
                let record = HandlerRecord::new(name, self.on_panic, Arc::clone(&handled));
                let (shared, stage_count) = (Arc::clone(&shared), Arc::clone(&stage_count));
                let guard = StageGuard { shared, stage_count, before: before.clone() };
                let thread = HandlerThread { source, guard, record };
                handlers.add(start_one(slot, thread, cpus.next(), handled)?);
            }
            before = Some(stage_count);
        }
        handlers.wait_until_started()?;
        Ok(handlers)
    }

    /// Adds an event source for each handler.
    fn ends(&mut self) -> Result<Vec<Ends<T>>, StartError> {
        let mut whole: Vec<Vec<P::End>> = Vec::new();
        let mut shared = Vec::new();
        for (number, row) in self.stages.iter().enumerate() {
            let stage = number + 1;
            if row.slots.is_empty() {
                return Err(StartError::EmptyStage(stage));
            }
            if row.shares_work && stage < self.stages.len() {
                return Err(StartError::AfterSharing(stage));
            }
            let before: Vec<&P::End> = whole.last().into_iter().flatten().collect();
            if row.shares_work {
                shared = self.ring.share(row.slots.len(), &before)?;
            } else {
                let ends = row.slots.iter().map(|_| self.ring.add(&before));
                let ends = ends.collect::<Result<_, _>>()?;
                whole.push(ends);
            }
        }
        let boxed = |end| Box::new(end) as Box<dyn EventSource<T>>;
        let mut ends: Vec<Ends<T>> =
            whole.into_iter().map(|ends| ends.into_iter().map(boxed).collect()).collect();
        ends.push(shared.into_iter().map(|end| Box::new(end) as Box<dyn EventSource<T>>).collect());
        Ok(ends)
    }
}

fn start_one<T: Send + Sync + 'static>(
    slot: HandlerSlot<T>,
    thread: HandlerThread<T>,
    cpu: Option<usize>,
    handled: Arc<AtomicU64>,
) -> Result<RunningThread<T>, StartError> {
    let name = thread.record.name.clone();
    let builder = std::thread::Builder::new().name(name.replace('\0', " "));
    let start_signal = Arc::new(StartSignal::new());
    let begin = {
        let start_signal = Arc::clone(&start_signal);
        move || {
            let pinned = cpu.map_or(Ok(()), affinity::pin);
            start_signal.tell(pinned.is_ok());
            pinned.map(|()| (slot.work)(thread))
        }
    };
    match builder.spawn(begin) {
        Ok(join) => Ok(RunningThread { name, handled, start_signal, join }),
        Err(error) => Err(StartError::Thread { handler: name, error }),
    }
}

impl<T, P> fmt::Debug for Staged<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = self.stages.iter().map(|row| &row.slots);
        f.debug_list().entries(stages).finish()
    }
}
