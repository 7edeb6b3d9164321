//! Ring writer with flow control: admits a message once every gating reader has left its bytes, and
//! evicts dead or stalled readers meanwhile.
//!
//! Owned by the publisher, used on its thread.

use crate::arming::arm_publisher;
use crate::local_session::LocalSession;
use crate::memory::Memory;
use crate::ring_writer::{Eviction, RingWriter};
use crate::segment::Segment;
use crate::settings::DomainSettings;
use crate::slot_roster::SlotRoster;
use crate::stall_detector::{GatingReader, StallDetector};
use crate::wakeup_thread::{Wakeup, Wakeups};
use crate::watched_end::WatchedEnd;
use lanecast_base::sync::Ordering;
use lanecast_base::{Position, WaitStep, Waiter, spin};
use lanecast_transport::{
    BackPressureReason, ClaimError, Completion, IncompleteReason, PublisherEvent, TopicId,
};
use lanecast_wire::shm::FRAME_ALIGN;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest sleep while waiting for subscribers: the death of one wakes no publisher.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// A session's ring writer, its wait strategy, and its stall detector.
#[derive(Debug)]
pub(crate) struct GatedWriter {
    ring: RingWriter<Segment>,
    longest: u32,
    waiter: Waiter,
    stall_detector: StallDetector,
    roster: SlotRoster,
    /// Time of the last check for dead subscribers by `poll_events`.
    checked_at: Option<Instant>,
    /// Bytes of the last claim, if it was refused, until `poll_events` tells of the room.
    refused: Option<u64>,
    session: Arc<LocalSession>,
    wakeups: Arc<Wakeups>,
    /// The descriptor, if the program asked for one.
    wakeup: Option<Wakeup>,
    /// The last claim was refused: the descriptor, if there is one, becomes readable when there is
    /// room.
    is_refused: bool,
}

impl GatedWriter {
    pub(crate) fn new(
        settings: &DomainSettings,
        session: Arc<LocalSession>,
        wakeups: Arc<Wakeups>,
    ) -> Self {
        let segment = session.segment().clone();
        segment.ring().wait.store(settings.publisher_wait.code(), Ordering::Relaxed);
        Self {
            longest: segment.limits().longest_message,
            ring: RingWriter::new(segment, settings.first_position()),
            waiter: Waiter::new(settings.publisher_wait),
            stall_detector: StallDetector::new(settings.liveness, settings.slow_consumer),
            roster: SlotRoster::new(),
            checked_at: None,
            refused: None,
            session,
            wakeups,
            wakeup: None,
            is_refused: false,
        }
    }

    #[inline(always)]
    pub(crate) fn ring(&mut self) -> &mut RingWriter<Segment> {
        &mut self.ring
    }

    #[inline(always)]
    pub(crate) const fn segment(&self) -> &Segment {
        self.ring.memory()
    }

    #[inline(always)]
    pub(crate) const fn longest(&self) -> u32 {
        self.longest
    }

    /// Counts another topic: messages on it are accepted from then on.
    pub(crate) fn count_topic(&mut self) {
        self.ring.add_topic();
    }

    /// Checks that `len` bytes on `topic` can ever be sent.
    #[inline(always)]
    pub(crate) fn check(&self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        if len > self.longest as usize {
            return Err(ClaimError::TooLong { longest: self.longest as usize });
        }
        if topic.0 as usize >= self.ring.topics() {
            return Err(ClaimError::NoSuchTopic);
        }
        Ok(())
    }

    /// Checks that the last `bytes` before `end` may be written; evicts dead readers that prevent
    /// it.
    #[inline(always)]
    pub(crate) fn check_space(&mut self, end: Position, bytes: u64) -> Result<(), ClaimError> {
        if self.ring.is_within_limit(end) || self.find_space(end, bytes) {
            Ok(())
        } else {
            Err(ClaimError::BackPressured(BackPressureReason::WindowFull))
        }
    }

    /// Whether the bytes up to `end` may be written, for a caller that waits for them: it is not
    /// refused, and has waited for them before if `is_waiting`. Evicts dead readers that prevent
    /// it.
    #[inline]
    pub(crate) fn has_awaited_space(&mut self, end: Position, is_waiting: bool) -> bool {
        if self.ring.is_within_limit(end) {
            return true;
        }
        let found = self.ring.has_space(end) || {
            if !is_waiting {
                self.count_back_pressure();
            }
            self.evict_if_due(end)
        };
        if found {
            self.take_back_refusal();
        }
        found
    }

    /// Waits until the bytes up to `end` may be written.
    #[inline(always)]
    pub(crate) fn wait_for_space(&mut self, end: Position) {
        if !self.ring.is_within_limit(end) {
            self.wait_beyond_limit(end);
        }
    }

    /// Reads the cursors for space up to `end`; evicts dead readers that prevent it. Without space
    /// it notes the refusal of the last `bytes`.
    #[cold]
    #[inline(never)]
    fn find_space(&mut self, end: Position, bytes: u64) -> bool {
        let found = self.ring.has_space(end) || self.evict_for_space(end) || self.await_room(end);
        if found {
            self.take_back_refusal();
        } else {
            // Without what a batch has taken before it: by the time of the next look the batch is
            // published or dropped.
            self.refused = Some(bytes);
            self.is_refused = true;
            // The next claim that fits comes by the cold path, and takes the refusal back.
            self.ring.forget_limit();
        }
        found
    }

    #[cold]
    #[inline(never)]
    fn wait_beyond_limit(&mut self, end: Position) {
        if !self.ring.has_space(end) {
            self.wait_back_pressured(end);
        }
        self.take_back_refusal();
    }

    /// Makes the descriptor readable if the end of a batch has made room for a refused message: no
    /// subscriber does it where there is none.
    #[inline]
    pub(crate) fn end_batch(&mut self) {
        if self.is_refused {
            self.tell_room_after_batch();
        }
    }

    #[cold]
    fn tell_room_after_batch(&mut self) {
        if let (Some(bytes), Some(wakeup)) = (self.refused, &self.wakeup)
            && self.ring.has_space(self.ring.at().plus(bytes))
        {
            wakeup.event().notify();
        }
        // The next claim comes by the cold path still, and takes the refusal back.
        self.ring.forget_limit();
    }

    /// The descriptor that is readable when there is room for a refused claim.
    ///
    /// # Errors
    /// If the system has no descriptor or thread for it.
    pub(crate) fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        if self.wakeup.is_none() {
            let end = WatchedEnd::publisher(Arc::clone(&self.session))?;
            let wakeup = self.wakeup.insert(self.wakeups.watch(end)?);
            // Nothing has watched for room since the refusal: the next claim finds it, or arms the
            // descriptor.
            if self.is_refused {
                wakeup.event().arm();
                wakeup.event().notify();
            }
        }
        let wakeup = self.wakeup.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(wakeup.descriptor())
    }

    /// Arms the descriptor, if there is one, after a claim up to `end` found no space; returns
    /// whether there is space now.
    fn await_room(&mut self, end: Position) -> bool {
        let Some(wakeup) = &self.wakeup else { return false };
        let wake_thread = |is_covered| {
            wakeup.note_coverage(is_covered);
            // The thread checks for dead subscribers from now on.
            wakeup.wake_thread();
        };
        !wakeup.event().is_armed()
            && arm_publisher(wakeup.event(), &mut self.ring, wake_thread, end)
    }

    /// Forgets a refusal after a claim succeeded, and makes the descriptor unreadable again.
    fn take_back_refusal(&mut self) {
        self.refused = None;
        if core::mem::take(&mut self.is_refused)
            && let Some(wakeup) = &self.wakeup
        {
            wakeup.event().settle();
        }
    }

    #[cold]
    #[inline(never)]
    fn evict_for_space(&mut self, end: Position) -> bool {
        self.count_back_pressure();
        self.evict_if_due(end)
    }

    fn count_back_pressure(&self) {
        let count = &self.ring.memory().ring().back_pressured;
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Checks the readers that gate `end`, if a check is due; returns whether there is space now.
    fn evict_if_due(&mut self, end: Position) -> bool {
        let now = Instant::now();
        self.stall_detector.is_due(now) && self.evict_gating(end, now) && self.ring.has_space(end)
    }

    /// Evicts the dead and stalled readers that gate the bytes before `end`; returns whether there
    /// were any.
    fn evict_gating(&mut self, end: Position, now: Instant) -> bool {
        let window = self.ring.memory().window();
        let at = self.ring.at();
        let gating: Vec<GatingReader> = self
            .ring
            .gating_readers()
            .map(|(index, lease, cursor)| {
                let is_valid = at.since(cursor) <= window;
                GatingReader { index, lease, cursor, is_valid }
            })
            // The empty commit word behind the message needs space as well.
            .filter(|reader| !reader.is_valid || end.since(reader.cursor) + FRAME_ALIGN > window)
            .collect();
        let mut evicted = false;
        for reader in gating {
            let is_alive = || self.session.is_slot_owner_alive(reader.index);
            if let Some(reason) = self.stall_detector.check(reader, is_alive, now) {
                self.evict((reader.index, reader.lease, reader.cursor), reason);
                evicted = true;
            }
        }
        evicted
    }

    /// Waits by the publisher's strategy until the bytes up to `end` may be written.
    #[cold]
    #[inline(never)]
    fn wait_back_pressured(&mut self, end: Position) {
        self.count_back_pressure();
        self.waiter.reset();
        while !self.ring.has_space(end) && !self.evict_if_due(end) {
            match self.waiter.next_step() {
                WaitStep::Spin(pauses) => spin(pauses),
                WaitStep::Yield => std::thread::yield_now(),
                WaitStep::Park => {
                    let limit = self.stall_detector.interval(Instant::now());
                    self.ring.sleep(limit, |ring| ring.has_space(end));
                }
            }
        }
    }

    /// Sleeps until `done` or `timeout`, woken when a subscriber reads, joins or leaves; returns
    /// whether `done`.
    pub(crate) fn wait_until(
        &mut self,
        timeout: Duration,
        done: impl Fn(&mut Self) -> bool,
    ) -> bool {
        let start = Instant::now();
        loop {
            if done(self) {
                return true;
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else { return false };
            let interval = self.stall_detector.interval(Instant::now());
            let announced = self.ring.announce_sleep();
            // Once more: a subscriber that came before the announcement wakes nothing.
            let is_done = done(self);
            if !is_done {
                self.ring.sleep_announced(announced, left.min(interval).min(SLEEP_MAX));
            }
            self.ring.withdraw_sleep();
            // The sleep has withdrawn the announcement of an armed descriptor.
            if let Some(wakeup) = &self.wakeup {
                wakeup.event().notify();
            }
            if is_done {
                return true;
            }
        }
    }

    /// Number of live subscribers.
    pub(crate) fn subscribers(&self) -> usize {
        let is_there = |&(index, lease, _): &(usize, u64, Position)| {
            self.ring.has_joined(index, lease) && self.session.is_slot_owner_alive(index)
        };
        self.ring.gating_readers().filter(is_there).count()
    }

    fn evict(&mut self, reader: (usize, u64, Position), why: Eviction) {
        let (index, lease, _) = reader;
        self.ring.evict(index, lease, why);
        self.roster.evicted(self.ring.memory(), reader, self.ring.at(), why);
    }

    /// Evicts a reader whose owner is dead; returns whether it lives.
    fn evict_dead(&mut self, reader: (usize, u64, Position)) -> bool {
        let (index, lease, _) = reader;
        if self.session.is_slot_owner_alive(index) {
            return true;
        }
        // Read again: an owner that has left since gave back its lease first, then its lock.
        let now = self.ring.gating_readers().find(|(at, ..)| *at == index);
        if now.is_some_and(|(_, current, _)| current == lease) {
            self.evict(reader, Eviction::Dead);
        }
        false
    }

    /// Whether every live subscriber has read everything; evicts dead ones.
    fn is_drained(&mut self) -> bool {
        let at = self.ring.at();
        let uncounted = &self.roster.uncounted;
        let is_behind = |&(_, _, cursor): &_| !uncounted.are_all(cursor, at);
        let behind: Vec<_> = self.ring.gating_readers().filter(is_behind).collect();
        let living = behind.into_iter().filter(|&reader| self.evict_dead(reader)).count();
        living == 0
    }

    /// Leaves the frame that starts at `start`, the last one, out of reports.
    pub(crate) fn note_uncounted(&mut self, start: Position) {
        let window = self.ring.memory().window();
        self.roster.uncounted.add(start, self.ring.at(), window);
    }

    /// Waits until every live subscriber has read everything, at most `timeout`.
    pub(crate) fn drain(&mut self, timeout: Duration) -> Completion {
        self.wait_until(timeout, Self::is_drained);
        self.completion()
    }

    /// The subscribers that have read everything, and those that have not.
    fn completion(&mut self) -> Completion {
        let at = self.ring.at();
        let memory = self.ring.memory();
        let cursors = self.roster.update_cursors(memory);
        let mut completion = self.roster.completion_of_departed(at);
        let uncounted = &self.roster.uncounted;
        for (cursor, info) in cursors {
            if uncounted.are_all(cursor, at) {
                completion.add_complete(1);
            } else {
                let (frames, bytes) = (self.ring.count_since(cursor), at.since(cursor));
                let messages =
                    frames.map(|count| count.saturating_sub(uncounted.count(cursor, at)));
                let reason = IncompleteReason::Behind { messages, bytes };
                completion.add_incomplete(info, reason);
            }
        }
        completion
    }

    /// Gives pending events to `handler`; returns their number.
    pub(crate) fn poll_events(&mut self, mut handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        let now = Instant::now();
        let interval = self.stall_detector.interval(now);
        if self.checked_at.is_none_or(|last| now.duration_since(last) >= interval) {
            self.checked_at = Some(now);
            let readers: Vec<_> = self.ring.gating_readers().collect();
            readers.into_iter().for_each(|reader| _ = self.evict_dead(reader));
        }
        self.roster.update(self.ring.memory());
        let mut events = self.roster.membership.poll(&mut handler);
        if let Some(bytes) = self.refused {
            let end = self.ring.at().plus(bytes);
            let has_space = self.ring.has_space(end) || self.evict_if_due(end);
            // The next claim comes by the cold path still, and takes the refusal back.
            self.ring.forget_limit();
            if has_space {
                self.refused = None;
                events += 1;
                handler(PublisherEvent::Writable);
            }
        }
        events
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
