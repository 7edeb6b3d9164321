//! The series of the SMX document: its experiments, the cases of each, and what the document
//! says of them.
//!
//! The document measures Ultra Messaging's shared-memory transport on two Xeon E5-2643 v4 at
//! 3.4 GHz, publisher and subscriber on cores of one node. This module lists the same cases; a
//! [`Run`] is the result of one repetition of one case.

mod case;
mod placement;
mod reference;
mod run;
mod series;

pub use case::{Api, Case, Experiment};
pub use placement::{Placement, PlacementError};
pub use reference::Reference;
pub use run::{Run, Skipped};
pub use series::{RunLength, Series, Step, Turn};
