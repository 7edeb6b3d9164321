//! Roster of a session's slots: derives from their words which subscribers came, went, and why.
//!
//! Owned by the publisher, used on its thread when it asks for events or drains. The slots' words
//! are untrusted: damaged ones cost wrong names, never memory or time without limit.

use crate::memory::Memory;
use crate::ring_writer::{Eviction, bits};
use crate::uncounted_frames::UncountedFrames;
use lanecast_base::Position;
use lanecast_base::sync::{Ordering, fence};
use lanecast_transport::{
    Completion, Departure, DepartureReason, Membership, Progress, SubscriberId, SubscriberInfo,
};
use lanecast_wire::shm::{SUBSCRIBERS_MAX, Slot, lease_deaths, lease_owners, left_cursor};

/// Most owners of a slot told apart that came and went since the last update.
const OWNERS_MAX: u64 = 256;

/// Most looks at the cursors until no owner has changed meanwhile.
const LOOKS_MAX: usize = 16;

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
        let is_left = lease.is_multiple_of(2);
        let is_joining = !is_left && slot.joined.load(Ordering::Acquire) != lease;
        // The owner that is joining is not there yet: its predecessor was the last one, and gone.
        let noted = if is_joining { lease.wrapping_sub(1) } else { lease };
        let last = std::mem::replace(&mut self.leases[index], noted);
        if noted == last {
            return;
        }
        let (known, owner) = (lease_owners(last), lease_owners(lease));
        if owner != known {
            self.note_former_owners((index, slot), last, lease);
        }
        if is_joining {
            return;
        }
        if owner != known {
            self.membership.join(info(index, owner, Some(slot)));
        }
        if is_left {
            let cursor = Position::new(slot.cursor.load(Ordering::Relaxed));
            let end = cursor.plus(slot.unread.load(Ordering::Relaxed));
            let progress = self.progress(cursor, end);
            let departure = Departure { reason: DepartureReason::Left, progress };
            self.membership.depart(subscriber_id(index, owner), departure);
        }
    }

    /// Notes the departure of the owners from that of the lease `last`, if it was present, to the
    /// one before the owner of `lease`.
    fn note_former_owners(&mut self, (index, slot): (usize, &Slot), last: u64, lease: u64) {
        let (known, owner) = (lease_owners(last), lease_owners(lease));
        let mut deaths = lease_deaths(lease).wrapping_sub(lease_deaths(last));
        let unseen = known.saturating_add(1).max(owner.saturating_sub(OWNERS_MAX));
        for former in is_present(last).then_some(known).into_iter().chain(unseen..owner) {
            if former != known {
                // The slot has the words of its last owner only.
                self.membership.join(info(index, former, None));
            }
            let told = self.progress_at_leaving(slot, former, lease);
            // The count says how many died, not which: the first ones, by assumption, of those
            // whose words are not there.
            let has_died = told.is_none() && deaths > 0;
            deaths = deaths.saturating_sub(u16::from(has_died));
            let (reason, progress) = match told {
                Some(progress) => (DepartureReason::Left, progress),
                None if has_died => (DepartureReason::Died, Progress::Unknown),
                None => (DepartureReason::Left, progress_of_last(slot, former, lease)),
            };
            let departure = Departure { reason, progress };
            self.membership.depart(subscriber_id(index, former), departure);
        }
    }

    /// Progress of the former owner `former` in a slot that has `lease` now, by the words with
    /// which it left; the next owner leaves them as they are. `None` if they are not there.
    fn progress_at_leaving(&self, slot: &Slot, former: u64, lease: u64) -> Option<Progress> {
        let (owner, place) = (lease_owners(lease), (former % 2) as usize);
        let word = slot.left_at[place].load(Ordering::Relaxed);
        let unread = slot.left_unread[place].load(Ordering::Relaxed);
        // PAIRS(left): acquire fence here, full fence in `RingReader::join`: if the next owner but
        // one has changed a word, the lease is another one.
        fence(Ordering::Acquire);
        let is_whole = slot.lease.load(Ordering::Relaxed) == lease;
        let is_recent = former.saturating_add(2) >= owner;
        let cursor = left_cursor(word, former).filter(|_| is_whole && is_recent);
        cursor.map(Position::new).map(|cursor| self.progress(cursor, cursor.plus(unread)))
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

    /// Updates, and returns the cursors of the present subscribers.
    pub(crate) fn update_cursors(
        &mut self,
        memory: &impl Memory,
    ) -> Vec<(Position, SubscriberInfo)> {
        let mut cursors = Vec::new();
        for _ in 0..LOOKS_MAX {
            self.update(memory);
            // PAIRS(cursor): acquire here, release in `RingReader::release`.
            let read = |index| memory.slot(index).cursor.load(Ordering::Acquire);
            cursors =
                self.present().map(|(index, _)| (index, Position::new(read(index)))).collect();
            // A cursor of a slot with another lease by now may be the next owner's.
            let is_current = |&(index, _): &(usize, Position)| {
                memory.slot(index).lease.load(Ordering::Relaxed) == self.leases[index]
            };
            if cursors.iter().all(is_current) {
                break;
            }
        }
        let present = self.present().map(|(_, info)| info.clone());
        cursors.into_iter().map(|(_, at)| at).zip(present).collect()
    }

    /// The present subscribers at the last update: slot, and who is in it.
    fn present(&self) -> impl Iterator<Item = (usize, &SubscriberInfo)> {
        let joined = self.leases.iter().enumerate().filter(|(_, lease)| is_present(**lease));
        joined.filter_map(|(index, lease)| {
            let id = subscriber_id(index, lease_owners(*lease));
            self.membership.get(id).map(|info| (index, info))
        })
    }
}

/// Progress of the former owner `former`, which left without words of its own, as programs of
/// before these did: the unread bytes are those of the last owner that left.
fn progress_of_last(slot: &Slot, former: u64, lease: u64) -> Progress {
    let is_last = is_present(lease) && former.saturating_add(1) == lease_owners(lease);
    let is_behind = is_last && slot.unread.load(Ordering::Relaxed) != 0;
    if is_behind { Progress::Behind } else { Progress::Unknown }
}

/// Whether the owner with that lease is there.
const fn is_present(lease: u64) -> bool {
    !lease.is_multiple_of(2)
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
