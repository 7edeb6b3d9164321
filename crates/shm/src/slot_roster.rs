//! Roster of a session's slots: derives from their words which subscribers came, went, and why.
//!
//! Owned by the publisher, used on its thread when it asks for events or drains. The slots' words
//! are untrusted: damaged ones cost wrong names, never memory or time without limit.

use crate::memory::Memory;
use crate::ring_writer::{Eviction, bits};
use crate::uncounted_frames::UncountedFrames;
use lanecast_base::Position;
use lanecast_base::sync::Ordering;
use lanecast_transport::{
    Completion, Departure, DepartureReason, Membership, Progress, SubscriberId, SubscriberInfo,
};
use lanecast_wire::shm::{SUBSCRIBERS_MAX, Slot, lease_deaths, lease_owners};

/// Most owners of a slot told apart that came and went since the last update.
const OWNERS_MAX: u64 = 256;

/// The subscribers of a session by slot.
#[derive(Debug)]
pub(crate) struct SlotRoster {
    /// Lease of each slot at the last update.
    leases: [u64; SUBSCRIBERS_MAX as usize],
    /// Events pending, and departures for the completion report.
    pub(crate) membership: Membership,
    /// Frames that the completion report does not count.
    pub(crate) uncounted: UncountedFrames,
}

impl SlotRoster {
    pub(crate) fn new() -> Self {
        Self {
            leases: [0; SUBSCRIBERS_MAX as usize],
            membership: Membership::default(),
            uncounted: UncountedFrames::default(),
        }
    }

    /// Reads the slots: notes the subscribers that joined and left since the last update.
    pub(crate) fn update(&mut self, memory: &impl Memory) {
        // Relaxed: a slot whose bit is not visible yet is read by the next update.
        let used = memory.gate().used.load(Ordering::Relaxed);
        for index in bits(used, memory.slots()) {
            self.update_slot(memory, index);
        }
    }

    fn update_slot(&mut self, memory: &impl Memory, index: usize) {
        let slot = memory.slot(index);
        // PAIRS(lease): acquire here, release in `RingReader::join` and `leave`: the owner's words
        // of a joined slot, and the last cursor of a left one.
        let lease = slot.lease.load(Ordering::Acquire);
        // PAIRS(joined): acquire here, release in `RingReader::join`: a subscriber that is
        // announced gets the next message.
        if !lease.is_multiple_of(2) && slot.joined.load(Ordering::Acquire) != lease {
            return;
        }
        let last = std::mem::replace(&mut self.leases[index], lease);
        if lease == last {
            return;
        }
        let (known, owner) = (lease_owners(last), lease_owners(lease));
        if owner != known {
            let deaths = lease_deaths(lease).wrapping_sub(lease_deaths(last));
            self.note_former_owners(index, (known, owner), deaths, !last.is_multiple_of(2));
            self.membership.join(info(index, owner, Some(slot)));
        }
        if lease.is_multiple_of(2) {
            let cursor = Position::new(slot.cursor.load(Ordering::Relaxed));
            let end = cursor.plus(slot.unread.load(Ordering::Relaxed));
            let progress = self.progress(cursor, end);
            let departure = Departure { reason: DepartureReason::Left, progress };
            self.membership.depart(subscriber_id(index, owner), departure);
        }
    }

    /// Notes the departure of the owners from `known`, if it `was_present`, to the one before
    /// `owner`; `deaths` of them died.
    fn note_former_owners(
        &mut self,
        index: usize,
        (known, owner): (u64, u64),
        mut deaths: u16,
        was_present: bool,
    ) {
        let unseen = known.saturating_add(1).max(owner.saturating_sub(OWNERS_MAX));
        for former in was_present.then_some(known).into_iter().chain(unseen..owner) {
            if former != known {
                // The slot has the words of its last owner only.
                self.membership.join(info(index, former, None));
            }
            // The count says how many died, not which: the first ones, by assumption.
            let reason = if deaths > 0 { DepartureReason::Died } else { DepartureReason::Left };
            deaths = deaths.saturating_sub(1);
            let departure = Departure { reason, progress: Progress::Unknown };
            self.membership.depart(subscriber_id(index, former), departure);
        }
    }

    /// Notes the eviction of the reader in slot `index` with `lease`, whose cursor was at `cursor`
    /// when the writer was at `at`.
    pub(crate) fn evicted(
        &mut self,
        memory: &impl Memory,
        (index, lease, cursor): (usize, u64, Position),
        at: Position,
        why: Eviction,
    ) {
        self.update_slot(memory, index);
        let departure = Departure {
            reason: match why {
                Eviction::Dead => DepartureReason::Died,
                Eviction::Stalled => DepartureReason::Evicted,
                Eviction::InvalidCursor => DepartureReason::Damaged,
            },
            progress: self.progress(cursor, at),
        };
        self.membership.depart(subscriber_id(index, lease_owners(lease)), departure);
    }

    /// Progress of a reader that departed at `cursor` when the writer was at `at`.
    fn progress(&self, cursor: Position, at: Position) -> Progress {
        let has_read_all = self.uncounted.are_all(cursor, at);
        if has_read_all { Progress::ReadAllOf(cursor.get()) } else { Progress::Behind }
    }

    /// Report on the departed subscribers, for a writer that is at `at`.
    pub(crate) fn completion_of_departed(&self, at: Position) -> Completion {
        self.membership.completion(|read| self.uncounted.are_all(Position::new(read), at))
    }

    /// The present subscribers at the last update: slot, and who is in it.
    pub(crate) fn present(&self) -> impl Iterator<Item = (usize, &SubscriberInfo)> {
        let joined = self.leases.iter().enumerate().filter(|(_, lease)| !lease.is_multiple_of(2));
        joined.filter_map(|(index, lease)| {
            let id = subscriber_id(index, lease_owners(*lease));
            self.membership.get(id).map(|info| (index, info))
        })
    }
}

/// Id of a slot's owner, by its number among the slot's owners.
const fn subscriber_id(index: usize, owner: u64) -> SubscriberId {
    SubscriberId(owner * SUBSCRIBERS_MAX as u64 + index as u64)
}

/// Information on a slot's owner; `slot` if its words are the owner's.
fn info(index: usize, owner: u64, slot: Option<&Slot>) -> SubscriberInfo {
    let name = |slot: &Slot| {
        let parts = slot.name.each_ref().map(|part| part.load(Ordering::Relaxed).to_le_bytes());
        let bytes = parts.as_flattened();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    SubscriberInfo {
        id: subscriber_id(index, owner),
        address: format!("shm:{index}"),
        pid: slot.map(|slot| slot.pid.load(Ordering::Relaxed)),
        name: slot.map(name),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
