//! Ring writer with flow control: admits a message once every gating reader has left its bytes, and
//! evicts dead or stalled readers meanwhile.
//!
//! Owned by the publisher, used on its thread.

use crate::local_session::LocalSession;
use crate::memory::Memory;
use crate::ring_writer::{Eviction, RingWriter};
use crate::segment::Segment;
use crate::settings::DomainSettings;
use crate::stall_detector::{GatingReader, StallDetector};
use lanecast_base::sync::Ordering;
use lanecast_base::{Position, WaitStep, Waiter, spin};
use lanecast_transport::{BackPressureReason, ClaimError, TopicId};
use lanecast_wire::shm::FRAME_ALIGN;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest sleep while waiting for subscribers: the death of one wakes no publisher.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// A session's ring writer, its wait strategy, and its stall detector.
#[derive(Debug)]
pub(crate) struct GatedWriter {
    ring: RingWriter<Segment>,
    longest: u32,
    /// Number of topics.
    topics: u32,
    waiter: Waiter,
    stall_detector: StallDetector,
    /// Subscribers evicted before they had read everything.
    left_behind: usize,
    session: Arc<LocalSession>,
}

impl GatedWriter {
    pub(crate) fn new(settings: &DomainSettings, session: Arc<LocalSession>) -> Self {
        let segment = session.segment().clone();
        segment.ring().wait.store(settings.publisher_wait.code(), Ordering::Relaxed);
        Self {
            longest: segment.limits().longest_message,
            ring: RingWriter::new(segment, settings.first_position()),
            topics: 0,
            waiter: Waiter::new(settings.publisher_wait),
            stall_detector: StallDetector::new(settings.liveness, settings.slow_consumer),
            left_behind: 0,
            session,
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

    pub(crate) const fn left_behind(&self) -> usize {
        self.left_behind
    }

    /// Counts another topic: messages on it are accepted from then on.
    pub(crate) fn count_topic(&mut self) {
        self.topics += 1;
    }

    /// Checks that `len` bytes on `topic` can ever be sent.
    #[inline(always)]
    pub(crate) fn check(&self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        if len > self.longest as usize {
            return Err(ClaimError::TooLong { longest: self.longest as usize });
        }
        if topic.0 >= self.topics {
            return Err(ClaimError::NoSuchTopic);
        }
        Ok(())
    }

    /// Checks that the bytes up to `end` may be written; evicts dead readers that prevent it.
    #[inline(always)]
    pub(crate) fn check_space(&mut self, end: Position) -> Result<(), ClaimError> {
        if self.ring.has_space(end) || self.evict_for_space(end) {
            Ok(())
        } else {
            Err(ClaimError::BackPressured(BackPressureReason::WindowFull))
        }
    }

    /// Waits until the bytes up to `end` may be written.
    #[inline(always)]
    pub(crate) fn wait_for_space(&mut self, end: Position) {
        if !self.ring.has_space(end) {
            self.wait_back_pressured(end);
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
                self.ring.evict(reader.index, reader.lease, reason);
                self.left_behind += 1;
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
            self.ring.sleep(left.min(interval).min(SLEEP_MAX), |_| false);
        }
    }

    /// Number of live subscribers.
    pub(crate) fn subscribers(&self) -> usize {
        let is_alive =
            |&(index, _, _): &(usize, u64, Position)| self.session.is_slot_owner_alive(index);
        self.ring.gating_readers().filter(is_alive).count()
    }

    /// Whether every live subscriber has read everything; evicts dead ones.
    pub(crate) fn is_drained(&mut self) -> bool {
        let at = self.ring.at();
        let behind: Vec<_> =
            self.ring.gating_readers().filter(|&(_, _, cursor)| cursor != at).collect();
        let mut is_drained = true;
        for (index, lease, _) in behind {
            if self.session.is_slot_owner_alive(index) {
                is_drained = false;
            } else {
                self.ring.evict(index, lease, Eviction::Dead);
                self.left_behind += 1;
            }
        }
        is_drained
    }
}
