//! Image of a session: a subscriber's view of one publisher's ring.
//!
//! Created by the conductor or by the in-process registry, on any thread; then owned and polled by
//! the subscriber.

use crate::copy_buffer::CopyBuffer;
use crate::error::JoinError;
use crate::liveness::publisher_process;
use crate::local_session::LocalSession;
use crate::memory::Memory;
use crate::numbered_stream::NumberedStream;
use crate::remote_publisher::RemotePublisher;
use crate::ring_reader::{Next, RingReader};
use crate::segment::{Segment, SessionFiles};
use crate::slot_lease::SlotLease;
use crate::wake_signal::WakeSignal;
use crate::watched_end::WatchedWord;
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

/// Most messages of other topics skipped in one poll, so that a faster publisher or a damaged ring
/// without end cannot keep the caller.
const SKIPS_MAX: usize = 4096;

/// The part of a subscription that its images need.
#[derive(Clone, Debug)]
pub(crate) struct JoinRequest {
    /// The wanted topics.
    pub(crate) topics: Arc<[String]>,
    /// The session that is not wanted.
    pub(crate) except: Option<u64>,
    /// The subscriber's wait strategy, shown in the slot.
    pub(crate) wait: WaitStrategy,
    /// Wakes the subscriber.
    pub(crate) signal: Arc<WakeSignal>,
}

/// A joined session: its ring reader, and the streams of the wanted topics.
#[derive(Debug)]
pub(crate) struct Image {
    reader: RingReader<Segment>,
    /// Streams by topic number; `None` for unwanted topics.
    streams: Vec<Option<NumberedStream>>,
    /// Streams below this number have been announced.
    announced: usize,
    /// Bytes after which the cursor is shown to the publisher.
    release_every: u64,
    session: u64,
    pid: u32,
    wanted: Arc<[String]>,
    /// Source in events: `shm:<session>` or `thread:<session>`.
    source: String,
    /// The publisher, if it is another process, which may die.
    publisher: Option<Arc<RemotePublisher>>,
    /// Copy of the handler's message, if the publisher evicts: in the ring the message could be
    /// overwritten while it is read.
    copy: Option<CopyBuffer>,
    end: Option<End>,
    /// The slot's wake word, for the wake-up thread; made when the subscriber has a descriptor.
    watched: Option<Arc<WatchedWord>>,
    // Last: the slot is released after the reader has left it.
    _lease: SlotLease,
}

/// Properties of a session that an image takes over.
struct SessionInfo {
    lease: SlotLease,
    session: u64,
    source: String,
    publisher: Option<Arc<RemotePublisher>>,
    /// Whether the publisher evicts live subscribers that do not read.
    evicts: bool,
}

/// End of the session, and the number of streams whose end the handler has got.
#[derive(Debug)]
struct End {
    reason: CloseReason,
    lost: Option<LossReason>,
    lost_reported: usize,
    left_reported: usize,
}

impl Image {
    /// Joins another process's session, whose ring file has been opened and checked.
    pub(crate) fn join(
        files: &SessionFiles,
        (ring, header, limits): (File, RingHeader, Limits),
        request: &JoinRequest,
    ) -> Result<(Self, Arc<RemotePublisher>), JoinError> {
        let io = |error| JoinError::Io { path: files.gate.clone(), error };
        let gate = files.open_gate(&limits, true)?;
        let mapped_gate = gate.try_clone().map_err(io)?;
        let slots = limits.subscribers_max;
        let lease = SlotLease::acquire(gate, slots)
            .map_err(io)?
            .ok_or_else(|| JoinError::NoSlot { path: files.ring.clone(), slots })?;
        let segment = Segment::map(&ring, &mapped_gate, limits, MapMode::Read)
            .map_err(|error| JoinError::Io { path: files.ring.clone(), error })?;
        let (process, signal) = (publisher_process(&header), Arc::clone(&request.signal));
        let publisher = Arc::new(RemotePublisher::new(ring, process, signal));
        let info = SessionInfo {
            lease,
            session: files.session,
            source: format!("shm:{:016x}", files.session),
            publisher: Some(Arc::clone(&publisher)),
            evicts: header.flags.get() & FLAG_EVICTS != 0,
        };
        Ok((Self::new(segment, info, request), publisher))
    }

    /// Joins a session of this process.
    pub(crate) fn join_local(
        session: &Arc<LocalSession>,
        request: &JoinRequest,
    ) -> Result<Self, JoinError> {
        let info = SessionInfo {
            lease: session.lease_slot()?,
            session: session.number(),
            source: session.source(),
            publisher: None,
            evicts: session.evicts(),
        };
        Ok(Self::new(session.segment().clone(), info, request))
    }

    fn new(segment: Segment, info: SessionInfo, request: &JoinRequest) -> Self {
        let SessionInfo { lease, session, source, publisher, evicts } = info;
        write_slot_owner(segment.slot(lease.index()), request.wait);
        let limits = *segment.limits();
        Self {
            reader: RingReader::join(segment, lease.index(), limits.longest_message),
            streams: Vec::new(),
            announced: 0,
            release_every: limits.window_bytes / 8,
            session,
            pid: publisher.as_ref().map_or_else(std::process::id, |publisher| publisher.pid()),
            wanted: Arc::clone(&request.topics),
            source,
            publisher,
            copy: evicts.then(|| CopyBuffer::new(limits.longest_message)),
            end: None,
            watched: None,
            _lease: lease,
        }
    }

    /// Calls `handler` for at most `limit` messages, and for changes of the session; returns the
    /// number of events.
    #[inline(always)]
    pub(crate) fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: &mut F) -> usize {
        if self.end.is_some() {
            // The handler panicked in an event of the end.
            return self.report_end(handler);
        }
        let (mut work, mut skipped) = (0, 0);
        while work < limit {
            let frame = match self.reader.peek() {
                Next::Frame(frame) => frame,
                Next::Empty => return work + self.idle(handler),
                Next::Broken => return work + self.end_broken(handler),
            };
            // Pass first: a handler that panics has consumed its message. The publisher sees the
            // new cursor only after the handler has returned.
            self.reader.pass(frame.length);
            let topic = frame.topic.topic() as usize;
            if let Some(Some(numbered)) = self.streams.get_mut(topic) {
                let Some(number) = numbered.pass(frame.topic) else {
                    self.reader.unpass(frame.length);
                    return work + self.end_broken(handler);
                };
                let stream = &numbered.stream;
                let body = self.reader.memory().byte(frame.body);
                let length = frame.length as usize;
                if let Some(copy) = &mut self.copy {
                    let Some(bytes) = copy.copy(body, length, &self.reader) else {
                        numbered.next = number;
                        self.reader.unpass(frame.length);
                        return work + self.end_broken(handler);
                    };
                    let message = Message::new(bytes, stream, number, Lease::FOR_GOOD);
                    handler(Event::Message(message));
                } else {
                    // SAFETY: the bytes lie in the ring, which is mapped twice and whose window is
                    // eight times the checked length; the publisher writes them only after this
                    // reader's cursor has moved on, or after ending the reader's lease.
                    let bytes = unsafe { core::slice::from_raw_parts(body.as_ptr(), length) };
                    let ring = self.reader.memory().ring();
                    let lease = &ring.evicted[self.reader.index()];
                    let lease = Lease::until(lease, self.reader.lease());
                    handler(Event::Message(Message::new(bytes, stream, number, lease)));
                }
                work += 1;
            } else if topic >= self.streams.len() {
                self.reader.unpass(frame.length);
                work += self.new_topic(handler);
                if self.has_ended() {
                    return work;
                }
                continue;
            } else {
                skipped += 1;
                if skipped == SKIPS_MAX {
                    return work;
                }
            }
            if self.reader.unreleased() >= self.release_every {
                self.reader.release();
            }
        }
        work
    }

    /// Without a message: shows the cursor, and checks for the session's end and for new topics.
    #[inline]
    fn idle<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        self.reader.note_caught_up();
        if self.reader.unreleased() > 0 {
            self.reader.release();
        }
        let topics = self.reader.memory().ring().topics.load(Ordering::Relaxed);
        let is_unchanged = topics as usize == self.streams.len()
            && !self.reader.is_closed()
            && !self.is_publisher_gone()
            && !self.reader.is_evicted();
        if is_unchanged { 0 } else { self.handle_change(handler) }
    }

    #[cold]
    #[inline(never)]
    fn handle_change<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        if self.reader.is_evicted() {
            return self.end_broken(handler);
        }
        let work = self.announce_topics(handler);
        let (closed, gone) = (self.reader.is_closed(), self.is_publisher_gone());
        // Peek again: everything committed before the end is visible by now.
        match self.reader.peek() {
            Next::Empty if closed => work + self.end(CloseReason::Closed, None, handler),
            Next::Empty if gone => work + self.end(CloseReason::Died, None, handler),
            _ => work,
        }
    }

    /// Handles a message of an unknown topic, which the topic table must have.
    #[cold]
    #[inline(never)]
    fn new_topic<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let known = self.streams.len();
        let work = self.announce_topics(handler);
        if self.streams.len() == known { work + self.end_broken(handler) } else { work }
    }

    /// Reads the topics added since the last call and announces the wanted ones.
    #[cold]
    #[inline(never)]
    fn announce_topics<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let segment = self.reader.memory();
        // PAIRS(topics): acquire here, release in `Publisher::add_topic`.
        let count = segment.ring().topics.load(Ordering::Acquire);
        let count = count.min(segment.limits().topics_max);
        for number in self.streams.len() as u32..count {
            let name = segment.read_topic(number);
            let wanted = name.filter(|name| self.wanted.contains(name));
            let stream = wanted.map(|topic| Stream {
                session: SessionId(self.session),
                topic: Stream::visible_topic(&topic).to_owned(),
                topic_id: TopicId(number),
                pid: self.pid,
                source: self.source.clone(),
            });
            let next = self.reader.first_number_max(number);
            let numbered = stream.map(|stream| NumberedStream::new(stream, next));
            self.streams.push(numbered);
        }
        let mut joined = 0;
        while let Some(stream) = self.streams.get(self.announced) {
            // Count first: a handler that panics has got the event.
            self.announced += 1;
            if let Some(NumberedStream { stream, .. }) = stream {
                handler(Event::Joined(stream));
                joined += 1;
            }
        }
        joined
    }

    /// Ends the session after invalid bytes: this reader was evicted, or the memory is damaged.
    #[cold]
    #[inline(never)]
    fn end_broken<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let (lost, reason) = if self.reader.is_evicted() {
            (LossReason::Evicted, CloseReason::Evicted)
        } else {
            (LossReason::Damaged, CloseReason::Damaged)
        };
        // A subscriber evicted before its first poll still gets the joined events.
        let joined = self.announce_topics(handler);
        joined + self.end(reason, Some(lost), handler)
    }

    fn end<F: FnMut(Event<'_>)>(
        &mut self,
        reason: CloseReason,
        lost: Option<LossReason>,
        handler: &mut F,
    ) -> usize {
        self.end = Some(End { reason, lost, lost_reported: 0, left_reported: 0 });
        self.report_end(handler)
    }

    /// Reports each stream's loss, then each stream's end; resumes after a panic of the handler.
    #[cold]
    #[inline(never)]
    fn report_end<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let Some(end) = &mut self.end else { return 0 };
        let (reason, mut events) = (end.reason, 0);
        // Count first, both: a handler that panics has got the event.
        while let Some(why) = end.lost
            && let Some(stream) = self.streams.get(end.lost_reported)
        {
            let number = end.lost_reported as u32;
            end.lost_reported += 1;
            if let Some(NumberedStream { stream, next: first, .. }) = stream {
                let (first, published) = (*first, self.reader.count(number));
                // Nothing came after the stream's last message: the loss is of other streams.
                let Some(count) = published.checked_sub(first).filter(|count| *count > 0) else {
                    continue;
                };
                handler(Event::Lost(Gap { stream, first, count, why }));
                events += 1;
            }
        }
        while let Some(stream) = self.streams.get(end.left_reported) {
            end.left_reported += 1;
            if let Some(NumberedStream { stream, .. }) = stream {
                handler(Event::Left(stream, reason));
                events += 1;
            }
        }
        events
    }

    /// Whether the session has ended and every stream's end is reported.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.left_reported == self.streams.len())
    }

    /// Whether the session has ended by eviction.
    pub(crate) fn was_evicted(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.reason == CloseReason::Evicted)
    }

    /// Whether the publisher's process has ended.
    #[inline]
    fn is_publisher_gone(&self) -> bool {
        self.publisher.as_ref().is_some_and(|publisher| publisher.is_gone())
    }

    pub(crate) const fn session(&self) -> u64 {
        self.session
    }

    /// Number of joined streams.
    pub(crate) fn streams(&self) -> usize {
        self.streams.iter().flatten().count()
    }

    /// Announces sleep; returns the word to sleep on besides: see [`RingReader::prepare_sleep`].
    pub(crate) fn prepare_sleep(&self) -> Option<(&AtomicU32, u32, bool)> {
        let (expected, covered) = self.reader.prepare_sleep()?;
        Some((&self.reader.memory().slot(self.reader.index()).wake, expected, covered))
    }

    /// The slot's wake word, for the wake-up thread.
    pub(crate) fn watched_word(&mut self) -> Arc<WatchedWord> {
        let (memory, index) = (self.reader.memory(), self.reader.index());
        Arc::clone(self.watched.get_or_insert_with(|| WatchedWord::slot(memory.clone(), index)))
    }

    /// Announces sleep, without a fence: see [`RingReader::announce_sleep`].
    pub(crate) fn announce_sleep(&self) {
        self.reader.announce_sleep();
        self.reader.count_sleep();
    }

    /// Whether a poll has something to do.
    pub(crate) fn has_news(&self) -> bool {
        let memory = self.reader.memory();
        let topics = memory.ring().topics.load(Ordering::Relaxed).min(memory.limits().topics_max);
        self.end.is_some()
            || topics as usize != self.streams.len()
            || self.is_publisher_gone()
            || self.reader.has_news()
    }

    /// Withdraws the announcement of sleep.
    pub(crate) fn cancel_sleep(&self) {
        self.reader.cancel_sleep();
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.reader.leave();
    }
}

/// Writes the slot's owner, for the publisher and for inspection.
fn write_slot_owner(slot: &Slot, wait: WaitStrategy) {
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
