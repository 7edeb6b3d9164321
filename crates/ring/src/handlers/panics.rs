//! Panics of handlers: contained, counted, and the first one kept.

use super::report::Report;
use core::any::Any;
use std::sync::{Mutex, PoisonError};

/// What happens to a handler that panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPanic {
    /// The handler stops, and the ring is closed to producers. Stages behind it see what it has
    /// finished; those beside and before it finish what is published.
    #[default]
    Halt,
    /// The message counts as consumed, and the handler goes on with the next.
    Skip,
}

/// A handler has panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("handler {handler} panicked at message {sequence}: {message} (panics in all: {count})")]
pub struct Panicked {
    /// The handler that was the first to panic.
    pub handler: String,
    /// Where: the message's [`sequence`](super::handler::EventInfo::sequence), or that of the next one if there
    /// was none at the time.
    pub sequence: u64,
    /// The panic's words.
    pub message: String,
    /// How many panics there were in all.
    pub count: u64,
    /// What the handlers have done all the same.
    pub report: Report,
}

/// The panics of a ring's handlers.
#[derive(Debug, Default)]
pub(super) struct Panics {
    first: Mutex<Option<Panicked>>,
}

impl Panics {
    /// Notes a panic of `handler` with what it has left behind.
    pub(super) fn note(&self, handler: &str, sequence: u64, payload: &(dyn Any + Send)) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let panicked = first.get_or_insert_with(|| Panicked {
            handler: handler.to_owned(),
            sequence,
            message: words(payload).to_owned(),
            count: 0,
            report: Report::default(),
        });
        panicked.count += 1;
    }

    /// The first of them, with `report`; or just `report` if there was none.
    pub(super) fn verdict(&self, report: Report) -> Result<Report, Panicked> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        match first {
            Some(panicked) => Err(Panicked { report, ..panicked }),
            None => Ok(report),
        }
    }
}

/// What a panic said.
fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
