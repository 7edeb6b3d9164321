//! Thread of one handler: passes messages to it, contains its panics, and ends with its stage.

use super::event_source::{EventSource, RingControl};
use super::handler::{EventInfo, Handler};
use super::panics::{OnPanic, Panics};
use lanecast_base::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// State shared by all handlers of a ring.
pub(super) struct HandlersShared {
    pub(super) panics: Panics,
    /// Handlers of the first stage stop once they have handled the published messages.
    closing: AtomicBool,
    pub(super) control: Box<dyn RingControl>,
}

impl HandlersShared {
    pub(super) fn new(control: Box<dyn RingControl>) -> Self {
        Self { panics: Panics::default(), closing: AtomicBool::new(false), control }
    }

    /// Ends the stream after the messages published so far.
    pub(super) fn close(&self) {
        // PAIRS(handlers-closing): release here, acquire in `StageGuard::is_over`.
        self.closing.store(true, Ordering::Release);
        self.control.stop_producer();
        self.control.wake_all();
    }
}

/// Number of running handlers of a stage.
#[derive(Debug)]
pub(super) struct StageCount(AtomicUsize);

impl StageCount {
    pub(super) fn new(count: usize) -> Self {
        Self(AtomicUsize::new(count))
    }
}

/// Counts a handler as running in its stage; a drop lets the next stage end.
pub(super) struct StageGuard {
    pub(super) shared: Arc<HandlersShared>,
    pub(super) stage_count: Arc<StageCount>,
    /// The stage before.
    pub(super) before: Option<Arc<StageCount>>,
}

impl StageGuard {
    /// Whether no message comes beyond those available now.
    pub(super) fn is_over(&self) -> bool {
        match &self.before {
            // PAIRS(handlers-crew): acquire here, release in `drop`.
            Some(before) => before.0.load(Ordering::Acquire) == 0,
            // PAIRS(handlers-closing): acquire here, release in `HandlersShared::close`.
            None => self.shared.closing.load(Ordering::Acquire),
        }
    }
}

impl Drop for StageGuard {
    fn drop(&mut self) {
        // PAIRS(handlers-crew): release here, acquire in `is_over`. The last decrement also passes
        // on the releases of the handlers that ended before.
        self.stage_count.0.fetch_sub(1, Ordering::Release);
        self.shared.control.wake_all();
    }
}

/// A handler's event source, stage, and record.
pub(super) struct HandlerThread<T> {
    pub(super) source: Box<dyn EventSource<T>>,
    pub(super) guard: StageGuard,
    pub(super) record: HandlerRecord,
}

/// Progress of a handler, and its policy for panics.
#[derive(Debug)]
pub(super) struct HandlerRecord {
    pub(super) name: String,
    pub(super) on_panic: OnPanic,
    /// Messages finished without a panic, for the report.
    pub(super) handled: Arc<AtomicU64>,
    /// The next message.
    sequence: u64,
    halted: bool,
}

impl HandlerRecord {
    pub(super) fn new(name: String, on_panic: OnPanic, handled: Arc<AtomicU64>) -> Self {
        Self { name, on_panic, handled, sequence: 0, halted: false }
    }

    /// Passes `values` to the handler one by one; returns the number handled: all, unless a panic
    /// halts the handler.
    fn hand_over<T>(
        &mut self,
        handler: &mut impl Handler<T>,
        values: &[T],
        is_last: bool,
        shared: &HandlersShared,
    ) -> usize {
        let first = self.sequence;
        let mut done = 0;
        while done < values.len() && !self.halted {
            let result = catch_unwind(AssertUnwindSafe(|| {
                for value in &values[done..] {
                    let end_of_batch = is_last && done + 1 == values.len();
                    let place = EventInfo { sequence: first + done as u64, end_of_batch };
                    handler.on_event(value, place);
                    done += 1;
                }
            }));
            self.count(first + done as u64);
            if let Err(payload) = result {
                self.note(shared, &*payload);
                let is_skipped = !self.halted;
                done += usize::from(is_skipped);
                self.sequence += u64::from(is_skipped);
            }
        }
        done
    }

    /// Counts the messages before `sequence` as handled without a panic.
    fn count(&mut self, sequence: u64) {
        // Relaxed: read after joining the thread.
        self.handled.fetch_add(sequence - self.sequence, Ordering::Relaxed);
        self.sequence = sequence;
    }

    /// Calls `act`, unless the handler is halted.
    fn guard(&mut self, shared: &HandlersShared, act: impl FnOnce()) {
        if self.halted {
            return;
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(act)) {
            self.note(shared, &*payload);
        }
    }

    #[cold]
    fn note(&mut self, shared: &HandlersShared, payload: &(dyn core::any::Any + Send)) {
        shared.panics.record(&self.name, self.sequence, payload);
        if self.on_panic == OnPanic::Halt {
            self.halted = true;
            shared.control.stop_producer();
        }
    }
}

/// Runs a handler until its stream ends. Returns its event source, which gates the later stages
/// while it exists: a halted handler's messages must not reach them.
pub(super) fn run_handler<T, H: Handler<T>>(
    mut thread: HandlerThread<T>,
    mut handler: H,
) -> Box<dyn EventSource<T>> {
    let HandlerThread { source, guard, record } = &mut thread;
    let shared = &*guard.shared;
    record.guard(shared, || handler.on_start());
    let mut is_busy = false;
    while !record.halted {
        // Read first: messages published before the end are then visible to `take`.
        let is_over = guard.is_over() || source.is_closed();
        if is_over {
            source.help_at_once();
        }
        let handled = source
            .take(&mut |values, is_last| record.hand_over(&mut handler, values, is_last, shared));
        if handled == 0 {
            if is_over {
                break;
            }
            if core::mem::take(&mut is_busy) {
                record.guard(shared, || handler.on_idle());
            }
        } else {
            is_busy = true;
        }
        source.wait(handled, &|| guard.is_over());
    }
    record.guard(shared, || handler.on_end());
    let dropped = catch_unwind(AssertUnwindSafe(move || drop(handler)));
    if let Err(payload) = dropped {
        record.note(shared, &*payload);
    }
    thread.source
}
