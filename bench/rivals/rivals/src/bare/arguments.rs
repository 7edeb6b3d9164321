//! Arguments of the measurements in one direction.

use clap::Args;

/// CPUs, rate and time.
#[derive(Args, Clone, Debug)]
pub struct OneWayArgs {
    /// CPU of the writing side
    #[arg(long, default_value_t = 0)]
    pub from_cpu: usize,
    /// CPU of the reading side
    #[arg(long, default_value_t = 1)]
    pub to_cpu: usize,
    /// Transfers per second; not used by the copy
    #[arg(long, default_value_t = 1_000_000)]
    pub rate: u64,
    /// Milliseconds of measured time
    #[arg(long, default_value_t = 500)]
    pub duration_ms: u64,
    /// Milliseconds of unmeasured time before
    #[arg(long, default_value_t = 100)]
    pub warmup_ms: u64,
}
