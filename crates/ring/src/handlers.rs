//! Rings whose consumers are called: one thread for each handler.
//!
//! Handlers of one stage run side by side and each sees every message; a later stage sees what all
//! handlers of the stage before it are done with. Panics stay in their thread and are reported.

mod arrival;
mod build;
mod feed;
#[cfg(all(test, loom))]
mod loom;
mod panics;
mod post;
mod running;
mod stage;

pub use build::{Staged, StartError};
pub use panics::{OnPanic, Panicked};
pub use running::{Handled, Handlers, Report};
pub use stage::Stage;

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// How many messages this handler was given before: with one producer and no sharing, the
    /// message's number in the stream.
    pub sequence: u64,
    /// Whether nothing more is there for now: time to flush what was gathered. With several
    /// producers, nothing more of this one; for those who share work, always.
    pub last_in_batch: bool,
}

/// What is done with each message. Closures `FnMut(&T, Place)` are handlers, too.
///
/// All calls come from one thread, the handler's own.
pub trait Handler<T>: Send {
    /// Handles one message, in place.
    fn on_event(&mut self, event: &T, place: Place);

    /// Called before the first message.
    fn on_start(&mut self) {}

    /// Called after the last message, unless the handler was halted by a panic.
    fn on_end(&mut self) {}

    /// Called each time that the handler has run out of messages.
    fn on_idle(&mut self) {}
}

impl<T, F: FnMut(&T, Place) + Send> Handler<T> for F {
    #[inline(always)]
    fn on_event(&mut self, event: &T, place: Place) {
        self(event, place);
    }
}

/// A handler with a name, by which its thread and its panics are known; made by [`named`].
#[derive(Clone, Debug)]
pub struct Named<H> {
    name: String,
    handler: H,
}

/// Gives `handler` a name, of which the system shows the first 15 bytes.
pub fn named<H>(name: impl Into<String>, handler: H) -> Named<H> {
    Named { name: name.into(), handler }
}
