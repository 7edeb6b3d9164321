//! A subscription: one subscriber's topics, and the images joined for it on their way to it.
//!
//! Shared by the subscriber, the conductor, and the publishers of the same process, which join
//! sessions on their own threads.

use crate::awaited_room::AwaitedRoom;
use crate::image::{Image, JoinRequest};
use crate::telemetry::Telemetry;
use crate::wake_signal::WakeSignal;
use lanecast_base::WaitStrategy;
use lanecast_transport::TopicSelection;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Backoff after a failed join: the first delay, doubled up to the maximum.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// One subscriber's topics, and its images until the subscriber takes them.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// Copied into images: they lie in the subscription and must not keep it alive.
    pub(crate) request: JoinRequest,
    pub(crate) telemetry: Arc<Telemetry>,
    pending: Mutex<PendingImages>,
    /// Sessions in the directory that are settled, or to be retried.
    join_states: Mutex<HashMap<u64, JoinState>>,
}

/// Images that the subscriber has not taken yet.
#[derive(Debug, Default)]
struct PendingImages {
    images: Vec<Image>,
    /// The subscriber was dropped and takes no more images.
    is_closed: bool,
}

/// State of a session in the directory with respect to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinState {
    /// Joined, or impossible to join.
    Settled,
    /// No room in the selection for its topics: every scan tries again.
    NoRoom,
    /// Joining failed for want of system resources.
    Backoff {
        /// Time of the next attempt.
        due: Instant,
        /// Length of the backoff.
        delay: Duration,
    },
}

impl JoinState {
    /// State after a failure at `now`; `last` is the state before it.
    pub(crate) fn backoff(last: Option<Self>, now: Instant) -> Self {
        let delay = match last {
            Some(Self::Backoff { delay, .. }) => (2 * delay).min(BACKOFF_MAX),
            _ => BACKOFF_FIRST,
        };
        Self::Backoff { due: now + delay, delay }
    }

    /// Whether a scan tries to join the session.
    pub(crate) fn is_due(self, now: Instant) -> bool {
        self == Self::NoRoom || self.due().is_some_and(|due| now >= due)
    }

    /// Time of the next attempt, if it has one of its own.
    pub(crate) const fn due(self) -> Option<Instant> {
        match self {
            Self::Settled | Self::NoRoom => None,
            Self::Backoff { due, .. } => Some(due),
        }
    }
}

impl Subscription {
    pub(crate) fn new(
        topics: TopicSelection,
        except: Option<u64>,
        wait: WaitStrategy,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        let signal = Arc::default();
        let room = AwaitedRoom::new(&topics, &signal);
        Self {
            request: JoinRequest { topics, except, wait, signal, room },
            telemetry,
            pending: Mutex::default(),
            join_states: Mutex::default(),
        }
    }

    /// Wakes the subscriber.
    pub(crate) const fn signal(&self) -> &Arc<WakeSignal> {
        &self.request.signal
    }

    /// Room for topics that wait for it.
    pub(crate) const fn room(&self) -> &Arc<AwaitedRoom> {
        &self.request.room
    }

    /// Whether a topic waits for room: of a joined session, or of one that is not joined for it.
    pub(crate) fn awaits_room(&self) -> bool {
        self.room().is_awaited()
            || self.join_states().values().any(|state| *state == JoinState::NoRoom)
    }

    /// Adds an image and wakes the subscriber; drops the image if the subscription is closed.
    pub(crate) fn push(&self, image: Image) {
        let mut pending = lock(&self.pending);
        if pending.is_closed {
            // Outside of the lock: dropping an image frees its slot, and the freed slot can lead
            // another thread here.
            drop(pending);
            drop(image);
            return;
        }
        pending.images.push(image);
        drop(pending);
        self.telemetry.joined();
        self.signal().wake();
    }

    /// Refuses further images and drops the pending ones, since other threads can keep the
    /// subscription for a while.
    pub(crate) fn close(&self) {
        let mut pending = lock(&self.pending);
        pending.is_closed = true;
        let images = core::mem::take(&mut pending.images);
        drop(pending);
        drop(images);
    }

    /// Takes the images added since the last call.
    pub(crate) fn take(&self) -> Vec<Image> {
        core::mem::take(&mut lock(&self.pending).images)
    }

    /// States of the sessions in the directory.
    pub(crate) fn join_states(&self) -> MutexGuard<'_, HashMap<u64, JoinState>> {
        lock(&self.join_states)
    }
}

/// Locks; ignores poisoning, since no panic leaves these collections half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
