//! The subscriber: polls the images of all joined sessions, and sleeps on all of them at once.

use crate::domain_state::DomainState;
use crate::image::Image;
use crate::local_registry::LocalSubscriber;
use crate::subscription::Subscription;
use crate::wake_signal::WakeSignal;
use lanecast_base::sync::AtomicU32;
use lanecast_base::{WaitStep, Waiter, spin};
use lanecast_os::futex;
use lanecast_transport::{Event, Subscribe};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Longest sleep, for loops that also poll other sources: ten polls a second.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

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
    /// Sessions that have evicted this subscriber.
    evicted_from: Vec<u64>,
    subscription: Arc<Subscription>,
    signal: Arc<WakeSignal>,
    /// Epoch of `signal` up to which its causes are handled.
    seen_epoch: u32,
    waiter: Waiter,
    domain: Arc<DomainState>,
}

impl Subscriber {
    pub(crate) fn new(subscription: Arc<Subscription>, domain: Arc<DomainState>) -> Self {
        Self {
            local: LocalSubscriber::register(domain.key().cloned(), Arc::clone(&subscription)),
            images: Vec::new(),
            turn: 0,
            evicted_from: Vec::new(),
            waiter: Waiter::new(subscription.request.wait),
            signal: Arc::clone(subscription.signal()),
            subscription,
            seen_epoch: 0,
            domain,
        }
    }

    /// Joins the sessions that evicted this subscriber again, at their newest message.
    ///
    /// Their streams are announced by new joined events.
    pub fn rejoin(&mut self) {
        let sessions = core::mem::take(&mut self.evicted_from);
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
            has_ended |= image.has_ended();
            if work >= limit {
                break;
            }
        }
        if has_ended {
            self.remove_ended();
        }
        work
    }

    #[cold]
    #[inline(never)]
    fn remove_ended(&mut self) {
        let evicted = self.images.iter().filter(|image| image.was_evicted());
        self.evicted_from.extend(evicted.map(Image::session));
        self.images.retain(|image| !image.has_ended());
    }

    /// Sleeps until there is a message or another event, at most for a tenth of a second.
    pub fn sleep(&self) {
        if self.signal.epoch() != self.seen_epoch {
            return;
        }
        let mut words: [(&AtomicU32, u32); futex::WORDS_MAX] =
            [(self.signal.word(), self.seen_epoch); futex::WORDS_MAX];
        let mut limit = LONGEST_WAIT;
        let mut prepared = 0;
        for image in &self.images {
            let Some((word, expected, covered)) = image.prepare_sleep() else { break };
            prepared += 1;
            if !covered {
                limit = Duration::from_millis(1);
            }
            if let Some(entry) = words.get_mut(prepared) {
                *entry = (word, expected);
            } else {
                // More sessions than one futex call can watch: poll the others every millisecond.
                limit = Duration::from_millis(1);
            }
        }
        if prepared == self.images.len() {
            futex::wait_any(&words[..(prepared + 1).min(futex::WORDS_MAX)], limit);
        }
        for image in &self.images[..prepared] {
            image.cancel_sleep();
        }
    }
}

impl Subscribe for Subscriber {
    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let epoch = self.signal.epoch();
        if epoch != self.seen_epoch {
            self.take_images(epoch);
        }
        self.poll_from(limit, &mut handler)
    }

    #[inline]
    fn wait(&mut self, work: usize) {
        if work > 0 {
            self.waiter.found(work);
            return;
        }
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.sleep(),
        }
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    fn streams(&self) -> usize {
        self.images.iter().map(Image::streams).sum()
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
