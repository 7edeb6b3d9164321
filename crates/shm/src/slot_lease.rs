//! Lease of a subscriber slot in a session's gate: the slot's index, and the byte lock that proves
//! that its owner lives.

use crate::liveness::slot_lock;
use lanecast_base::WaitStrategy;
use lanecast_base::sync::Ordering;
use lanecast_os::LockByte;
use lanecast_os::process::{Identity, own_name};
use lanecast_wire::shm::Slot;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A session of this process, which keeps its own list of leased slots: byte locks exclude other
/// processes, but not the threads of one process from each other.
pub(crate) trait ReleaseSlot: fmt::Debug + Send + Sync {
    /// Takes slot `index` off the list.
    fn release_slot(&self, index: usize);
}

/// A leased slot; released on drop, which comes after its owner has left the slot.
#[derive(Debug)]
pub(crate) struct SlotLease {
    index: usize,
    /// Excludes other processes; `None` where the session has no files.
    lock: Option<LockByte>,
    /// The session, if it is one of this process.
    session: Option<Arc<dyn ReleaseSlot>>,
}

impl SlotLease {
    /// Locks the first free slot of another process's session; `None` if all are taken.
    pub(crate) fn acquire(gate: File, slots: u32) -> io::Result<Option<Self>> {
        let locked = lock_free_slot(gate, slots, 0)?;
        Ok(locked.map(|(index, lock)| Self { index, lock: Some(lock), session: None }))
    }

    /// A slot that `session`, one of this process, has listed as leased.
    pub(crate) fn local(
        session: Arc<dyn ReleaseSlot>,
        index: usize,
        lock: Option<LockByte>,
    ) -> Self {
        Self { index, lock, session: Some(session) }
    }

    pub(crate) const fn index(&self) -> usize {
        self.index
    }
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        // The lock first: it belongs to the whole process, so releasing it after the slot could
        // take it from the next thread that leases the slot.
        self.lock = None;
        if let Some(session) = &self.session {
            session.release_slot(self.index);
        }
    }
}

/// Locks the first free slot that is not among the bits of `leased`.
pub(crate) fn lock_free_slot(
    mut gate: File,
    slots: u32,
    leased: u64,
) -> io::Result<Option<(usize, LockByte)>> {
    for index in (0..slots as usize).filter(|index| leased & (1 << index) == 0) {
        match LockByte::try_take(gate, slot_lock(index))? {
            Ok(lock) => return Ok(Some((index, lock))),
            Err(file) => gate = file,
        }
    }
    Ok(None)
}

/// Writes the slot's owner, for the publisher and for inspection.
pub(crate) fn write_slot_owner(slot: &Slot, wait: WaitStrategy) {
    let own = Identity::own();
    slot.pid.store(own.pid, Ordering::Relaxed);
    slot.namespace.store(own.namespace, Ordering::Relaxed);
    slot.start_time.store(own.start_time, Ordering::Relaxed);
    slot.wait.store(wait.code(), Ordering::Relaxed);
    slot.messages.store(0, Ordering::Relaxed);
    slot.sleeps.store(0, Ordering::Relaxed);
    // The last owner's. The publisher reads it only after this one has announced sleep.
    slot.pipe.store(0, Ordering::Relaxed);
    let name = u128::from_le_bytes(own_name());
    slot.name[0].store(name as u64, Ordering::Relaxed);
    slot.name[1].store((name >> 64) as u64, Ordering::Relaxed);
}
