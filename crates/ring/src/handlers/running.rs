//! Running handlers: their threads, and the end of their stream.

use super::event_source::EventSource;
use super::handler_thread::HandlersShared;
use super::panics::Panicked;
use super::report::{Handled, Report};
use super::start_signal::StartSignal;
use crate::error::BuildError;
use crate::producer::Producer;
use core::fmt;
use lanecast_base::sync::{AtomicU64, Ordering};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Handlers cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ring does not allow it.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A stage has no handlers.
    #[error("stage {0} has no handlers: give it at least one")]
    EmptyStage(usize),
    /// A stage follows one that shares its work.
    #[error("stage {0} shares its work, so no stage can follow it: let it be the last")]
    AfterSharing(usize),
    /// The system refuses a thread.
    #[error("cannot start a thread for handler {handler}: {error}")]
    Thread {
        /// Name of the handler.
        handler: String,
        /// The system's error.
        error: io::Error,
    },
    /// A handler's thread cannot be pinned to its CPU.
    #[error("cannot pin handler {handler} to its CPU: {error}")]
    Pin {
        /// Name of the handler.
        handler: String,
        /// The system's error.
        error: io::Error,
    },
}

/// The running handlers of a ring, and the ring's producer or producers.
///
/// A drop does as [`finish`](Self::finish), without its result.
pub struct Handlers<T, Producers> {
    producers: Option<Producers>,
    shared: Arc<HandlersShared>,
    threads: Vec<RunningThread<T>>,
}

/// A handler's thread.
pub(super) struct RunningThread<T> {
    pub(super) name: String,
    pub(super) handled: Arc<AtomicU64>,
    pub(super) start_signal: Arc<StartSignal>,
    /// Returns its event source, or the error of its start.
    pub(super) join: JoinHandle<io::Result<Box<dyn EventSource<T>>>>,
}

impl<T, Producers> Handlers<T, Producers> {
    pub(super) const fn new(producers: Producers, shared: Arc<HandlersShared>) -> Self {
        Self { producers: Some(producers), shared, threads: Vec::new() }
    }

    pub(super) fn add(&mut self, thread: RunningThread<T>) {
        self.threads.push(thread);
    }

    /// Waits until all threads have started; returns the error of the first that has not.
    pub(super) fn wait_until_started(&mut self) -> Result<(), StartError> {
        let Some(lost) = self.threads.iter().position(|thread| !thread.start_signal.wait()) else {
            return Ok(());
        };
        let RunningThread { name: handler, join, .. } = self.threads.swap_remove(lost);
        match join.join() {
            Ok(Err(error)) => Err(StartError::Pin { handler, error }),
            // The thread has reported a failure, so it returns an error.
            _ => Err(StartError::Pin { handler, error: io::ErrorKind::Other.into() }),
        }
    }

    /// Closes the ring, lets every stage handle what is published, and joins the threads.
    ///
    /// A producer taken out by [`split`](Self::split) sees that the ring is closed once it has used
    /// up its known free slots; values that it publishes after this call may stay unread.
    ///
    /// # Errors
    /// If handlers have panicked: the first panic's handler, message and text.
    pub fn finish(mut self) -> Result<Report, Panicked> {
        self.end()
    }

    fn end(&mut self) -> Result<Report, Panicked> {
        // Publishes the values that a stride holds back.
        self.producers = None;
        self.shared.close();
        let mut report = Report::default();
        // Event sources live until all handlers have ended: halted ones gate the later stages.
        let mut feeds = Vec::new();
        for RunningThread { name, handled, join, .. } in self.threads.drain(..) {
            let result = join.join();
            let messages = handled.load(Ordering::Relaxed);
            match result {
                Ok(source) => feeds.extend(source),
                Err(payload) => self.shared.panics.record(&name, messages, &*payload),
            }
            report.handlers.push(Handled { handler: name, messages });
        }
        self.shared.panics.result(report)
    }

    /// Takes the producer or the producers out, for other threads.
    #[must_use]
    pub fn split(mut self) -> (Producers, Handlers<T, ()>) {
        let producers = self.producers.take().expect("taken once");
        let shared = Arc::clone(&self.shared);
        let threads = core::mem::take(&mut self.threads);
        (producers, Handlers { producers: None, shared, threads })
    }
}

impl<T> Handlers<T, Producer<T>> {
    /// The ring's producer; [`split`](Self::split) takes it out.
    pub fn producer(&mut self) -> &mut Producer<T> {
        self.producers.as_mut().expect("`split` alone takes it")
    }
}

impl<T> Handlers<T, Vec<Producer<T>>> {
    /// The ring's producers, taken out for other threads: none if they have been.
    pub fn producers(&mut self) -> Vec<Producer<T>> {
        self.producers.as_mut().map(core::mem::take).unwrap_or_default()
    }
}

impl<T, Producers> Drop for Handlers<T, Producers> {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            // A drop returns no error; each panic was printed when it happened.
            let _ = self.end();
        }
    }
}

impl<T, Producers> fmt::Debug for Handlers<T, Producers> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.threads.iter().map(|thread| &thread.name);
        f.debug_list().entries(names).finish()
    }
}
