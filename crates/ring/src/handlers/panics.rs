//! Panics of handlers: contained, counted, and the first one kept.

use super::report::Report;
use core::any::Any;
use std::sync::{Mutex, PoisonError};

/// Policy for a handler that panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPanic {
    /// Stop the handler and the producers. Later stages see the messages that it has handled; other
    /// handlers finish the published messages.
    #[default]
    Halt,
    /// Count the message as consumed and continue with the next.
    Skip,
}

/// A handler has panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("handler {handler} panicked at message {sequence}: {message} (panics in all: {count})")]
pub struct Panicked {
    /// The handler that was the first to panic.
    pub handler: String,
    /// The message's [`sequence`](super::handler::EventInfo::sequence), or that of the next message
    /// if the panic was outside of a message.
    pub sequence: u64,
    /// The panic's text.
    pub message: String,
    /// Number of panics in all.
    pub count: u64,
    /// Work of the handlers.
    pub report: Report,
}

/// The panics of a ring's handlers.
#[derive(Debug, Default)]
pub(super) struct Panics {
    first: Mutex<Option<Panicked>>,
}

impl Panics {
    /// Records a panic of `handler` with its payload.
    pub(super) fn record(&self, handler: &str, sequence: u64, payload: &(dyn Any + Send)) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let panicked = first.get_or_insert_with(|| Panicked {
            handler: handler.to_owned(),
            sequence,
            message: text(payload).to_owned(),
            count: 0,
            report: Report::default(),
        });
        panicked.count += 1;
    }

    /// The first panic with `report`; `report` alone without a panic.
    pub(super) fn result(&self, report: Report) -> Result<Report, Panicked> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        match first {
            Some(panicked) => Err(Panicked { report, ..panicked }),
            None => Ok(report),
        }
    }
}

/// Text of a panic.
fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
