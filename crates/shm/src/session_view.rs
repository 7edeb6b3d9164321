//! Read-only mapping of a session's live words, for inspection by other processes.
//!
//! The message ring stays unmapped, so an inspection costs the same for every window size, and
//! cannot write, lock or wake.

use lanecast_base::sync::{AtomicU64, Ordering};
use lanecast_os::{MapMode, Mapping};
use lanecast_wire::shm::{
    GATE_LIVE_OFFSET, GateLive, Limits, RING_LIVE_OFFSET, RingLive, SLOTS_OFFSET, Slot, gate_bytes,
};
use std::fs::File;
use std::io;

/// The live words of one session.
#[derive(Debug)]
pub(crate) struct SessionView {
    head: Mapping,
    gate: Mapping,
    slots: usize,
    counts_offset: usize,
    topics_max: u32,
}

impl SessionView {
    /// Maps the live parts of both files; `limits` are those of the ring's checked header.
    pub(crate) fn map(ring: &File, gate: &File, limits: &Limits) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let head_len = usize::try_from(limits.data_offset).map_err(too_large)?;
        let gate_len = usize::try_from(gate_bytes(limits.subscribers_max)).map_err(too_large)?;
        Ok(Self {
            head: Mapping::new(ring, head_len, MapMode::Read)?,
            gate: Mapping::new(gate, gate_len, MapMode::Read)?,
            slots: limits.subscribers_max as usize,
            counts_offset: usize::try_from(limits.counts_offset()).map_err(too_large)?,
            topics_max: limits.topics_max,
        })
    }

    /// The publisher's words.
    pub(crate) fn ring(&self) -> &RingLive {
        // SAFETY: the mapping is longer than TOPICS_OFFSET, and RingLive ends before that.
        let live = unsafe { self.head.start().add(RING_LIVE_OFFSET) };
        // SAFETY: the mapping lives as long as `self`; every field that changes is an atomic.
        unsafe { live.cast().as_ref() }
    }

    /// Messages that are committed, on all topics together.
    pub(crate) fn messages(&self) -> u64 {
        // SAFETY: the head ends at the ring's data, which lie behind a count for each topic.
        let counts = unsafe { self.head.start().add(self.counts_offset) }.cast::<AtomicU64>();
        let topics = self.ring().topics.load(Ordering::Relaxed).min(self.topics_max);
        let count = |topic: u32| {
            // SAFETY: the topic table has the entry, so the mapping has its count.
            let count = unsafe { counts.add(topic as usize) };
            // SAFETY: the mapping lives as long as `self`; all atomics.
            unsafe { count.as_ref() }.load(Ordering::Relaxed)
        };
        (0..topics).map(count).fold(0, u64::wrapping_add)
    }

    /// The gate's words about waiting and sleeping.
    pub(crate) fn gate(&self) -> &GateLive {
        // SAFETY: the mapping is longer than SLOTS_OFFSET, and GateLive ends before that.
        let live = unsafe { self.gate.start().add(GATE_LIVE_OFFSET) };
        // SAFETY: the mapping lives as long as `self`; all atomics.
        unsafe { live.cast().as_ref() }
    }

    /// Number of subscriber slots.
    pub(crate) const fn slots(&self) -> usize {
        self.slots
    }

    /// One subscriber's words.
    pub(crate) fn slot(&self, index: usize) -> &Slot {
        assert!(index < self.slots, "a slot of this gate");
        // SAFETY: the mapping covers `self.slots` slots.
        let slots = unsafe { self.gate.start().add(SLOTS_OFFSET) }.cast::<Slot>();
        // SAFETY: as above.
        let slot = unsafe { slots.add(index) };
        // SAFETY: the mapping lives as long as `self`; all atomics.
        unsafe { slot.as_ref() }
    }
}
