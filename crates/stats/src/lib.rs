//! Counters, distinct errors, a loss log and sums of losses in a mapped file, which other processes
//! read without cost to the process that counts.
//!
//! - writing: [`CounterLayout`] (`layout`) describes a file, `header` writes its fixed part,
//!   [`Counters`] (`writer`) count, log each [`Loss`] (`loss`) and sum them up (`loss_totals`);
//! - reading: [`read_file`] (`reader`) copies one file, [`StatsSnapshot`] (`snapshot`) all files of
//!   a domain, and the rates between two snapshots.

mod clock;
mod header;
mod layout;
mod loss;
mod loss_totals;
mod reader;
mod snapshot;
mod writer;

pub use clock::unix_ns;
pub use layout::{CounterLayout, CounterOwner, EXTENSION, Role};
pub use loss::{Loss, LossCause, LossOutcome, LossReport};
pub use loss_totals::{LossCount, LossTotals};
pub use reader::{CounterReport, ErrorReport, StatsReport, list_files, read_file};
pub use snapshot::{StatsSnapshot, per_second};
pub use writer::{Counters, CountersError};
