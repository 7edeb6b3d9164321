//! The counters file: what a process tells about itself to whoever looks. See
//! `docs/protocol/stats.md`.
//!
//! ```text
//! 0      StatsHeader     never changes
//! 4096   CounterEntry[]  a value and its label
//! then   ErrorEntry[]    distinct errors, each with a count and two times
//! ```

use lanecast_base::sync::{AtomicU32, AtomicU64};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of a counters file.
pub const STATS_MAGIC: [u8; 8] = *b"LANESTAT";
/// The version of the layout.
pub const STATS_VERSION: u32 = 1;
/// Where the counters start.
pub const COUNTERS_OFFSET: usize = 4096;
/// The most counters of one file.
pub const COUNTERS_MAX: u32 = 1024;
/// The most distinct errors of one file.
pub const ERRORS_MAX: u32 = 1024;
/// The longest label, in bytes of UTF-8.
pub const LABEL_MAX: usize = 112;
/// The longest error text, in bytes of UTF-8; longer ones are cut.
pub const ERROR_TEXT_MAX: usize = 480;

/// The file's first bytes; they never change.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct StatsHeader {
    /// [`STATS_MAGIC`].
    pub magic: [u8; 8],
    /// [`STATS_VERSION`].
    pub version: U32,
    /// How many counters follow.
    pub counters: U32,
    /// How many error entries follow the counters.
    pub errors: U32,
    /// The process's number.
    pub pid: U32,
    /// The namespace that the process number belongs to.
    pub namespace: U64,
    /// When the process started, in clock ticks since boot.
    pub start_time: U64,
    /// The process's name, padded with zeros.
    pub name: [u8; 16],
}

impl StatsHeader {
    /// Reads and checks a header; `bytes` may come from anybody.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (header, _) = Self::read_from_prefix(bytes).ok()?;
        let sane = header.magic == STATS_MAGIC
            && header.version.get() == STATS_VERSION
            && header.counters.get() <= COUNTERS_MAX
            && header.errors.get() <= ERRORS_MAX;
        sane.then_some(header)
    }
}

/// The file's length.
pub const fn stats_bytes(counters: u32, errors: u32) -> u64 {
    errors_offset(counters) as u64 + errors as u64 * size_of::<ErrorEntry>() as u64
}

/// Where the errors start.
pub const fn errors_offset(counters: u32) -> usize {
    COUNTERS_OFFSET + counters as usize * size_of::<CounterEntry>()
}

/// A value and its label; the label is there before the file has a name.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct CounterEntry {
    /// The value.
    pub value: AtomicU64,
    /// The label's length in bytes.
    pub length: AtomicU32,
    _reserved: u32,
    /// The label, UTF-8.
    pub label: [u8; LABEL_MAX],
}

/// A distinct error. `count` is written last; 0: the entry is free.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ErrorEntry {
    /// How often it happened.
    pub count: AtomicU64,
    /// When it happened first, in nanoseconds since 1970.
    pub first_unix_ns: AtomicU64,
    /// When it happened last, in nanoseconds since 1970.
    pub last_unix_ns: AtomicU64,
    /// The text's length in bytes.
    pub length: AtomicU32,
    _reserved: u32,
    /// What happened, UTF-8.
    pub text: [u8; ERROR_TEXT_MAX],
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<StatsHeader>() == 56);
    assert!(size_of::<CounterEntry>() == 128);
    assert!(size_of::<ErrorEntry>() == 512);
};
