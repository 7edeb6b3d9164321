//! The gate file: where subscribers stand, and who sleeps.

use super::{FRAME_ALIGN, GATE_MAGIC, HeaderError, VERSION};
use lanecast_base::sync::{AtomicU32, AtomicU64};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// Offset of [`GateLive`].
pub const GATE_LIVE_OFFSET: usize = 256;
/// Offset of the slots.
pub const SLOTS_OFFSET: usize = 1024;
/// The length of a slot.
pub const SLOT_BYTES: usize = 256;

/// The gate file's length for so many subscribers.
pub const fn gate_bytes(subscribers_max: u32) -> u64 {
    SLOTS_OFFSET as u64 + subscribers_max as u64 * SLOT_BYTES as u64
}

/// The gate file's first bytes; they never change.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct GateHeader {
    /// [`GATE_MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: U32,
    /// Number of slots.
    pub subscribers_max: U32,
    /// The session's number, also the file's name.
    pub session: U64,
}

impl GateHeader {
    /// Reads and checks a header against the ring file's session and number of slots.
    ///
    /// # Errors
    /// If it is not ours, not this version's, or does not belong to that ring.
    pub fn read(bytes: &[u8], session: u64, subscribers_max: u32) -> Result<Self, HeaderError> {
        let (header, _) = Self::read_from_prefix(bytes).map_err(|_| HeaderError::Short)?;
        if header.magic != GATE_MAGIC {
            return Err(HeaderError::Foreign);
        }
        if header.version.get() != VERSION {
            return Err(HeaderError::Version { found: header.version.get() });
        }
        if header.session.get() != session || header.subscribers_max.get() != subscribers_max {
            return Err(HeaderError::Damaged("the gate belongs to another ring"));
        }
        Ok(header)
    }
}

/// Park flags of publisher and subscribers.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct GateLive {
    /// A bit per slot whose subscriber sleeps or is about to.
    pub sleepers: AtomicU64,
    /// A bit per slot that was ever taken: the others need no look.
    pub used: AtomicU64,
    _line: [u64; 14],
    /// 1 while the publisher sleeps or is about to.
    pub publisher_waits: AtomicU32,
    /// The word that the publisher sleeps on.
    pub publisher_wake: AtomicU32,
    _line2: [u64; 15],
}

impl GateLive {
    /// All awake.
    #[allow(clippy::new_without_default, reason = "made once, by the publisher")]
    pub fn new() -> Self {
        Self {
            sleepers: AtomicU64::new(0),
            used: AtomicU64::new(0),
            _line: [0; 14],
            publisher_waits: AtomicU32::new(0),
            publisher_wake: AtomicU32::new(0),
            _line2: [0; 15],
        }
    }
}

/// Slot of a subscriber. Written by the holder of the lock on byte `1 + index` of the file;
/// only the wake word is also changed by the publisher.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slot {
    /// All before this position has been read.
    pub cursor: AtomicU64,
    /// Messages read, of wanted topics and others.
    pub messages: AtomicU64,
    _line: [u64; 14],
    /// Counts owners: odd while one is joined; see [`next_lease`].
    pub lease: AtomicU64,
    /// The word that the subscriber sleeps on.
    pub wake: AtomicU32,
    /// Waiting strategy.
    pub wait: AtomicU32,
    /// Process id.
    pub pid: AtomicU32,
    _reserved: u32,
    /// The namespace that the process number belongs to.
    pub namespace: AtomicU64,
    /// When the process started, in clock ticks since boot.
    pub start_time: AtomicU64,
    /// The process's name, little-endian, padded with zeros.
    pub name: [AtomicU64; 2],
    /// Number of sleeps of the subscriber.
    pub sleeps: AtomicU64,
    /// Bytes that the last owner had not read when it left.
    pub unread: AtomicU64,
    /// Lease of the last owner that knows where it starts: it gets all messages committed after
    /// this.
    pub joined: AtomicU64,
    /// Number of the named pipe that makes the subscriber's descriptor readable; 0 if it has none.
    pub pipe: AtomicU64,
    /// Cursors of the owners that left last, each by [`left_at`]: of the one with an even number,
    /// then of the one with an odd number, so that the next owner to leave keeps its predecessor's.
    pub left_at: [AtomicU64; 2],
    /// Bytes that these owners had not read when they left.
    pub left_unread: [AtomicU64; 2],
}

impl Slot {
    /// A free slot.
    #[allow(clippy::new_without_default, reason = "made once, by the publisher")]
    pub fn new() -> Self {
        Self {
            cursor: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            _line: [0; 14],
            lease: AtomicU64::new(0),
            wake: AtomicU32::new(0),
            wait: AtomicU32::new(0),
            pid: AtomicU32::new(0),
            _reserved: 0,
            namespace: AtomicU64::new(0),
            start_time: AtomicU64::new(0),
            name: [AtomicU64::new(0), AtomicU64::new(0)],
            sleeps: AtomicU64::new(0),
            unread: AtomicU64::new(0),
            joined: AtomicU64::new(0),
            pipe: AtomicU64::new(0),
            left_at: [AtomicU64::new(0), AtomicU64::new(0)],
            left_unread: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }
}

/// One death in a lease.
const DEATH: u64 = 1 << 48;

/// The lease of a slot's next owner, after `last`.
///
/// Bits 0 to 47 count: up by one with each owner that joins, and again when it leaves. Bits 48 to
/// 63 count the owners that died without leaving, which only their successor can tell.
pub const fn next_lease(last: u64) -> u64 {
    if last.is_multiple_of(2) {
        last.wrapping_add(1)
    } else {
        last.wrapping_add(2).wrapping_add(DEATH)
    }
}

/// Number of owners so far, the present one included.
pub const fn lease_owners(lease: u64) -> u64 {
    (lease % DEATH).div_ceil(2)
}

/// The word by which owner number `owner` tells that it left at `cursor`.
///
/// Cursors are multiples of the frame alignment, which leaves four bits: bit 0 is set, and bits 1
/// to 3 are the owner's number without its lowest bit, so that the word of an owner is not taken
/// for that of a later one which died.
pub const fn left_at(cursor: u64, owner: u64) -> u64 {
    cursor / FRAME_ALIGN * FRAME_ALIGN + owner / 2 % (FRAME_ALIGN / 2) * 2 + 1
}

/// The cursor at which owner number `owner` left, if `word` is its own.
pub const fn left_cursor(word: u64, owner: u64) -> Option<u64> {
    let cursor = word / FRAME_ALIGN * FRAME_ALIGN;
    if word == left_at(cursor, owner) { Some(cursor) } else { None }
}

/// Number of owners that died without leaving, modulo 2^16.
pub const fn lease_deaths(lease: u64) -> u16 {
    (lease / DEATH) as u16
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<GateHeader>() == 24);
    assert!(size_of::<GateLive>() == 256);
    assert!(size_of::<Slot>() == SLOT_BYTES);
    assert!(GATE_LIVE_OFFSET + size_of::<GateLive>() <= SLOTS_OFFSET);
};
