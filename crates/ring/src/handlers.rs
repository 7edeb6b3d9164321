//! Event handlers: rings whose messages are passed to callbacks, one thread per handler.
//!
//! Handlers of one stage run side by side and each sees every message; a later stage sees a message
//! once all handlers of the stage before have handled it. Panics stay in their thread and are
//! reported. `build` assigns the handlers to an `event_source` each and starts a `handler_thread`
//! for each; `running` ends them.

mod build;
mod event_source;
mod handler;
mod handler_thread;
#[cfg(all(test, loom))]
mod loom;
mod panics;
mod report;
mod running;
mod stage;
mod start_signal;

pub use build::Staged;
pub(crate) use event_source::{HandlerRing, RingControl, RingSet};
pub use handler::{EventInfo, Handler, Named, named};
pub use panics::{OnPanic, Panicked};
pub use report::{Handled, Report};
pub use running::{Handlers, StartError};
pub use stage::Stage;
