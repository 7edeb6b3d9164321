//! Image of a session: a subscriber's view of one publisher's ring.
//!
//! Created by the conductor or by the in-process registry, on any thread; then owned and polled by
//! the subscriber.

use crate::awaited_room::AwaitedRoom;
use crate::copied_run::CopiedRun;
use crate::copy_buffer::CopyBuffer;
use crate::error::JoinError;
use crate::liveness::publisher_process;
use crate::local_session::LocalSession;
use crate::memory::Memory;
use crate::numbered_stream::RunNumbers;
use crate::remote_publisher::RemotePublisher;
use crate::ring_reader::{Frame, Next, RingReader};
use crate::run_progress::{Pending, Progress};
use crate::segment::{Segment, SessionFiles};
use crate::slot_events::SlotEvent;
use crate::slot_lease::{SlotLease, write_slot_owner};
use crate::stream_table::StreamTable;
use crate::wake_signal::WakeSignal;
use crate::watched_end::WatchedWord;
use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_base::{Position, WaitStrategy};
use lanecast_os::MapMode;
use lanecast_os::event::ArmedEvent;
use lanecast_transport::{CloseReason, Event, Lease, LossReason, Message, Stream, TopicSelection};
use lanecast_wire::shm::{FLAG_EVICTS, Limits, RingHeader};
use std::fs::File;
use std::sync::Arc;

/// Most messages of other topics skipped in one poll, so that a faster publisher or a damaged ring
/// without end cannot keep the caller.
const SKIPS_MAX: usize = 4096;

/// The part of a subscription that its images need.
#[derive(Clone, Debug)]
pub(crate) struct JoinRequest {
    /// The wanted topics.
    pub(crate) topics: TopicSelection,
    /// The session that is not wanted.
    pub(crate) except: Option<u64>,
    /// The subscriber's wait strategy, shown in the slot.
    pub(crate) wait: WaitStrategy,
    /// Wakes the subscriber.
    pub(crate) signal: Arc<WakeSignal>,
    /// Room for topics that find none.
    pub(crate) room: Arc<AwaitedRoom>,
}

/// A joined session: its ring reader, and the streams of the wanted topics.
#[derive(Debug)]
pub(crate) struct Image {
    reader: RingReader<Segment>,
    streams: StreamTable,
    /// Bytes after which the cursor is shown to the publisher.
    release_every: u64,
    /// The publisher, if it is another process, which may die.
    publisher: Option<Arc<RemotePublisher>>,
    /// Copy of the handler's message, if the publisher evicts: in the ring the message could be
    /// overwritten while it is read.
    copy: Option<CopyBuffer>,
    /// Copies of a run's messages, if the publisher evicts.
    copied_run: CopiedRun,
    longest: u32,
    /// Made when the subscriber has a descriptor.
    wakeup: Option<SlotWakeup>,
    // Last: the slot is released after the reader has left it.
    _lease: SlotLease,
}

/// The way from the publisher's wake-up of the slot to the subscriber's descriptor.
#[derive(Debug)]
enum SlotWakeup {
    /// The publisher is another process: it writes to the subscriber's pipe, or changes the slot's
    /// word, on which the wake-up thread sleeps.
    Word(Arc<WatchedWord>),
    /// The publisher signals it; the wake-up thread checks the announcement of sleep.
    Event { _registered: SlotEvent, word: Arc<WatchedWord> },
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
        let pid = publisher.as_ref().map_or_else(std::process::id, |publisher| publisher.pid());
        let wanted = (request.topics.admission(), Arc::clone(&request.room));
        Self {
            reader: RingReader::join(segment, lease.index(), limits.longest_message),
            streams: StreamTable::new(session, pid, wanted, source),
            release_every: limits.window_bytes / 8,
            publisher,
            copy: evicts.then(|| CopyBuffer::new(limits.longest_message)),
            copied_run: CopiedRun::default(),
            longest: limits.longest_message,
            wakeup: None,
            _lease: lease,
        }
    }

    /// Calls `handler` for at most `limit` messages, and for changes of the session; returns the
    /// number of events.
    #[inline(always)]
    pub(crate) fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: &mut F) -> usize {
        if self.copy.is_some() {
            self.poll_copied(limit, handler)
        } else {
            self.poll_by::<false, F>(limit, handler)
        }
    }

    #[inline(never)]
    fn poll_copied<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: &mut F) -> usize {
        self.poll_by::<true, F>(limit, handler)
    }

    /// [`poll`](Self::poll) by copies, or in place: decided once, not for each message.
    #[inline(always)]
    fn poll_by<const COPIES: bool, F: FnMut(Event<'_>)>(
        &mut self,
        limit: usize,
        handler: &mut F,
    ) -> usize {
        let (mut work, mut skipped) = (0, 0);
        if self.streams.may_admit(&self.reader) {
            self.streams.admit_refused(&self.reader);
        }
        if self.streams.has_events() {
            // Found by a run that was dropped, or the handler panicked.
            work = self.streams.report(handler);
            if self.streams.is_ending() {
                return work;
            }
        }
        while work < limit {
            let frame = match self.reader.peek() {
                Next::Frame(frame) => frame,
                Next::Empty if self.is_idle() => return work,
                Next::Empty => return work + self.report_after(Self::note_change, handler),
                Next::Broken => return work + self.report_after(Self::note_broken, handler),
            };
            // Pass first: a handler that panics has consumed its message. The publisher sees the
            // new cursor only after the handler has returned.
            self.reader.pass(frame.length);
            let topic = self.streams.get_mut(frame.topic.topic());
            if let Some(Some(numbered)) = topic {
                let Some(number) = numbered.pass(frame.topic) else {
                    self.reader.unpass(frame.length);
                    return work + self.report_after(Self::note_broken, handler);
                };
                let stream = &numbered.stream;
                if COPIES && let Some(copy) = &mut self.copy {
                    let body = self.reader.memory().byte(frame.body);
                    let length = frame.length as usize;
                    let Some(bytes) = copy.copy(body, length, &self.reader) else {
                        numbered.set_next(number);
                        self.reader.unpass(frame.length);
                        return work + self.report_after(Self::note_broken, handler);
                    };
                    let message = Message::new(bytes, stream, number, Lease::FOR_GOOD);
                    handler(Event::Message(message));
                } else {
                    handler(Event::Message(message_in_place(&self.reader, frame, stream, number)));
                }
                work += 1;
            } else if topic.is_none() {
                self.reader.unpass(frame.length);
                work += self.report_after(Self::note_new_topic, handler);
                if self.streams.is_ending() {
                    return work;
                }
                continue;
            } else {
                skipped += 1;
                if skipped == SKIPS_MAX {
                    return work;
                }
            }
            self.release_some();
        }
        work
    }

    /// Prepares a run of at most `limit` events; returns their kind, or `None` if there are none.
    #[inline]
    pub(crate) fn prepare_run(&mut self, limit: usize) -> Option<Pending> {
        let mut skipped = 0;
        if self.streams.may_admit(&self.reader) {
            self.streams.admit_refused(&self.reader);
        }
        while !self.streams.has_events() && skipped < SKIPS_MAX {
            let frame = match self.reader.peek() {
                Next::Frame(frame) => frame,
                Next::Empty => {
                    if self.is_idle() {
                        return None;
                    }
                    self.note_change();
                    break;
                }
                Next::Broken => {
                    self.note_broken();
                    break;
                }
            };
            match self.streams.get_mut(frame.topic.topic()) {
                None => self.note_new_topic(),
                Some(None) => {
                    self.reader.pass(frame.length);
                    skipped += 1;
                    self.release_some();
                }
                Some(Some(stream)) => {
                    if stream.accept(frame.topic) {
                        if self.copy.is_none() {
                            return Some(Pending::InPlace);
                        }
                        let (run, streams) = (&mut self.copied_run, &self.streams);
                        if run.copy(&self.reader, streams, self.longest, limit) {
                            return Some(Pending::Copied);
                        }
                    }
                    self.note_broken();
                }
            }
        }
        let has_more = self.streams.has_events() && self.streams.pass_to(self.streams.progress());
        has_more.then_some(Pending::Life)
    }

    /// Start of a run, and the position where its messages end.
    #[inline]
    pub(crate) fn run_range(&self) -> (Progress, Position) {
        let walk = self.reader.walk();
        // Two eighths: the publisher has room for more while the run is held.
        let end = walk.at().plus(2 * self.release_every);
        let (life, numbers) = (self.streams.progress(), RunNumbers::default());
        (Progress { life, walk, numbers, copies: 0 }, end)
    }

    /// The next wanted message of a run before `end`, read in place.
    #[inline(always)]
    pub(crate) fn message_at(&self, run: &mut Progress, end: Position) -> Option<Event<'_>> {
        while end.is_past(run.walk.at()) {
            let Next::Frame(frame) = self.reader.peek_at(&run.walk) else { return None };
            // The run ends before a message of a new topic, which is announced first, and before
            // one whose number is not the next one.
            let stream = self.streams.get(frame.topic.topic())?;
            let Some(numbered) = stream else {
                self.reader.step(&mut run.walk, frame.length);
                continue;
            };
            let number = run.numbers.step(numbered, frame.topic)?;
            self.reader.step(&mut run.walk, frame.length);
            let message = message_in_place(&self.reader, frame, &numbered.stream, number);
            return Some(Event::Message(message));
        }
        None
    }

    /// The event after `progress` of a run that is not read in place.
    #[inline(never)]
    pub(crate) fn event_at(&self, pending: Pending, progress: &mut Progress) -> Option<Event<'_>> {
        if pending == Pending::Life {
            return self.streams.event_at(&mut progress.life);
        }
        let (bytes, (topic, number), after) = self.copied_run.get(progress.copies)?;
        (progress.walk, progress.copies) = (after, progress.copies + 1);
        let stream = &self.streams.get(topic)??.stream;
        Some(Event::Message(Message::new(bytes, stream, number, Lease::FOR_GOOD)))
    }

    /// Passes the events of a run that were yielded.
    #[inline]
    pub(crate) fn pass_run(&mut self, pending: Pending, yielded: Progress) {
        match (pending, yielded.numbers.only_topic()) {
            (Pending::Life, _) => {
                self.streams.pass_to(yielded.life);
                return;
            }
            (Pending::Copied, _) => {
                let passed = (0..yielded.copies).filter_map(|index| self.copied_run.get(index));
                for (_, (topic, number), _) in passed {
                    self.streams.set_next(topic, number.wrapping_add(1));
                }
            }
            (Pending::InPlace, Some((topic, next))) => self.streams.set_next(topic, next),
            (Pending::InPlace, None) => {
                self.streams.pass_messages(&self.reader, yielded.walk.at());
            }
        }
        self.reader.pass_to(yielded.walk);
        self.release_some();
    }

    /// Shows the publisher the cursor after every eighth of the ring.
    #[inline(always)]
    fn release_some(&mut self) {
        if self.reader.unreleased() >= self.release_every {
            self.reader.release();
        }
    }

    /// Without a message: shows the cursor, and checks for the session's end and for new topics.
    /// Returns whether there are none.
    #[inline]
    fn is_idle(&mut self) -> bool {
        self.reader.note_caught_up();
        if self.reader.unreleased() > 0 {
            self.reader.release();
        }
        self.topics() == self.streams.len()
            && !self.reader.is_closed()
            && !self.is_publisher_gone()
            && !self.reader.is_evicted()
    }

    /// Number of topics by the ring's count, which is untrusted.
    #[inline]
    fn topics(&self) -> usize {
        let memory = self.reader.memory();
        memory.ring().topics.load(Ordering::Relaxed).min(memory.limits().topics_max) as usize
    }

    /// Notes a change of the session, and reports it.
    #[cold]
    #[inline(never)]
    fn report_after<F: FnMut(Event<'_>)>(&mut self, note: fn(&mut Self), handler: &mut F) -> usize {
        note(self);
        self.streams.report(handler)
    }

    /// Notes new topics, and the end of the session: each is reported by the next events.
    #[cold]
    #[inline(never)]
    fn note_change(&mut self) {
        // Topics are never taken back: a count that shrinks, or was raised for a moment, would hide
        // later topics.
        if self.reader.is_evicted() || self.topics() < self.streams.len() {
            return self.note_broken();
        }
        let end = end_reason(|| self.is_publisher_gone(), || self.reader.is_closed());
        self.streams.note_topics(&self.reader);
        // Peek again: everything committed before the end is visible by now.
        if let (Next::Empty, Some(reason)) = (self.reader.peek(), end) {
            self.streams.note_end(&self.reader, reason, None);
        }
    }

    /// Reads the topic of a message of an unknown one, which the topic table must have.
    #[cold]
    #[inline(never)]
    fn note_new_topic(&mut self) {
        let known = self.streams.len();
        self.streams.note_topics(&self.reader);
        if self.streams.len() == known {
            self.note_broken();
        }
    }

    /// Ends the session after invalid bytes: this reader was evicted, or the memory is damaged.
    #[cold]
    #[inline(never)]
    fn note_broken(&mut self) {
        let (lost, reason) = if self.reader.is_evicted() {
            (LossReason::Evicted, CloseReason::Evicted)
        } else {
            (LossReason::Damaged, CloseReason::Damaged)
        };
        // A subscriber evicted before its first poll still gets the joined events.
        self.streams.note_topics(&self.reader);
        self.streams.note_end(&self.reader, reason, Some(lost));
    }

    /// Whether the publisher's process has ended.
    #[inline]
    fn is_publisher_gone(&self) -> bool {
        self.publisher.as_ref().is_some_and(|publisher| publisher.is_gone())
    }

    /// Joins the topics that found no room before, as far as there is some now.
    pub(crate) fn admit_refused(&mut self) {
        self.streams.admit_refused(&self.reader);
    }

    pub(crate) const fn streams(&self) -> &StreamTable {
        &self.streams
    }

    /// Announces sleep; returns the word to sleep on, and its value before: see
    /// [`RingReader::begin_sleep`].
    pub(crate) fn begin_sleep(&self) -> (&AtomicU32, u32) {
        let expected = self.reader.begin_sleep();
        (&self.reader.memory().slot(self.reader.index()).wake, expected)
    }

    /// Counts a sleep, for inspection.
    pub(crate) fn count_sleep(&self) {
        self.reader.count_sleep();
    }

    /// Has wake-ups of the slot notify `event`: by the publisher, if it is in this process or can
    /// open the pipe with number `pipe`. Returns the word for the wake-up thread.
    pub(crate) fn watch(&mut self, event: &Arc<ArmedEvent>, pipe: Option<u64>) -> Arc<WatchedWord> {
        let (memory, index) = (self.reader.memory(), self.reader.index());
        let is_local = self.publisher.is_none();
        let wakeup = self.wakeup.get_or_insert_with(|| {
            if is_local {
                let registered = SlotEvent::register(memory.events(), index, Arc::clone(event));
                let word = WatchedWord::local_slot(memory.clone(), index);
                SlotWakeup::Event { _registered: registered, word }
            } else {
                // The publisher reads it only after the next announcement of sleep.
                memory.slot(index).pipe.store(pipe.unwrap_or(0), Ordering::Relaxed);
                SlotWakeup::Word(WatchedWord::slot(memory.clone(), index, pipe.is_some()))
            }
        });
        match wakeup {
            SlotWakeup::Word(word) | SlotWakeup::Event { word, .. } => Arc::clone(word),
        }
    }

    /// Announces sleep, without a fence: see [`RingReader::announce_sleep`].
    pub(crate) fn announce_sleep(&self) {
        self.reader.announce_sleep();
        self.reader.count_sleep();
    }

    /// Fetches what the next poll reads beside the header: see [`RingReader::prefetch_next`].
    #[inline(always)]
    pub(crate) fn prefetch_next(&self) {
        self.reader.prefetch_next();
    }

    /// Whether a poll has something to do.
    pub(crate) fn has_news(&self) -> bool {
        self.streams.has_events()
            || self.streams.may_admit(&self.reader)
            || self.topics() != self.streams.len()
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

/// The reason of a session's end, if it has ended. Whether the publisher is gone is looked at
/// first: one that closes and ends between the two looks has closed.
fn end_reason(
    is_gone: impl FnOnce() -> bool,
    is_closed: impl FnOnce() -> bool,
) -> Option<CloseReason> {
    let is_gone = is_gone();
    if is_closed() {
        return Some(CloseReason::Closed);
    }
    is_gone.then_some(CloseReason::Died)
}

/// The message of `frame`, the next one of `reader` or of a walk from there on, in the ring.
#[inline(always)]
fn message_in_place<'a>(
    reader: &'a RingReader<Segment>,
    frame: Frame,
    stream: &'a Stream,
    number: u64,
) -> Message<'a> {
    let body = reader.memory().byte(frame.body);
    // SAFETY: the bytes lie in the ring, which is mapped twice and whose window is eight times the
    // checked length. The publisher writes them only after this reader's cursor has moved on, which
    // the return of the handler or the drop of the run does: the borrow of the image ends before
    // it; or after ending the reader's lease.
    let bytes = unsafe { core::slice::from_raw_parts(body.as_ptr(), frame.length as usize) };
    let lease = Lease::until(reader.last_evicted(), reader.lease());
    Message::new(bytes, stream, number, lease)
}

#[cfg(all(test, not(loom)))]
mod tests;
