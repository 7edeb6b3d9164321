//! Read-only mapping of a session's live words, for inspection by other processes.
//!
//! The message ring stays unmapped, so an inspection costs the same for every window size, and
//! cannot write, lock or wake.

use lanecast_os::{MapMode, Mapping};
use lanecast_wire::shm::{
    GATE_LIVE_OFFSET, GateLive, Limits, RING_LIVE_OFFSET, RingLive, SLOTS_OFFSET, Slot,
    TOPICS_OFFSET, gate_bytes,
};
use std::fs::File;
use std::io;

/// The live words of one session.
#[derive(Debug)]
pub(crate) struct SessionView {
    head: Mapping,
    gate: Mapping,
    slots: usize,
}

impl SessionView {
    /// Maps the live parts of both files; `limits` are those of the ring's checked header.
    pub(crate) fn map(ring: &File, gate: &File, limits: &Limits) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let gate_len = usize::try_from(gate_bytes(limits.subscribers_max)).map_err(too_large)?;
        Ok(Self {
            head: Mapping::new(ring, TOPICS_OFFSET, MapMode::Read)?,
            gate: Mapping::new(gate, gate_len, MapMode::Read)?,
            slots: limits.subscribers_max as usize,
        })
    }

    /// The publisher's words.
    pub(crate) fn ring(&self) -> &RingLive {
        // SAFETY: the mapping ends at TOPICS_OFFSET, and RingLive before that.
        let live = unsafe { self.head.start().add(RING_LIVE_OFFSET) };
        // SAFETY: the mapping lives as long as `self`; every field that changes is an atomic.
        unsafe { live.cast().as_ref() }
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
