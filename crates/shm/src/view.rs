//! A session's live words, mapped for reading: all that whoever looks from outside may touch.
//!
//! The ring of messages stays unmapped, so a look costs the same whatever the window is, and
//! the mappings are read-only, so that nothing here can write, lock or wake.

use lanecast_os::{MapMode, Mapping};
use lanecast_wire::shm::{
    GATE_LIVE_OFFSET, GateLive, Limits, RING_LIVE_OFFSET, RingLive, SLOTS_OFFSET, Slot,
    TOPICS_OFFSET, gate_bytes,
};
use std::fs::File;
use std::io;

/// The words of one session that change.
#[derive(Debug)]
pub(crate) struct View {
    head: Mapping,
    gate: Mapping,
    slots: usize,
}

impl View {
    /// Maps what changes of both files; `limits` are those of the ring's checked header.
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
        // SAFETY: lives as long as this; all fields that others may change are atomics.
        unsafe { live.cast().as_ref() }
    }

    /// The words about waiting.
    pub(crate) fn gate(&self) -> &GateLive {
        // SAFETY: the mapping is longer than SLOTS_OFFSET, and GateLive ends before that.
        let live = unsafe { self.gate.start().add(GATE_LIVE_OFFSET) };
        // SAFETY: lives as long as this; all atomics.
        unsafe { live.cast().as_ref() }
    }

    /// How many slots there are.
    pub(crate) const fn slots(&self) -> usize {
        self.slots
    }

    /// One subscriber's words.
    pub(crate) fn slot(&self, index: usize) -> &Slot {
        assert!(index < self.slots, "a slot of this gate");
        // SAFETY: the mapping covers as many slots as were counted.
        let slots = unsafe { self.gate.start().add(SLOTS_OFFSET) }.cast::<Slot>();
        // SAFETY: as above.
        let slot = unsafe { slots.add(index) };
        // SAFETY: lives as long as this; all atomics.
        unsafe { slot.as_ref() }
    }
}
