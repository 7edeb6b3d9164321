//! The writing end.

use crate::claim::{ShmBatch, ShmClaim};
use crate::error::{OpenError, TopicError};
use crate::lobby::{self, DomainKey, Residence};
use crate::memory::Memory;
use crate::resident::Resident;
use crate::segment::Segment;
use crate::session::{self, Hidden, Names, Session, system};
use crate::settings::{Settings, Stalled};
use crate::vigil::{Blocker, Vigil};
use crate::write_edge::WriteEdge;
use lanecast_base::sync::Ordering;
use lanecast_base::{Position, WaitStep, Waiter, spin};
use lanecast_transport::{BackPressureReason, ClaimError, Publish, SessionId, TopicId};
use lanecast_wire::shm::{TopicEntry, frame_bytes};
use std::fmt;
use std::time::{Duration, Instant};

/// A publisher over shared memory: one session, one ring, one or several topics.
///
/// Made by [`Domain`](crate::Domain)'s `publisher`. Dropping it closes the session.
pub struct Publisher {
    edge: WriteEdge<Segment>,
    longest: u32,
    topics: Vec<String>,
    waiter: Waiter,
    vigil: Vigil,
    source: String,
    is_closed: bool,
    /// Subscribers that were evicted before they had read everything.
    left_behind: usize,
    // Before the residence: while the names can be found, this process knows whose they are.
    names: Option<Names>,
    residence: Residence,
}

impl Publisher {
    pub(crate) fn open(
        settings: &Settings,
        domain: Option<DomainKey>,
        topic: &str,
    ) -> Result<Self, OpenError> {
        let Session { number, segment, hidden } = session::create(settings)?;
        let gate = hidden.as_ref().map(Hidden::gate);
        let evicts = settings.stalled != Stalled::Wait;
        let resident = Resident::new(domain, number, segment.clone(), evicts, gate)
            .map_err(system("keep the session's gate open"))?;
        // Before the names: whoever in this process finds them is to know whose they are.
        let residence = Residence::begin(resident);
        let names = hidden.map(Hidden::publish).transpose()?;
        let source = match names {
            Some(_) => format!("shm:{number:016x}"),
            None => residence.source(),
        };
        let mut publisher = Self {
            longest: segment.limits().longest_message,
            edge: WriteEdge::new(segment, settings.first_position()),
            topics: Vec::new(),
            waiter: Waiter::new(settings.publisher_wait),
            vigil: Vigil::new(settings.liveness, settings.stalled),
            source,
            is_closed: false,
            left_behind: 0,
            names,
            residence,
        };
        let live = publisher.edge.memory().ring();
        live.wait.store(settings.publisher_wait.code(), Ordering::Relaxed);
        // The topic wakes those who wait for it: by now the session is complete.
        publisher.add_topic(topic)?;
        Ok(publisher)
    }

    /// The ring's length in bytes.
    pub fn window_bytes(&self) -> u64 {
        self.edge.memory().window()
    }

    /// How often a claim has found no room.
    pub fn back_pressured(&self) -> u64 {
        self.edge.memory().ring().back_pressured.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn edge(&mut self) -> &mut WriteEdge<Segment> {
        &mut self.edge
    }

    #[inline(always)]
    pub(crate) fn segment(&self) -> &Segment {
        self.edge.memory()
    }

    /// Whether `len` bytes on `topic` can ever be sent.
    #[inline(always)]
    pub(crate) fn check(&self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        if len > self.longest as usize {
            return Err(ClaimError::TooLong { longest: self.longest as usize });
        }
        if topic.0 as usize >= self.topics.len() {
            return Err(ClaimError::NoSuchTopic);
        }
        Ok(())
    }

    /// Whether the bytes up to `end` may be written; evicts the dead if they are in the way.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, end: Position) -> Result<(), ClaimError> {
        if self.edge.has_room(end) || self.make_room(end) {
            Ok(())
        } else {
            Err(ClaimError::BackPressured(BackPressureReason::WindowFull))
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, end: Position) -> bool {
        self.count_back_pressure();
        self.evict_if_due(end)
    }

    fn count_back_pressure(&self) {
        let count = &self.edge.memory().ring().back_pressured;
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// If it is time to look: evicts who should not be in the way of `end`; says whether there
    /// is room now.
    fn evict_if_due(&mut self, end: Position) -> bool {
        let now = Instant::now();
        self.vigil.is_due(now) && self.evict_from(end, now) && self.edge.has_room(end)
    }

    /// Evicts whoever keeps the bytes before `end` from being written and should not; says
    /// whether it evicted anybody.
    fn evict_from(&mut self, end: Position, now: Instant) -> bool {
        let window = self.edge.memory().window();
        let at = self.edge.at();
        let blockers: Vec<Blocker> = self
            .edge
            .readers()
            .map(|(index, lease, cursor)| {
                let plausible = at.since(cursor) <= window;
                Blocker { index, lease, cursor, plausible }
            })
            .filter(|blocker| !blocker.plausible || end.since(blocker.cursor) + 16 > window)
            .collect();
        let mut evicted = false;
        for blocker in blockers {
            let alive = || self.residence.is_alive(blocker.index);
            if let Some(why) = self.vigil.judge(blocker, alive, now) {
                self.edge.evict(blocker.index, blocker.lease, why);
                self.left_behind += 1;
                evicted = true;
            }
        }
        evicted
    }

    /// Waits by the publisher's strategy until the bytes up to `end` may be written.
    #[cold]
    #[inline(never)]
    fn wait_for_room(&mut self, end: Position) {
        self.count_back_pressure();
        self.waiter.reset();
        while !self.edge.has_room(end) && !self.evict_if_due(end) {
            match self.waiter.next_step() {
                WaitStep::Spin(pauses) => spin(pauses),
                WaitStep::Yield => std::thread::yield_now(),
                WaitStep::Park => {
                    let nap = self.vigil.interval(Instant::now());
                    self.edge.sleep(nap, |edge| edge.has_room(end));
                }
            }
        }
    }

    /// Sleeps, woken by subscribers' moves, until `done` or `timeout`; says whether `done`.
    fn wait_until(&mut self, timeout: Duration, done: impl Fn(&mut Self) -> bool) -> bool {
        let start = Instant::now();
        loop {
            if done(self) {
                return true;
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else { return false };
            // A death is no move: it is looked for at intervals, or found by the next wake.
            let nap = left.min(self.vigil.interval(Instant::now())).min(Duration::from_millis(10));
            self.edge.sleep(nap, |_| false);
        }
    }

    /// How many living subscribers have yet to read something; evicts the dead ones.
    fn behind(&mut self) -> usize {
        let at = self.edge.at();
        let behind: Vec<_> = self.edge.readers().filter(|&(_, _, cursor)| cursor != at).collect();
        let count = behind.len();
        let alive =
            behind.into_iter().filter(|&(index, lease, _)| self.is_joined(index, lease)).count();
        self.left_behind += count - alive;
        alive
    }

    /// Whether the owner of slot `index` lives; if not, its place is taken away.
    fn is_joined(&mut self, index: usize, lease: u64) -> bool {
        let alive = self.residence.is_alive(index);
        if !alive {
            self.edge.evict(index, lease, crate::write_edge::Eviction::Dead);
        }
        alive
    }

    fn finish(&mut self, linger: Duration) -> bool {
        if self.is_closed {
            return true;
        }
        self.is_closed = true;
        let drained = self.wait_until(linger, |publisher| publisher.behind() == 0);
        self.edge.close();
        if let Some(names) = &self.names {
            names.remove();
        }
        drained
    }
}

impl Publish for Publisher {
    type Claim<'a> = ShmClaim<'a>;
    type Batch<'a> = ShmBatch<'a>;
    type TopicError = TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, TopicError> {
        if let Some(known) = self.topics.iter().position(|topic| topic == name) {
            return Ok(TopicId(known as u32));
        }
        let entry = TopicEntry::new(name).ok_or(TopicError::Name(name.len()))?;
        let index = self.topics.len() as u32;
        let room = self.segment().limits().topics_max;
        if index >= room {
            return Err(TopicError::Full(room));
        }
        self.edge.memory_mut().write_topic(index, &entry);
        // PAIRS(topics): release here, acquire in `Attachment::refresh`: the entry is there
        // before it is counted.
        self.segment().ring().topics.store(index + 1, Ordering::Release);
        self.topics.push(name.to_owned());
        if let Some(names) = &self.names {
            names.touch();
        }
        lobby::announce(&self.residence);
        Ok(TopicId(index))
    }

    #[inline(always)]
    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<ShmClaim<'_>, ClaimError> {
        self.check(topic, len)?;
        let end = self.edge.at().plus(frame_bytes(len as u64));
        self.has_room(end)?;
        Ok(ShmClaim::new(self, topic, len as u32))
    }

    #[inline(always)]
    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<ShmClaim<'_>, ClaimError> {
        self.check(topic, len)?;
        let end = self.edge.at().plus(frame_bytes(len as u64));
        if !self.edge.has_room(end) {
            self.wait_for_room(end);
        }
        Ok(ShmClaim::new(self, topic, len as u32))
    }

    fn batch(&mut self) -> ShmBatch<'_> {
        ShmBatch::new(self)
    }

    fn session(&self) -> SessionId {
        SessionId(self.residence.session())
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn longest_message(&self) -> usize {
        self.longest as usize
    }

    fn subscribers(&self) -> usize {
        self.edge.readers().filter(|&(index, _, _)| self.residence.is_alive(index)).count()
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        self.wait_until(timeout, |publisher| publisher.subscribers() >= count)
    }

    fn left_behind(&mut self) -> usize {
        self.left_behind
    }

    fn drain(&mut self, timeout: Duration) -> bool {
        self.wait_until(timeout, |publisher| publisher.behind() == 0)
    }

    fn close(mut self, linger: Duration) -> bool {
        self.finish(linger)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.finish(Duration::ZERO);
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("source", &self.source)
            .field("topics", &self.topics)
            .finish_non_exhaustive()
    }
}
