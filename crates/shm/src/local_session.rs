//! A live session of this process, as the subscribers in the same process join it: through the
//! publisher's own mapping, without opening files.

use crate::error::JoinError;
use crate::liveness::is_slot_owner_alive;
use crate::memory::Memory;
use crate::segment::Segment;
use crate::slot_lease::{ReleaseSlot, SlotLease, lock_free_slot};
use lanecast_base::sync::Ordering;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Domain of a publisher or subscriber: the two join each other if it is the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DomainKey {
    /// A directory, by its canonical path.
    Directory(PathBuf),
    /// A name, valid within this process only.
    Name(PathBuf),
}

/// State that a session's publisher shares with its subscribers in the same process.
#[derive(Debug)]
pub(crate) struct LocalSession {
    domain: Option<DomainKey>,
    number: u64,
    segment: Segment,
    /// Whether the publisher evicts live subscribers that do not read.
    evicts: bool,
    /// The publisher's own open gate file. Locks taken through it belong to this process: they
    /// exclude other processes, but not its other threads; `slots` does that.
    gate: Option<File>,
    slots: Mutex<LeasedSlots>,
    /// Called when a slot becomes free after a subscriber found none.
    on_free_slot: fn(&Self),
}

/// Slots leased by subscribers of this process.
#[derive(Debug, Default)]
struct LeasedSlots {
    leased: u64,
    /// A subscriber found no free slot and waits for the next one.
    was_full: bool,
}

impl LocalSession {
    /// The session in `segment`, which subscribers of `domain` in this process join; `gate` if
    /// other processes can join too.
    pub(crate) fn new(
        domain: Option<DomainKey>,
        number: u64,
        segment: Segment,
        evicts: bool,
        gate: Option<&File>,
        on_free_slot: fn(&Self),
    ) -> io::Result<Self> {
        let gate = gate.map(File::try_clone).transpose()?;
        Ok(Self { domain, number, segment, evicts, gate, slots: Mutex::default(), on_free_slot })
    }

    /// Domain in which the session can be joined locally; `None` if subscribers of this process
    /// join it through its files, as other processes do.
    pub(crate) const fn domain(&self) -> Option<&DomainKey> {
        self.domain.as_ref()
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Whether a message can be overwritten while it is read.
    pub(crate) const fn evicts(&self) -> bool {
        self.evicts
    }

    /// Source in the events of local subscribers.
    pub(crate) fn source(&self) -> String {
        format!("thread:{:016x}", self.number)
    }

    /// Whether the session has a wanted topic so far.
    pub(crate) fn has_any_topic(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        // PAIRS(topics): acquire here, release in `Publisher::add_topic`.
        let count = self.segment.ring().topics.load(Ordering::Acquire);
        // Bounded: any process of the same user can write the count.
        let count = count.min(self.segment.limits().topics_max);
        let names = (0..count).filter_map(|number| self.segment.read_topic(number));
        names.into_iter().any(|name| is_wanted(&name))
    }

    /// Leases a slot for a subscriber of this process.
    pub(crate) fn lease_slot(self: &Arc<Self>) -> Result<SlotLease, JoinError> {
        let limits = self.segment.limits();
        let mut slots = self.slots();
        let found = match &self.gate {
            Some(gate) => gate
                .try_clone()
                .and_then(|gate| lock_free_slot(gate, limits.subscribers_max, slots.leased))
                .map_err(|error| JoinError::Io { path: self.source().into(), error })?
                .map(|(index, lock)| (index, Some(lock))),
            None => {
                let index = slots.leased.trailing_ones();
                (index < limits.subscribers_max).then_some((index as usize, None))
            }
        };
        let Some((index, lock)) = found else {
            slots.was_full = true;
            let slots = limits.subscribers_max;
            return Err(JoinError::NoSlot { path: self.source().into(), slots });
        };
        slots.leased |= 1 << index;
        Ok(SlotLease::local(Arc::<Self>::clone(self), index, lock))
    }

    /// Whether the owner of slot `index` lives, in this process or in another.
    pub(crate) fn is_slot_owner_alive(&self, index: usize) -> bool {
        self.slots().leased & (1 << index) != 0
            || self
                .gate
                .as_ref()
                .is_some_and(|gate| is_slot_owner_alive(gate, index, self.segment.slot(index)))
    }

    fn slots(&self) -> MutexGuard<'_, LeasedSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReleaseSlot for LocalSession {
    fn release_slot(&self, index: usize) {
        let mut slots = self.slots();
        slots.leased &= !(1 << index);
        let was_full = core::mem::take(&mut slots.was_full);
        drop(slots);
        if was_full {
            (self.on_free_slot)(self);
        }
    }
}
