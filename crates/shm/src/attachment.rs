//! One session that a subscriber has joined.

use crate::error::AttachError;
use crate::mailbox::{Mailbox, Peer};
use crate::memory::Memory;
use crate::read_edge::{Next, ReadEdge};
use crate::segment::{Segment, SessionFiles};
use crate::vigil::slot_lock;
use lanecast_base::WaitStrategy;
use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_carrier::{Event, Gap, LossReason, Message, SessionId, Stream, Tenure, TopicId, Why};
use lanecast_os::process::{Identity, own_name};
use lanecast_os::{LockByte, MapMode};
use lanecast_wire::shm::{Limits, RingHeader, Slot};
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
    peer: Arc<Peer>,
    is_over: bool,
    // Proves that this process lives; freed after the slot has been left.
    _place: LockByte,
}

impl Attachment {
    /// Joins a session whose ring file has been opened and checked.
    pub(crate) fn join(
        files: &SessionFiles,
        (ring, header, limits): (File, RingHeader, Limits),
        mailbox: &Arc<Mailbox>,
        wait: WaitStrategy,
    ) -> Result<(Self, Arc<Peer>), AttachError> {
        let io = |source| AttachError::Io { path: files.gate.clone(), source };
        let gate = files.open_gate(&limits, true)?;
        let mapped_gate = gate.try_clone().map_err(io)?;
        let (index, place) = take_place(gate, &limits).map_err(io)?.ok_or_else(|| {
            AttachError::NoPlace { path: files.ring.clone(), places: limits.subscribers_max }
        })?;
        let segment = Segment::map(&ring, &mapped_gate, limits, MapMode::Read)
            .map_err(|source| AttachError::Io { path: files.ring.clone(), source })?;
        sign(segment.slot(index), wait);
        let edge = ReadEdge::join(segment, index, limits.longest_message);
        let owner = owner(&header);
        let peer = Arc::new(Peer::new(ring, owner, Arc::downgrade(mailbox)));
        let attachment = Self {
            edge,
            streams: Vec::new(),
            announced: 0,
            release_every: limits.window_bytes / 8,
            session: files.session,
            pid: owner.pid,
            wanted: Arc::clone(&mailbox.topics),
            peer: Arc::clone(&peer),
            is_over: false,
            _place: place,
        };
        Ok((attachment, peer))
    }

    /// Hands over at most `limit` messages; returns how many events.
    #[inline(always)]
    pub(crate) fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: &mut F) -> usize {
        if self.is_over {
            // The handler panicked at the farewell, which is not repeated.
            return 0;
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
                // SAFETY: the bytes lie in the ring, which is mapped twice and whose window is
                // eight times the checked length; the publisher does not write them until this
                // reader's cursor has moved on, or says so by ending its tenure.
                let bytes = unsafe { core::slice::from_raw_parts(body.as_ptr(), length) };
                let ring = self.edge.memory().ring();
                let tenure = &ring.evicted[self.edge.index()];
                let tenure = Tenure::until(tenure, self.edge.tenure());
                handler(Event::Message(Message::new(bytes, stream, tenure)));
                work += 1;
            } else if frame.topic as usize >= self.streams.len() {
                self.edge.unpass(frame.length);
                work += self.new_topic(handler);
                if self.is_over {
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
            && !self.peer.is_gone()
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
        let (closed, gone) = (self.edge.is_closed(), self.peer.is_gone());
        // Whatever was committed before the end is visible by now: look once more.
        match self.edge.peek() {
            Next::Empty if closed => work + self.end(Why::Closed, handler),
            Next::Empty if gone => work + self.end(Why::Died, handler),
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
                source: format!("shm:{:016x}", self.session),
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
            (LossReason::Evicted, Why::Evicted)
        } else {
            (LossReason::Damaged, Why::Damaged)
        };
        // Whoever loses its place before its first poll is told what it had joined.
        let joined = self.refresh(handler);
        let first = self.edge.messages();
        let gap = |stream| Gap { stream, first, count: None, why: reason };
        let announced = self.streams.iter().flatten();
        let lost = announced.map(|stream| handler(Event::Lost(gap(stream)))).count();
        joined + lost + self.end(why, handler)
    }

    fn end<F: FnMut(Event<'_>)>(&mut self, why: Why, handler: &mut F) -> usize {
        self.is_over = true;
        let streams = self.streams.iter().flatten();
        streams.map(|stream| handler(Event::Left(stream, why))).count()
    }

    /// Whether nothing more will come.
    #[inline]
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
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

/// Takes the lock of the first free slot; holding it is owning the slot.
fn take_place(mut gate: File, limits: &Limits) -> std::io::Result<Option<(usize, LockByte)>> {
    for index in 0..limits.subscribers_max as usize {
        match LockByte::try_take(gate, slot_lock(index))? {
            Ok(place) => return Ok(Some((index, place))),
            Err(file) => gate = file,
        }
    }
    Ok(None)
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
