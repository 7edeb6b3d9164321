//! What a publisher counts for whoever cannot enter its session.

use lanecast_base::sync::{AtomicBool, AtomicU64, AtomicUsize};

/// Numbers that are looked at from outside.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How many receivers are joined.
    pub(crate) receivers: AtomicUsize,
    /// How often a claim has found no room.
    pub(crate) back_pressured: AtomicU64,
    /// Whether commits wait for company: somebody must look whether it comes.
    pub(crate) corked: AtomicBool,
}
