//! The two files of a shared-memory session: see `docs/protocol/shm.md`.
//!
//! ```text
//! <session>.ring   written by its publisher only        <session>.gate   written by all
//! 0      RingHeader    never changes                     0      GateHeader   never changes
//! 1024   RingLive      counters, state, evictions        256    GateLive     sleepers, waiting
//! 4096   TopicEntry[]  names                             1024   Slot[]       one per subscriber
//! then   u64[]         messages of each topic
//! data   frames, a power of two of bytes
//! ```

mod frame;
mod gate;
mod ring;

pub use frame::{COMMITTED, FRAME_ALIGN, FRAME_HEADER, FrameHeader, TopicWord, Word, frame_bytes};
pub use gate::{
    GATE_LIVE_OFFSET, GateHeader, GateLive, SLOT_BYTES, SLOTS_OFFSET, Slot, gate_bytes,
    lease_deaths, lease_owners, left_at, left_cursor, next_lease,
};
pub use ring::{
    FLAG_EVICTS, FLAG_LIGHT_FENCES, Limits, RING_LIVE_OFFSET, RingHeader, RingLive, STATE_CLOSED,
    STATE_OPEN, TOPIC_NAME_MAX, TOPICS_OFFSET, TopicEntry,
};

/// The version of both files' layout. Versions do not read each other.
pub const VERSION: u32 = 4;
/// The first bytes of a ring file.
pub const RING_MAGIC: [u8; 8] = *b"LANERING";
/// The first bytes of a gate file.
pub const GATE_MAGIC: [u8; 8] = *b"LANEGATE";
/// The most subscribers of one session: one bit of a word each.
pub const SUBSCRIBERS_MAX: u32 = 64;
/// The smallest window: a page of the largest page size in use.
pub const WINDOW_MIN: u64 = 64 << 10;
/// The largest window: its longest message fits the commit word's 28 bits.
pub const WINDOW_MAX: u64 = 1 << 30;
/// The largest message is this part of the window.
pub const WINDOW_PARTS: u64 = 8;
/// The most topics of one session: a topic's number takes 16 bits of a frame's header.
pub const TOPICS_MAX: u32 = 65_536;
/// The alignment of the data within the ring file: the largest page size in use.
pub const DATA_ALIGN: u64 = 64 << 10;

/// Why bytes are no header of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Shorter than a header.
    #[error("the file is too short: it was cut, or is not lanecast's")]
    Short,
    /// Not ours at all.
    #[error("the file is not lanecast's")]
    Foreign,
    /// Layout of another version of lanecast.
    #[error("the layout is version {found}, this program reads version {VERSION}: use one version")]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// Ours, but with a value that no publisher writes.
    #[error("the header is damaged: {0}")]
    Damaged(&'static str),
}

#[cfg(all(test, not(loom)))]
mod tests;
