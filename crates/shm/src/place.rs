//! A subscriber's place in a session: a slot of the gate, and what proves that its owner lives.

use crate::resident::Resident;
use lanecast_os::LockByte;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// The lock byte of slot `index` in the gate file; byte 0 is the publisher's.
pub(crate) const fn slot_lock(index: usize) -> u64 {
    1 + index as u64
}

/// A taken place; given back when dropped, which comes after its owner has left the slot.
#[derive(Debug)]
pub(crate) struct Place {
    index: usize,
    /// For other processes to see; there are none where the memory has no name.
    lock: Option<LockByte>,
    /// Keeps the list of places taken by this process.
    resident: Option<Arc<Resident>>,
}

impl Place {
    /// Takes the lock of the first free slot of another process's session.
    pub(crate) fn take(gate: File, places: u32) -> io::Result<Option<Self>> {
        let taken = lock_first(gate, places, 0)?;
        Ok(taken.map(|(index, lock)| Self { index, lock: Some(lock), resident: None }))
    }

    /// A place that `resident` has listed as taken.
    pub(crate) const fn of(resident: Arc<Resident>, index: usize, lock: Option<LockByte>) -> Self {
        Self { index, lock, resident: Some(resident) }
    }

    pub(crate) const fn index(&self) -> usize {
        self.index
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The lock first: it belongs to the whole process, and the next thread that takes the
        // place must not lose it to this one.
        self.lock = None;
        if let Some(resident) = &self.resident {
            resident.give_back(self.index);
        }
    }
}

/// Takes the lock of the first free slot that is not among the bits of `taken`.
pub(crate) fn lock_first(
    mut gate: File,
    places: u32,
    taken: u64,
) -> io::Result<Option<(usize, LockByte)>> {
    for index in (0..places as usize).filter(|index| taken & (1 << index) == 0) {
        match LockByte::try_take(gate, slot_lock(index))? {
            Ok(lock) => return Ok(Some((index, lock))),
            Err(file) => gate = file,
        }
    }
    Ok(None)
}
