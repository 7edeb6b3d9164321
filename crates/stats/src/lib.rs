//! Counters, distinct errors and a log of losses in a mapped file that anybody with the right may
//! read, at no cost to the process that counts.

mod clock;
mod look;
mod loss;
mod plan;
mod reader;
mod start;
mod writer;

pub use clock::unix_ns;
pub use look::{Look, per_second};
pub use loss::{Loss, LossEnd, LossReport, LossWhy};
pub use plan::{Plan, Role, Subject};
pub use reader::{CounterReport, ErrorReport, StatsReport, files, read};
pub use writer::{Counters, CountersError};

/// The ending of a counters file's name.
pub const EXTENSION: &str = "stats";
