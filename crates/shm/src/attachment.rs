//! One session that a subscriber has joined.

use crate::checked::Checked;
use crate::error::AttachError;
use crate::mailbox::{Mailbox, Peer};
use crate::memory::Memory;
use crate::place::Place;
use crate::read_edge::{Next, ReadEdge};
use crate::resident::Resident;
use crate::segment::{Segment, SessionFiles};
use lanecast_base::WaitStrategy;
use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_os::MapMode;
use lanecast_os::process::{Identity, own_name};
use lanecast_transport::{
    CloseReason, Event, Gap, Lease, LossReason, Message, SessionId, Stream, TopicId,
};
use lanecast_wire::shm::{FLAG_EVICTS, Limits, RingHeader, Slot};
use std::fs::File;
use std::sync::Arc;

/// The most unwanted messages passed over in one poll: a publisher that is faster, or whose ring
/// has no end, does not keep the caller.
const SKIPS_MAX: usize = 4096;

/// A joined session: the reader's edge, and which of its topics are wanted.
#[derive(Debug)]
pub(crate) struct Attachment {
    edge: ReadEdge<Segment>,
    /// By topic number: the stream, if the topic is wanted.
    streams: Vec<Option<Stream>>,
    /// Streams below this number have been announced.
    announced: usize,
    /// Show the publisher the cursor after so many bytes.
    release_every: u64,
    session: u64,
    pid: u32,
    wanted: Arc<[String]>,
    /// Which way it was joined, for people.
    source: String,
    /// The publisher, if it is another process and may die alone.
    peer: Option<Arc<Peer>>,
    /// Holds the message that the handler has, if the publisher evicts: in the ring it could be
    /// overwritten while it is read.
    checked: Option<Checked>,
    end: Option<End>,
    // Given back after the slot has been left.
    _place: Place,
}

/// How a session is joined.
struct Seat {
    place: Place,
    session: u64,
    source: String,
    peer: Option<Arc<Peer>>,
    /// Whether the publisher evicts subscribers that live but do not read.
    evicts: bool,
}

/// Why a session is over, and how many of its topics have been told.
#[derive(Debug)]
struct End {
    why: CloseReason,
    lost: Option<LossReason>,
    lost_told: usize,
    left_told: usize,
}

impl Attachment {
    /// Joins another process's session, whose ring file has been opened and checked.
    pub(crate) fn join(
        files: &SessionFiles,
        (ring, header, limits): (File, RingHeader, Limits),
        mailbox: &Arc<Mailbox>,
    ) -> Result<(Self, Arc<Peer>), AttachError> {
        let io = |error| AttachError::Io { path: files.gate.clone(), error };
        let gate = files.open_gate(&limits, true)?;
        let mapped_gate = gate.try_clone().map_err(io)?;
        let places = limits.subscribers_max;
        let place = Place::take(gate, places)
            .map_err(io)?
            .ok_or_else(|| AttachError::NoPlace { path: files.ring.clone(), places })?;
        let segment = Segment::map(&ring, &mapped_gate, limits, MapMode::Read)
            .map_err(|error| AttachError::Io { path: files.ring.clone(), error })?;
        let peer = Arc::new(Peer::new(ring, owner(&header), Arc::downgrade(mailbox)));
        let seat = Seat {
            place,
            session: files.session,
            source: format!("shm:{:016x}", files.session),
            peer: Some(Arc::clone(&peer)),
            evicts: header.flags.get() & FLAG_EVICTS != 0,
        };
        Ok((Self::sit(segment, seat, mailbox), peer))
    }

    /// Joins a session of this process.
    pub(crate) fn meet(
        resident: &Arc<Resident>,
        mailbox: &Arc<Mailbox>,
    ) -> Result<Self, AttachError> {
        let seat = Seat {
            place: resident.take_place()?,
            session: resident.session(),
            source: resident.source(),
            peer: None,
            evicts: resident.evicts(),
        };
        Ok(Self::sit(resident.segment().clone(), seat, mailbox))
    }

    fn sit(segment: Segment, seat: Seat, mailbox: &Mailbox) -> Self {
        let Seat { place, session, source, peer, evicts } = seat;
        sign(segment.slot(place.index()), mailbox.wait);
        let limits = *segment.limits();
        Self {
            edge: ReadEdge::join(segment, place.index(), limits.longest_message),
            streams: Vec::new(),
            announced: 0,
            release_every: limits.window_bytes / 8,
            session,
            pid: peer.as_ref().map_or_else(std::process::id, |peer| peer.identity.pid),
            wanted: Arc::clone(&mailbox.topics),
            source,
            peer,
            checked: evicts.then(|| Checked::new(limits.longest_message)),
            end: None,
            _place: place,
        }
    }

    /// Hands over at most `limit` messages; returns how many events.
    #[inline(always)]
    pub(crate) fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: &mut F) -> usize {
        if self.end.is_some() {
            // The handler panicked while it was told of the end.
            return self.tell_end(handler);
        }
        let (mut work, mut skipped) = (0, 0);
        while work < limit {
            let frame = match self.edge.peek() {
                Next::Frame(frame) => frame,
                Next::Empty => return work + self.idle(handler),
                Next::Broken => return work + self.broken(handler),
            };
            // Passing first: a handler that panics has consumed its message. The publisher is
            // shown the new place only after the handler's return.
            self.edge.pass(frame.length);
            if let Some(Some(stream)) = self.streams.get(frame.topic as usize) {
                let body = self.edge.memory().byte(frame.body);
                let length = frame.length as usize;
                if let Some(checked) = &mut self.checked {
                    let Some(bytes) = checked.copy(body, length, &self.edge) else {
                        self.edge.unpass(frame.length);
                        return work + self.broken(handler);
                    };
                    handler(Event::Message(Message::new(bytes, stream, Lease::FOR_GOOD)));
                } else {
                    // SAFETY: the bytes lie in the ring, which is mapped twice and whose window is
                    // eight times the checked length; the publisher does not write them until this
                    // reader's cursor has moved on, or says so by ending its lease.
                    let bytes = unsafe { core::slice::from_raw_parts(body.as_ptr(), length) };
                    let ring = self.edge.memory().ring();
                    let lease = &ring.evicted[self.edge.index()];
                    let lease = Lease::until(lease, self.edge.lease());
                    handler(Event::Message(Message::new(bytes, stream, lease)));
                }
                work += 1;
            } else if frame.topic as usize >= self.streams.len() {
                self.edge.unpass(frame.length);
                work += self.new_topic(handler);
                if self.is_over() {
                    return work;
                }
                continue;
            } else {
                skipped += 1;
                if skipped == SKIPS_MAX {
                    return work;
                }
            }
            if self.edge.unreleased() >= self.release_every {
                self.edge.release();
            }
        }
        work
    }

    /// Nothing to read: show the cursor, look whether the session is over or has new topics.
    #[inline]
    fn idle<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        self.edge.rest();
        if self.edge.unreleased() > 0 {
            self.edge.release();
        }
        let topics = self.edge.memory().ring().topics.load(Ordering::Relaxed);
        let is_quiet = topics as usize == self.streams.len()
            && !self.edge.is_closed()
            && !self.is_orphan()
            && !self.edge.is_evicted();
        if is_quiet { 0 } else { self.news(handler) }
    }

    #[cold]
    #[inline(never)]
    fn news<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        if self.edge.is_evicted() {
            return self.broken(handler);
        }
        let work = self.refresh(handler);
        let (closed, gone) = (self.edge.is_closed(), self.is_orphan());
        // Whatever was committed before the end is visible by now: look once more.
        match self.edge.peek() {
            Next::Empty if closed => work + self.end(CloseReason::Closed, None, handler),
            Next::Empty if gone => work + self.end(CloseReason::Died, None, handler),
            _ => work,
        }
    }

    /// A message of a topic that is not known yet: the table must have it.
    #[cold]
    #[inline(never)]
    fn new_topic<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let known = self.streams.len();
        let work = self.refresh(handler);
        if self.streams.len() == known { work + self.broken(handler) } else { work }
    }

    /// Reads the topics added since the last call and announces the wanted ones.
    #[cold]
    #[inline(never)]
    fn refresh<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let segment = self.edge.memory();
        // PAIRS(topics): acquire here, release in `Publisher::add_topic`.
        let count = segment.ring().topics.load(Ordering::Acquire);
        let count = count.min(segment.limits().topics_max);
        for number in self.streams.len() as u32..count {
            let name = segment.read_topic(number);
            let wanted = name.filter(|name| self.wanted.contains(name));
            self.streams.push(wanted.map(|topic| Stream {
                session: SessionId(self.session),
                topic,
                topic_id: TopicId(number),
                pid: self.pid,
                source: self.source.clone(),
            }));
        }
        let mut joined = 0;
        while let Some(stream) = self.streams.get(self.announced) {
            // Counting first: a handler that panics has been told.
            self.announced += 1;
            if let Some(stream) = stream {
                handler(Event::Joined(stream));
                joined += 1;
            }
        }
        joined
    }

    /// Bytes that cannot be: this reader was evicted, or the memory is damaged.
    #[cold]
    #[inline(never)]
    fn broken<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let (reason, why) = if self.edge.is_evicted() {
            (LossReason::Evicted, CloseReason::Evicted)
        } else {
            (LossReason::Damaged, CloseReason::Damaged)
        };
        // Whoever loses its place before its first poll is told what it had joined.
        let joined = self.refresh(handler);
        joined + self.end(why, Some(reason), handler)
    }

    fn end<F: FnMut(Event<'_>)>(
        &mut self,
        why: CloseReason,
        lost: Option<LossReason>,
        handler: &mut F,
    ) -> usize {
        self.end = Some(End { why, lost, lost_told: 0, left_told: 0 });
        self.tell_end(handler)
    }

    /// Tells each stream's loss, then each stream's end, from where it stopped the last time.
    #[cold]
    #[inline(never)]
    fn tell_end<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let Some(end) = &mut self.end else { return 0 };
        let (first, why, mut told) = (self.edge.messages(), end.why, 0);
        // Counting first, both: a handler that panics has been told.
        while let Some(reason) = end.lost
            && let Some(stream) = self.streams.get(end.lost_told)
        {
            end.lost_told += 1;
            if let Some(stream) = stream {
                handler(Event::Lost(Gap { stream, first, count: None, why: reason }));
                told += 1;
            }
        }
        while let Some(stream) = self.streams.get(end.left_told) {
            end.left_told += 1;
            if let Some(stream) = stream {
                handler(Event::Left(stream, why));
                told += 1;
            }
        }
        told
    }

    /// Whether nothing more will come.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.left_told == self.streams.len())
    }

    /// Whether it is over because the publisher took the place away.
    pub(crate) fn was_evicted(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.why == CloseReason::Evicted)
    }

    /// Whether the publisher's process has ended.
    #[inline]
    fn is_orphan(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.is_gone())
    }

    pub(crate) const fn session(&self) -> u64 {
        self.session
    }

    /// How many streams have been announced.
    pub(crate) fn streams(&self) -> usize {
        self.streams.iter().flatten().count()
    }

    /// Announces sleep; see [`ReadEdge::prepare_sleep`].
    pub(crate) fn prepare_sleep(&self) -> Option<(&AtomicU32, u32, bool)> {
        let (expected, covered) = self.edge.prepare_sleep()?;
        Some((&self.edge.memory().slot(self.edge.index()).wake, expected, covered))
    }

    /// Takes the announcement of sleep back.
    pub(crate) fn awake(&self) {
        self.edge.awake();
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.edge.leave();
    }
}

/// Writes into the slot who owns it, for others to look at.
fn sign(slot: &Slot, wait: WaitStrategy) {
    let own = Identity::own();
    slot.pid.store(own.pid, Ordering::Relaxed);
    slot.namespace.store(own.namespace, Ordering::Relaxed);
    slot.start_time.store(own.start_time, Ordering::Relaxed);
    slot.wait.store(wait.code(), Ordering::Relaxed);
    slot.messages.store(0, Ordering::Relaxed);
    slot.sleeps.store(0, Ordering::Relaxed);
    let name = u128::from_le_bytes(own_name());
    slot.name[0].store(name as u64, Ordering::Relaxed);
    slot.name[1].store((name >> 64) as u64, Ordering::Relaxed);
}

/// The publisher, as its header names it.
pub(crate) fn owner(header: &RingHeader) -> Identity {
    Identity {
        pid: header.pid.get(),
        namespace: header.namespace.get(),
        start_time: header.start_time.get(),
    }
}
