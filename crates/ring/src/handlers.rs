//! Rings whose consumers are called: one thread for each handler.
//!
//! Handlers of one stage run side by side and each sees every message; a later stage sees what all
//! handlers of the stage before it are done with. Panics stay in their thread and are reported.

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
