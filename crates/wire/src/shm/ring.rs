//! The ring file: what the publisher says about itself, and its messages.

use super::{
    DATA_ALIGN, HeaderError, RING_MAGIC, SUBSCRIBERS_MAX, TOPICS_MAX, VERSION, WINDOW_MAX,
    WINDOW_MIN, WINDOW_PARTS,
};
use lanecast_base::sync::{AtomicU32, AtomicU64};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Offset of [`RingLive`].
pub const RING_LIVE_OFFSET: usize = 1024;
/// Offset of the topic table.
pub const TOPICS_OFFSET: usize = 4096;
/// The longest topic name, in bytes of UTF-8.
pub const TOPIC_NAME_MAX: usize = 252;
/// [`RingLive::state`] of a publisher at work.
pub const STATE_OPEN: u32 = 1;
/// [`RingLive::state`] of a publisher that has said goodbye.
pub const STATE_CLOSED: u32 = 2;

/// [`RingHeader::flags`]: the publisher's light fences rely on sleepers' heavy ones.
pub const FLAG_LIGHT_FENCES: u32 = 1;
/// [`RingHeader::flags`]: the publisher evicts living subscribers that do not read, so that a
/// message can be overwritten while it is read.
pub const FLAG_EVICTS: u32 = 2;

/// The ring file's first bytes; they never change.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct RingHeader {
    /// [`RING_MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: U32,
    /// [`FLAG_LIGHT_FENCES`], [`FLAG_EVICTS`].
    pub flags: U32,
    /// The session's number, also the file's name.
    pub session: U64,
    /// The file's length.
    pub file_bytes: U64,
    /// The ring's length: a power of two.
    pub window_bytes: U64,
    /// Offset of the ring.
    pub data_offset: U64,
    /// The longest message.
    pub longest_message: U32,
    /// Entries of the topic table.
    pub topics_max: U32,
    /// Slots of the gate file.
    pub subscribers_max: U32,
    /// The publisher's process number.
    pub pid: U32,
    /// The namespace that the process number belongs to.
    pub namespace: U64,
    /// When the process started, in clock ticks since boot.
    pub start_time: U64,
    /// When the session was made, in nanoseconds since 1970.
    pub created_unix_ns: U64,
    /// The process's name, padded with zeros.
    pub name: [u8; 16],
}

/// The sizes that a header states, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The ring's length: a power of two.
    pub window_bytes: u64,
    /// Offset of the ring in the file.
    pub data_offset: u64,
    /// The longest message.
    pub longest_message: u32,
    /// Entries of the topic table.
    pub topics_max: u32,
    /// Slots of the gate file.
    pub subscribers_max: u32,
}

impl Limits {
    /// The sizes of a session with this window, rounded up to a power of two.
    pub fn new(window_bytes: u64, topics_max: u32, subscribers_max: u32) -> Self {
        let window_bytes = window_bytes.clamp(WINDOW_MIN, WINDOW_MAX).next_power_of_two();
        Self {
            window_bytes,
            data_offset: data_offset(topics_max),
            longest_message: (window_bytes / WINDOW_PARTS) as u32,
            topics_max,
            subscribers_max,
        }
    }

    /// Offset of the topics' message counts, one `u64` for each entry of the topic table.
    pub const fn counts_offset(&self) -> u64 {
        counts_offset(self.topics_max)
    }

    /// The ring file's length.
    pub const fn file_bytes(&self) -> u64 {
        self.data_offset + self.window_bytes
    }
}

const fn counts_offset(topics_max: u32) -> u64 {
    TOPICS_OFFSET as u64 + topics_max as u64 * size_of::<TopicEntry>() as u64
}

const fn data_offset(topics_max: u32) -> u64 {
    let counts = topics_max as u64 * size_of::<u64>() as u64;
    (counts_offset(topics_max) + counts).next_multiple_of(DATA_ALIGN)
}

impl RingHeader {
    /// Reads and checks a header; `bytes` may come from anybody.
    ///
    /// # Errors
    /// If it is not ours, not this version's, or states sizes that contradict each other.
    pub fn read(bytes: &[u8]) -> Result<(Self, Limits), HeaderError> {
        let (header, _) = Self::read_from_prefix(bytes).map_err(|_| HeaderError::Short)?;
        if header.magic != RING_MAGIC {
            return Err(HeaderError::Foreign);
        }
        if header.version.get() != VERSION {
            return Err(HeaderError::Version { found: header.version.get() });
        }
        let limits = header.limits()?;
        Ok((header, limits))
    }

    fn limits(&self) -> Result<Limits, HeaderError> {
        let damaged = |what| Err(HeaderError::Damaged(what));
        let window = self.window_bytes.get();
        if !window.is_power_of_two() || !(WINDOW_MIN..=WINDOW_MAX).contains(&window) {
            return damaged("the window");
        }
        if !(1..=TOPICS_MAX).contains(&self.topics_max.get()) {
            return damaged("the number of topics");
        }
        if !(1..=SUBSCRIBERS_MAX).contains(&self.subscribers_max.get()) {
            return damaged("the number of subscribers");
        }
        let limits = Limits::new(window, self.topics_max.get(), self.subscribers_max.get());
        if self.longest_message.get() != limits.longest_message {
            return damaged("the longest message");
        }
        if self.data_offset.get() != limits.data_offset
            || self.file_bytes.get() != limits.file_bytes()
        {
            return damaged("the file's length");
        }
        Ok(limits)
    }
}

/// Fields that the publisher changes while it runs, as their only writer.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct RingLive {
    /// The position after the last committed message.
    pub head: AtomicU64,
    _line: [u64; 15],
    /// [`STATE_OPEN`] or [`STATE_CLOSED`].
    pub state: AtomicU32,
    /// Topics in the table.
    pub topics: AtomicU32,
    /// The publisher's waiting strategy.
    pub wait: AtomicU32,
    _reserved: u32,
    /// Claims that found no room.
    pub back_pressured: AtomicU64,
    /// Living subscribers that were evicted for stalling or for invalid cursors.
    pub evictions: AtomicU64,
    /// Wake-ups of sleeping subscribers.
    pub wakes: AtomicU64,
    _line2: [u64; 11],
    /// For each slot, the lease that has ended against its owner's will; 0: none.
    pub evicted: [AtomicU64; SUBSCRIBERS_MAX as usize],
}

impl RingLive {
    /// All zero, the state not yet set.
    #[allow(clippy::new_without_default, reason = "a publisher's start is no default")]
    pub fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            _line: [0; 15],
            state: AtomicU32::new(0),
            topics: AtomicU32::new(0),
            wait: AtomicU32::new(0),
            _reserved: 0,
            back_pressured: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            wakes: AtomicU64::new(0),
            _line2: [0; 11],
            evicted: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// A topic's name. Written before [`RingLive::topics`] counts it, never changed after.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TopicEntry {
    length: U32,
    name: [u8; TOPIC_NAME_MAX],
}

impl TopicEntry {
    /// The entry of `name`; `None` if it is empty or longer than [`TOPIC_NAME_MAX`].
    pub fn new(name: &str) -> Option<Self> {
        if name.is_empty() || name.len() > TOPIC_NAME_MAX {
            return None;
        }
        let mut bytes = [0; TOPIC_NAME_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { length: U32::new(name.len() as u32), name: bytes })
    }

    /// The name, if the entry is well-formed.
    pub fn name(&self) -> Option<&str> {
        let length = usize::try_from(self.length.get()).ok()?;
        let bytes = self.name.get(..length)?;
        core::str::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    }
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<RingHeader>() == 104);
    assert!(size_of::<RingLive>() == 256 + 8 * SUBSCRIBERS_MAX as usize);
    assert!(size_of::<TopicEntry>() == 256);
    assert!(size_of::<RingHeader>() <= RING_LIVE_OFFSET);
    assert!(RING_LIVE_OFFSET + size_of::<RingLive>() <= TOPICS_OFFSET);
};
