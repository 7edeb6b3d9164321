//! One handler at work, on its own thread.

use super::event_source::{EventSource, RingControl};
use super::handler::{EventInfo, Handler};
use super::panics::{OnPanic, Panics};
use lanecast_base::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What all handlers of a ring share.
pub(super) struct HandlersShared {
    pub(super) panics: Panics,
    /// Nothing more is to be waited for from producers.
    closing: AtomicBool,
    pub(super) control: Box<dyn RingControl>,
}

impl HandlersShared {
    pub(super) fn new(control: Box<dyn RingControl>) -> Self {
        Self { panics: Panics::default(), closing: AtomicBool::new(false), control }
    }

    /// Ends the stream after what is published by now.
    pub(super) fn close(&self) {
        // PAIRS(handlers-closing): release here, acquire in `StageGuard::is_over`.
        self.closing.store(true, Ordering::Release);
        self.control.stop_producer();
        self.control.wake_all();
    }
}

/// The handlers of a stage that are still at work.
#[derive(Debug)]
pub(super) struct StageCount(AtomicUsize);

impl StageCount {
    pub(super) fn new(count: usize) -> Self {
        Self(AtomicUsize::new(count))
    }
}

/// A handler's presence in its stage; dropped, the stage behind may be over.
pub(super) struct StageGuard {
    pub(super) shared: Arc<HandlersShared>,
    pub(super) stage_count: Arc<StageCount>,
    /// The stage before.
    pub(super) before: Option<Arc<StageCount>>,
}

impl StageGuard {
    /// Whether nothing more comes than is there now.
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
        // PAIRS(handlers-crew): release here, acquire in `is_over`; each of a stage hands on what
        // those that left before it did, because a decrement continues their releases.
        self.stage_count.0.fetch_sub(1, Ordering::Release);
        self.shared.control.wake_all();
    }
}

/// One handler's place: what it is fed from, and what is known of it.
pub(super) struct HandlerThread<T> {
    pub(super) source: Box<dyn EventSource<T>>,
    pub(super) guard: StageGuard,
    pub(super) record: HandlerRecord,
}

/// What becomes of a handler's messages.
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

    /// Hands over `values` one by one; returns how many are done with. All are, unless a panic
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

    /// All before `sequence` is consumed, what is new without a panic.
    fn count(&mut self, sequence: u64) {
        // Relaxed: read after the thread was joined.
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
        shared.panics.note(&self.name, self.sequence, payload);
        if self.on_panic == OnPanic::Halt {
            self.halted = true;
            shared.control.stop_producer();
        }
    }
}

/// A handler's whole life. Gives its end of the ring back, which keeps those behind where they
/// are if the handler was halted.
pub(super) fn work<T, H: Handler<T>>(
    mut thread: HandlerThread<T>,
    mut handler: H,
) -> Box<dyn EventSource<T>> {
    let HandlerThread { source, guard, record } = &mut thread;
    let shared = &*guard.shared;
    record.guard(shared, || handler.on_start());
    let mut is_busy = false;
    while !record.halted {
        // Asked first: what was published before the end is there when it is looked for now.
        let is_over = guard.is_over() || source.is_closed();
        let work = source
            .take(&mut |values, is_last| record.hand_over(&mut handler, values, is_last, shared));
        if work == 0 {
            if is_over {
                break;
            }
            if core::mem::take(&mut is_busy) {
                record.guard(shared, || handler.on_idle());
            }
        } else {
            is_busy = true;
        }
        source.wait(work, &|| guard.is_over());
    }
    record.guard(shared, || handler.on_end());
    let dropped = catch_unwind(AssertUnwindSafe(move || drop(handler)));
    if let Err(payload) = dropped {
        record.note(shared, &*payload);
    }
    thread.source
}
