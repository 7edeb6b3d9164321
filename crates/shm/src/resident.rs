//! One living session of this process, as its other threads join it.

use crate::error::AttachError;
use crate::lobby::{self, DomainKey};
use crate::memory::Memory;
use crate::place::{Place, lock_first};
use crate::segment::Segment;
use crate::vigil::is_alive;
use lanecast_base::sync::Ordering;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a session's publisher and its subscribers in the same process share.
#[derive(Debug)]
pub(crate) struct Resident {
    domain: Option<DomainKey>,
    session: u64,
    segment: Segment,
    /// Whether the publisher evicts subscribers that live but do not read.
    evicts: bool,
    /// The publisher's own opening of the gate file. Locks taken through it are this process's:
    /// they keep strangers out, but not its other threads; `places` does that.
    gate: Option<File>,
    places: Mutex<Places>,
}

/// The places taken by subscribers in this process.
#[derive(Debug, Default)]
struct Places {
    taken: u64,
    /// Somebody was turned away and will come as soon as a place is given back.
    was_full: bool,
}

impl Resident {
    /// The session in `segment`, to be met in `domain`; `gate` if other processes may join too.
    pub(crate) fn new(
        domain: Option<DomainKey>,
        session: u64,
        segment: Segment,
        evicts: bool,
        gate: Option<&File>,
    ) -> io::Result<Self> {
        let gate = gate.map(File::try_clone).transpose()?;
        Ok(Self { domain, session, segment, evicts, gate, places: Mutex::default() })
    }

    /// Where it can be met; `None` if other processes and other threads are treated alike.
    pub(crate) const fn domain(&self) -> Option<&DomainKey> {
        self.domain.as_ref()
    }

    pub(crate) const fn session(&self) -> u64 {
        self.session
    }

    pub(crate) const fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Whether a message can be overwritten while it is read.
    pub(crate) const fn evicts(&self) -> bool {
        self.evicts
    }

    /// How people call it when they meet it here.
    pub(crate) fn source(&self) -> String {
        format!("thread:{:016x}", self.session)
    }

    /// Whether it has any of `topics` by now.
    pub(crate) fn offers(&self, topics: &[String]) -> bool {
        // PAIRS(topics): acquire here, release in `Publisher::add_topic`.
        let count = self.segment.ring().topics.load(Ordering::Acquire);
        // Anybody of the same user may have written the count.
        let count = count.min(self.segment.limits().topics_max);
        let names = (0..count).filter_map(|number| self.segment.read_topic(number));
        names.into_iter().any(|name| topics.contains(&name))
    }

    /// Takes a place for a subscriber in this process.
    pub(crate) fn take_place(self: &Arc<Self>) -> Result<Place, AttachError> {
        let limits = self.segment.limits();
        let mut places = self.places();
        let found = match &self.gate {
            Some(gate) => gate
                .try_clone()
                .and_then(|gate| lock_first(gate, limits.subscribers_max, places.taken))
                .map_err(|error| AttachError::Io { path: self.source().into(), error })?
                .map(|(index, lock)| (index, Some(lock))),
            None => {
                let index = places.taken.trailing_ones();
                (index < limits.subscribers_max).then_some((index as usize, None))
            }
        };
        let Some((index, lock)) = found else {
            places.was_full = true;
            let places = limits.subscribers_max;
            return Err(AttachError::NoPlace { path: self.source().into(), places });
        };
        places.taken |= 1 << index;
        Ok(Place::of(Arc::clone(self), index, lock))
    }

    /// Strikes a place off the list; whoever was turned away before may come now.
    pub(crate) fn give_back(&self, index: usize) {
        let mut places = self.places();
        places.taken &= !(1 << index);
        let was_full = core::mem::take(&mut places.was_full);
        drop(places);
        if was_full {
            lobby::announce(self);
        }
    }

    /// Whether the owner of slot `index` lives, in this process or in another.
    pub(crate) fn is_alive(&self, index: usize) -> bool {
        self.places().taken & (1 << index) != 0
            || self
                .gate
                .as_ref()
                .is_some_and(|gate| is_alive(gate, index, self.segment.slot(index)))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
