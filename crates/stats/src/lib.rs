//! Counters and distinct errors in a mapped file that anybody with the right may read, at no
//! cost to the process that counts.

mod look;
mod reader;
mod writer;

pub use look::{Look, per_second};
pub use reader::{CounterReport, ErrorReport, StatsReport, files, read};
pub use writer::{Counters, CountersError};

/// The ending of a counters file's name.
pub const EXTENSION: &str = "stats";
