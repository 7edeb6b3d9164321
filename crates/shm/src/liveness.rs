//! Liveness of publishers and subscribers: each holds a byte lock of its file as long as it lives,
//! and writes the identity of its process beside it.
//!
//! The conductor asks for publishers; a blocked publisher asks for the subscribers that gate it.

use lanecast_base::sync::Ordering;
use lanecast_os::is_locked;
use lanecast_os::process::Identity;
use lanecast_wire::shm::{RingHeader, Slot};
use std::fs::File;

/// The lock byte of slot `index` in the gate file; byte 0 is the publisher's.
pub(crate) const fn slot_lock(index: usize) -> u64 {
    1 + index as u64
}

/// Process that created the session.
pub(crate) fn publisher_process(header: &RingHeader) -> Identity {
    Identity {
        pid: header.pid.get(),
        namespace: header.namespace.get(),
        start_time: header.start_time.get(),
    }
}

/// Process that last took the slot.
pub(crate) fn slot_process(slot: &Slot) -> Identity {
    Identity {
        pid: slot.pid.load(Ordering::Relaxed),
        namespace: slot.namespace.load(Ordering::Relaxed),
        start_time: slot.start_time.load(Ordering::Relaxed),
    }
}

/// Whether the publisher of a session's file lives: byte 0 is locked, and `process` is not known
/// to be gone. If the system does not answer, it counts as alive.
pub(crate) fn is_publisher_alive(file: &File, process: Identity) -> bool {
    is_locked(file, 0).unwrap_or(true) && !process.is_surely_gone()
}

/// Whether the owner of slot `index` lives: its byte is locked, and its process is not known to be
/// gone (a forked child that outlives it inherits the lock, but does not read).
pub(crate) fn is_slot_owner_alive(gate: &File, index: usize, slot: &Slot) -> bool {
    // If the system does not answer, the owner counts as alive.
    is_locked(gate, slot_lock(index)).unwrap_or(true) && !slot_process(slot).is_surely_gone()
}
