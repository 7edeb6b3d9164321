//! The counters file, by which a process publishes its counters to other processes. See
//! `docs/protocol/stats.md`.
//!
//! ```text
//! 0      StatsHeader     never changes
//! 512    TopicList       names are only ever added
//! 4096   CounterEntry[]  a value and its label
//! then   ErrorEntry[]    distinct errors, each with a count and two times
//! then   LossEntry[]     a ring: the latest losses
//! then   LossTotal[]     sums of the losses of one session on one topic
//! ```

use lanecast_base::sync::{AtomicU32, AtomicU64};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// The first bytes of a counters file.
pub const STATS_MAGIC: [u8; 8] = *b"LANESTAT";
/// The version of the layout.
pub const STATS_VERSION: u32 = 3;
/// Offset of the names of topics.
pub const TOPICS_OFFSET: usize = 512;
/// Offset of the counters.
pub const COUNTERS_OFFSET: usize = 4096;
/// The most counters of one file.
pub const COUNTERS_MAX: u32 = 1024;
/// The most distinct errors of one file.
pub const ERRORS_MAX: u32 = 1024;
/// The most entries of a loss log.
pub const LOSSES_MAX: u32 = 1024;
/// The most sums of losses of one file.
pub const TOTALS_MAX: u32 = 1024;
/// The longest label, in bytes of UTF-8.
pub const LABEL_MAX: usize = 112;
/// The longest error text, in bytes of UTF-8; longer ones are cut.
pub const ERROR_TEXT_MAX: usize = 480;
/// Room for the names of topics, in bytes of UTF-8, each followed by a zero.
pub const TOPICS_TEXT_MAX: usize = 3576;
/// The longest source of a loss, in bytes of UTF-8; longer ones are cut.
pub const LOSS_SOURCE_MAX: usize = 128;
/// The longest topic of a loss, in bytes of UTF-8; longer ones are cut.
pub const LOSS_TOPIC_MAX: usize = 64;
/// The file is about a process as a whole.
pub const ROLE_PROCESS: u32 = 0;
/// The file is about a session that the process publishes.
pub const ROLE_PUBLISHER: u32 = 1;
/// The file is about a session that the process subscribes to.
pub const ROLE_SUBSCRIBER: u32 = 2;
/// The file is about a membership of the process in a group.
pub const ROLE_MEMBER: u32 = 3;
/// The file is about a store.
pub const ROLE_STORE: u32 = 4;
/// Datagrams that were missing, and were sent again.
pub const LOSS_REPAIRED: u32 = 1;
/// Datagrams that were given up.
pub const LOSS_GIVEN_UP: u32 = 2;
/// Datagrams that were missing, and were rebuilt from parity.
pub const LOSS_REBUILT: u32 = 4;
/// Messages that a subscriber was told it will not get.
pub const LOSS_TOLD: u32 = 3;
/// Datagrams that seemed to be missing, and came late by themselves.
pub const LOSS_LATE: u32 = 5;
/// Why something was given up: nothing was.
pub const WHY_NONE: u32 = 0;
/// No repair came in time.
pub const WHY_GAVE_UP: u32 = 1;
/// The publisher does not keep it any more.
pub const WHY_GONE: u32 = 2;
/// The publisher went on without the subscriber.
pub const WHY_SKIPPED: u32 = 3;
/// The publisher took the subscriber's place away.
pub const WHY_EVICTED: u32 = 4;
/// Received but invalid.
pub const WHY_DAMAGED: u32 = 5;
/// The number of lost messages is not known.
pub const COUNT_UNKNOWN: u64 = u64::MAX;

/// The file's first bytes; they never change.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct StatsHeader {
    /// [`STATS_MAGIC`].
    pub magic: [u8; 8],
    /// [`STATS_VERSION`].
    pub version: U32,
    /// Number of counters.
    pub counters: U32,
    /// Number of error entries after the counters.
    pub errors: U32,
    /// The process's number.
    pub pid: U32,
    /// The namespace that the process number belongs to.
    pub namespace: U64,
    /// When the process started, in clock ticks since boot.
    pub start_time: U64,
    /// The process's name, padded with zeros.
    pub name: [u8; 16],
    /// Subject of the file: [`ROLE_PROCESS`] and others.
    pub role: U32,
    /// Number of entries of the loss log after the errors.
    pub losses: U32,
    /// The session that it is about; 0: none.
    pub session: U64,
    /// When the file was made, in nanoseconds since 1970.
    pub opened_unix_ns: U64,
    /// Transport of the session, padded with zeros.
    pub transport: [u8; 16],
    /// The publisher's address, padded with zeros.
    pub address: [u8; 64],
    /// The group that the session is sent to, padded with zeros.
    pub group: [u8; 64],
    /// Number of sums of losses after the loss log.
    pub totals: U32,
    /// Zero.
    pub reserved: U32,
}

/// Fault of a counters file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// Too short for a header, or with other first bytes.
    #[error("not a counters file of lanecast")]
    Foreign,
    /// Layout of another version of lanecast.
    #[error(
        "the counters are of version {found}, this program reads version {STATS_VERSION}: \
         read them with the version of lanecast that wrote them, or use one version"
    )]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// Numbers of entries, a role or a length that no process writes.
    #[error("a damaged counters file")]
    Damaged,
}

impl StatsHeader {
    /// Reads and checks a header; `bytes` may come from anybody.
    ///
    /// # Errors
    /// If it is not ours, not this version's, or counts more entries than a file may have.
    pub fn read(bytes: &[u8]) -> Result<Self, StatsError> {
        let (header, _) = Self::read_from_prefix(bytes).map_err(|_| StatsError::Foreign)?;
        if header.magic != STATS_MAGIC {
            return Err(StatsError::Foreign);
        }
        if header.version.get() != STATS_VERSION {
            return Err(StatsError::Version { found: header.version.get() });
        }
        let is_sane = header.counters.get() <= COUNTERS_MAX
            && header.errors.get() <= ERRORS_MAX
            && header.losses.get() <= LOSSES_MAX
            && header.totals.get() <= TOTALS_MAX;
        if is_sane { Ok(header) } else { Err(StatsError::Damaged) }
    }
}

/// Entries of each kind, which determine the offset of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Counters.
    pub counters: u32,
    /// Error entries.
    pub errors: u32,
    /// Entries of the loss log.
    pub losses: u32,
    /// Sums of losses.
    pub totals: u32,
}

impl Shape {
    /// Offset of the errors.
    pub const fn errors_offset(self) -> usize {
        COUNTERS_OFFSET + self.counters as usize * size_of::<CounterEntry>()
    }

    /// Offset of the loss log.
    pub const fn losses_offset(self) -> usize {
        self.errors_offset() + self.errors as usize * size_of::<ErrorEntry>()
    }

    /// Offset of the sums of losses.
    pub const fn totals_offset(self) -> usize {
        self.losses_offset() + self.losses as usize * size_of::<LossEntry>()
    }

    /// The file's length.
    pub const fn file_bytes(self) -> u64 {
        self.totals_offset() as u64 + self.totals as u64 * size_of::<LossTotal>() as u64
    }
}

/// The names of a session's topics. Names are added behind the others, and `length` is written
/// last; those for which there is no room are left out.
#[derive(Debug)]
#[repr(C)]
pub struct TopicList {
    /// Valid bytes of the text.
    pub length: AtomicU32,
    _reserved: u32,
    /// The names, UTF-8, each followed by a zero.
    pub text: [u8; TOPICS_TEXT_MAX],
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
    /// Number of occurrences.
    pub count: AtomicU64,
    /// When it happened first, in nanoseconds since 1970.
    pub first_unix_ns: AtomicU64,
    /// When it happened last, in nanoseconds since 1970.
    pub last_unix_ns: AtomicU64,
    /// The text's length in bytes.
    pub length: AtomicU32,
    _reserved: u32,
    /// Text of the error, UTF-8.
    pub text: [u8; ERROR_TEXT_MAX],
}

/// A loss. `number` is 0 while the entry is written, and is written last.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct LossEntry {
    /// Place in the log, from 1; 0: the entry is free, or being written.
    pub number: AtomicU64,
    /// When it was noticed, in nanoseconds since 1970.
    pub unix_ns: AtomicU64,
    /// Time until its end, in nanoseconds.
    pub after_ns: AtomicU64,
    /// The session.
    pub session: AtomicU64,
    /// The first datagram's sequence, or the first message's number.
    pub first: AtomicU64,
    /// Number of messages; [`COUNT_UNKNOWN`].
    pub count: AtomicU64,
    /// [`LOSS_REPAIRED`] and others.
    pub what: AtomicU32,
    /// Why it was given up: [`WHY_NONE`] and others.
    pub why: AtomicU32,
    /// The source's length in bytes.
    pub source_length: AtomicU32,
    /// The topic's length in bytes; 0: of no one topic.
    pub topic_length: AtomicU32,
    /// Source of the session, UTF-8.
    pub source: [u8; LOSS_SOURCE_MAX],
    /// The topic, UTF-8.
    pub topic: [u8; LOSS_TOPIC_MAX],
}

/// Losses of one outcome: how many, and when.
#[derive(Debug)]
#[repr(C)]
pub struct LossSum {
    /// Number of datagrams, or of messages as far as it is known.
    pub count: AtomicU64,
    /// When the first was noticed, in nanoseconds since 1970.
    pub first_unix_ns: AtomicU64,
    /// When the last was noticed, in nanoseconds since 1970.
    pub last_unix_ns: AtomicU64,
    /// The longest time until the end, in nanoseconds.
    pub longest_ns: AtomicU64,
}

/// Sums of the losses of one session on one topic. `number` is 0 while the entry gets another
/// session and topic; the sums change one by one.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct LossTotal {
    /// The how-manieth session and topic of the file it is, from 1; 0: the entry is free, or being
    /// given to another.
    pub number: AtomicU64,
    /// The session.
    pub session: AtomicU64,
    /// The source's length in bytes.
    pub source_length: AtomicU32,
    /// The topic's length in bytes; 0: of no one topic.
    pub topic_length: AtomicU32,
    /// Datagrams that came late.
    pub late: LossSum,
    /// Datagrams that were sent again.
    pub repaired: LossSum,
    /// Datagrams that were rebuilt from parity.
    pub rebuilt: LossSum,
    /// Datagrams that were given up.
    pub given_up: LossSum,
    /// Messages that a subscriber was told it will not get.
    pub told: LossSum,
    /// Source of the session, UTF-8.
    pub source: [u8; LOSS_SOURCE_MAX],
    /// The topic, UTF-8.
    pub topic: [u8; LOSS_TOPIC_MAX],
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<StatsHeader>() == 232);
    assert!(TOPICS_OFFSET + size_of::<TopicList>() <= COUNTERS_OFFSET);
    assert!(size_of::<CounterEntry>() == 128);
    assert!(size_of::<ErrorEntry>() == 512);
    assert!(size_of::<LossEntry>() == 256);
    assert!(size_of::<LossTotal>() == 384);
};

#[cfg(all(test, not(loom)))]
mod tests;
