//! The subscriber: polls the images of all joined sessions, and sleeps on all of them at once.

use crate::arming::{arm_subscriber, has_to_arm};
use crate::domain_state::DomainState;
use crate::image::Image;
use crate::local_registry::LocalSubscriber;
use crate::run::ShmRun;
use crate::run_progress::Pending;
use crate::stream_table::StreamTable;
use crate::subscription::Subscription;
use crate::wake_pipe::WakePipe;
use crate::wake_signal::WakeSignal;
use crate::wakeup_thread::Wakeup;
use crate::watched_end::{WatchedEnd, WatchedWord};
use lanecast_base::sync::AtomicU32;
use lanecast_base::{WaitStep, Waiter, spin};
use lanecast_os::{barrier, futex};
use lanecast_transport::{Event, Subscribe};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// Longest sleep, for loops that also poll other sources: ten polls a second.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Longest sleep while not every publisher wakes this subscriber.
const UNCOVERED_WAIT: Duration = Duration::from_millis(1);

/// A subscriber over shared memory: reads all publishers of its topics in place.
///
/// Opened by [`Domain`](crate::Domain)'s `subscriber`. Once it has joined a session it gates the
/// publisher: poll it, or drop it.
pub struct Subscriber {
    // First: a subscriber that is being dropped joins no more sessions.
    local: LocalSubscriber,
    images: Vec<Image>,
    /// Index of the image polled first, which moves with every poll.
    turn: usize,
    /// Sessions that have evicted this subscriber, and whose streams have all been left.
    evicted_from: Vec<u64>,
    /// Sessions to join again, once their streams have all been left.
    rejoining: Vec<u64>,
    subscription: Arc<Subscription>,
    signal: Arc<WakeSignal>,
    /// Epoch of `signal` up to which its causes are handled.
    seen_epoch: u32,
    waiter: Waiter,
    /// The descriptor, if the program asked for one.
    wakeup: Option<Wakeup>,
    /// The pipe of the descriptor, by which publishers of other processes make it readable.
    pipe: Option<WakePipe>,
    domain: Arc<DomainState>,
}

impl Subscriber {
    pub(crate) fn new(subscription: Arc<Subscription>, domain: Arc<DomainState>) -> Self {
        Self {
            local: LocalSubscriber::register(domain.key().cloned(), Arc::clone(&subscription)),
            images: Vec::new(),
            turn: 0,
            evicted_from: Vec::new(),
            rejoining: Vec::new(),
            waiter: Waiter::new(subscription.request.wait),
            signal: Arc::clone(subscription.signal()),
            subscription,
            seen_epoch: 0,
            wakeup: None,
            pipe: None,
            domain,
        }
    }

    /// Joins the sessions that evicted this subscriber again, at their newest message.
    ///
    /// Their streams are announced by new joined events. A session of which a stream's end is still
    /// to be reported is joined again after that report.
    pub fn rejoin(&mut self) {
        let evicted = self.images.iter().filter(|image| image.streams().was_evicted());
        self.rejoining.extend(evicted.map(|image| image.streams().session()));
        self.remove_ended();
        self.rejoining.append(&mut self.evicted_from);
        self.join_again();
    }

    /// Joins the sessions again that the program asked for, but for those whose image is still
    /// there: two images of one session would give each message twice.
    #[cold]
    fn join_again(&mut self) {
        let has_image =
            |session: &u64| self.images.iter().any(|image| image.streams().session() == *session);
        let asked = core::mem::take(&mut self.rejoining);
        let (waiting, sessions): (Vec<u64>, Vec<u64>) = asked.into_iter().partition(has_image);
        self.rejoining = waiting;
        self.evicted_from.retain(|session| !sessions.contains(session));
        self.subscription.join_states().retain(|session, _| !sessions.contains(session));
        self.local.rejoin(&sessions);
        self.domain.wake_conductor();
    }

    /// A function for other threads that ends a [`sleep`](Self::sleep), the current or the next.
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let signal = Arc::clone(&self.signal);
        move || signal.wake()
    }

    /// Takes the images added since the last call.
    #[cold]
    #[inline(never)]
    fn take_images(&mut self, epoch: u32) {
        self.seen_epoch = epoch;
        self.images.append(&mut self.subscription.take());
        if self.subscription.room().is_there() {
            self.join_awaited();
        }
        self.watch_images();
    }

    /// Joins the sessions and topics that found no room before. The next poll takes the sessions,
    /// and tells of the topics.
    #[cold]
    #[inline(never)]
    fn join_awaited(&mut self) {
        self.subscription.room().withdraw();
        self.local.rejoin(&[]);
        self.images.iter_mut().for_each(Image::admit_refused);
    }

    /// Has all that wakes this subscriber make its descriptor readable, if there is one.
    fn watch_images(&mut self) {
        let Some(wakeup) = &self.wakeup else { return };
        let signal = WatchedWord::signal(Arc::clone(&self.signal));
        let pipe = self.pipe.as_ref().map(WakePipe::number);
        let images = self.images.iter_mut().map(|image| image.watch(wakeup.event(), pipe));
        wakeup.watch(std::iter::once(signal).chain(images).collect());
        // New sessions have not announced sleep: the next empty poll does that for all.
        wakeup.event().notify();
    }

    /// Ends a poll of a subscriber with a descriptor: after an empty one, arms the descriptor;
    /// after others, leaves it readable.
    #[cold]
    fn update_wakeup(&self, work: usize) {
        let Some(wakeup) = &self.wakeup else { return };
        let event = wakeup.event();
        if work > 0 {
            event.notify();
        } else if has_to_arm(event, self.pipe.is_some()) {
            let announce = || self.images.iter().for_each(Image::announce_sleep);
            // PAIRS(asymmetric): sleepers, fence, commits here; commit, fence, sleepers in the
            // writers.
            let fence = || wakeup.note_coverage(barrier::heavy_fence());
            arm_subscriber(event, announce, fence, || {
                !self.subscription.room().may_sleep(self.seen_epoch)
                    || self.images.iter().any(Image::has_news)
            });
        }
    }

    #[inline(always)]
    fn poll_from(&mut self, limit: usize, handler: &mut impl FnMut(Event<'_>)) -> usize {
        let count = self.images.len();
        self.turn = if self.turn + 1 < count { self.turn + 1 } else { 0 };
        let (mut work, mut has_ended) = (0, false);
        for step in 0..count {
            let index = self.turn + step;
            let index = if index < count { index } else { index - count };
            let image = &mut self.images[index];
            work += image.poll(limit.saturating_sub(work), handler);
            has_ended |= image.streams().has_ended();
            if work >= limit {
                break;
            }
        }
        if has_ended {
            self.remove_ended();
        }
        work
    }

    /// Whether [`take`](Subscribe::take) would find events now.
    #[inline]
    pub fn has_events(&mut self) -> bool {
        self.prepare_run(1).is_some()
    }

    /// Prepares a run of the next image with events; returns its index and their kind.
    #[inline]
    fn prepare_run(&mut self, limit: usize) -> Option<(usize, Pending)> {
        let epoch = self.signal.epoch();
        if epoch != self.seen_epoch {
            self.take_images(epoch);
        }
        let mut found = self.find_run(limit);
        let finds_room = found.is_none() && self.subscription.room().is_there();
        if finds_room {
            found = self.find_after_room(limit);
        }
        if self.wakeup.is_some() {
            self.update_wakeup(usize::from(found.is_some() || finds_room));
        }
        found
    }

    #[cold]
    #[inline(never)]
    fn find_after_room(&mut self, limit: usize) -> Option<(usize, Pending)> {
        self.join_awaited();
        self.find_run(limit)
    }

    /// Prepares a run of the next image with events, and removes images that have ended.
    #[inline(always)]
    fn find_run(&mut self, limit: usize) -> Option<(usize, Pending)> {
        let count = self.images.len();
        let first = if self.turn + 1 < count { self.turn + 1 } else { 0 };
        let (mut found, mut has_ended) = (None, false);
        for step in 0..count {
            let index = first + step;
            let index = if index < count { index } else { index - count };
            let image = &mut self.images[index];
            found = image.prepare_run(limit).map(|pending| (index, pending));
            if found.is_some() {
                break;
            }
            has_ended |= image.streams().has_ended();
        }
        if has_ended {
            if let Some((index, _)) = &mut found {
                let before = self.images[..*index].iter();
                *index -= before.filter(|image| image.streams().has_ended()).count();
            }
            self.remove_ended();
        }
        found
    }

    #[cold]
    #[inline(never)]
    fn remove_ended(&mut self) {
        let ended = self.images.iter().map(Image::streams).filter(|streams| streams.has_ended());
        let evicted = ended.filter(|streams| streams.was_evicted());
        self.evicted_from.extend(evicted.map(StreamTable::session));
        self.images.retain(|image| !image.streams().has_ended());
        self.watch_images();
        if self.evicted_from.iter().any(|session| self.rejoining.contains(session)) {
            self.join_again();
        }
    }

    /// Sleeps until there is a message or another event, at most for `limit` and a tenth of a
    /// second.
    pub fn sleep(&self, limit: Duration) {
        if !self.subscription.room().may_sleep(self.seen_epoch) {
            return;
        }
        if let Some(event) = self.wakeup.as_ref().map(Wakeup::event) {
            // Publishers that make the descriptor readable do not wake sleepers on the words.
            if !event.is_armed() {
                self.update_wakeup(0);
            }
            return event.wait_uncleared(Some(limit.min(LONGEST_WAIT)));
        }
        let mut words: [(&AtomicU32, u32); futex::WORDS_MAX] =
            [(self.signal.word(), self.seen_epoch); futex::WORDS_MAX];
        let mut limit = limit.min(LONGEST_WAIT);
        for (place, image) in (1..).zip(&self.images) {
            let entry = image.begin_sleep();
            if let Some(word) = words.get_mut(place) {
                *word = entry;
            } else {
                // More sessions than one futex call can watch: poll the others every millisecond.
                limit = limit.min(UNCOVERED_WAIT);
            }
        }
        // PAIRS(asymmetric): sleepers, fence, commits here; commit, fence, sleepers in the writers.
        // One fence for all sessions: behind all announcements, and before all looks.
        if !self.images.is_empty() && !barrier::heavy_fence() {
            limit = limit.min(UNCOVERED_WAIT);
        }
        if !self.images.iter().any(Image::has_news) {
            self.images.iter().for_each(Image::count_sleep);
            futex::wait_any(&words[..(self.images.len() + 1).min(futex::WORDS_MAX)], limit);
        }
        self.images.iter().for_each(Image::cancel_sleep);
    }
}

impl Subscribe for Subscriber {
    type Run<'a> = ShmRun<'a>;

    #[inline]
    fn take(&mut self, limit: usize) -> ShmRun<'_> {
        if limit > 0
            && let Some((index, pending)) = self.prepare_run(limit)
        {
            self.turn = index;
            return ShmRun::new(&mut self.images[index], pending, limit);
        }
        ShmRun::EMPTY
    }

    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let epoch = self.signal.epoch();
        if epoch != self.seen_epoch {
            self.take_images(epoch);
        }
        let work = self.poll_from(limit, &mut handler);
        let finds_room = work == 0 && self.subscription.room().is_there();
        if finds_room {
            self.join_awaited();
        }
        if self.wakeup.is_some() {
            self.update_wakeup(work + usize::from(finds_room));
        }
        work
    }

    #[inline]
    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        if work > 0 {
            self.waiter.found(work);
            return;
        }
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => {
                if self.waiter.expects_single() {
                    self.images.iter().for_each(Image::prefetch_next);
                }
                spin(pauses);
            }
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.sleep(limit),
        }
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        if self.wakeup.is_none() {
            let pipe = self.domain.make_pipe();
            let end = WatchedEnd::subscriber(pipe.as_ref())?;
            self.wakeup = Some(self.domain.wakeups().watch(end)?);
            self.pipe = pipe;
            self.watch_images();
        }
        let wakeup = self.wakeup.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(wakeup.descriptor())
    }

    fn streams(&self) -> usize {
        self.images.iter().map(|image| image.streams().joined()).sum()
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber")
            .field("topics", &self.subscription.request.topics)
            .field("sessions", &self.images.len())
            .finish_non_exhaustive()
    }
}
