//! The experiments of the Y-suite document: messages between two threads through pipes and
//! signals, with local sockets beside them.
//!
//! The document measures on an Athlon 64 X2 3800+ and gives the time of one message (its density):
//! alone, to a reader that sleeps each time, and flat out, one by one or in batches. A message has
//! the size of a pointer.

mod case;
mod link;
mod piped;
mod reference;
mod run;
mod series;
mod sockets;

pub(crate) use case::as_text;
pub use case::{Case, Experiment, Seats, Transport};
pub use reference::Reference;
pub use run::{PipesResult, Settings, run};
pub use series::{BATCHES, QUICK_BATCHES, Series, Wanted};

#[cfg(test)]
mod tests;
