//! Where others leave what they have joined for one subscriber.

use crate::attachment::Attachment;
use crate::telemetry::Telemetry;
use lanecast_base::WaitStrategy;
use lanecast_base::sync::{AtomicBool, AtomicU32, Ordering};
use lanecast_os::futex;
use lanecast_os::process::Identity;
use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// After so long a session that could not be joined is tried again; each time in a row twice as
/// long.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// One subscriber's wishes, and the sessions that the conductor or a publisher in the same process
/// has joined for it.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Shared with the attachments, which must not keep the mailbox itself: it holds them.
    pub(crate) topics: Arc<[String]>,
    /// How the subscriber waits, for others to look at.
    pub(crate) wait: WaitStrategy,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Counts deliveries and other news; the subscriber sleeps on it.
    news: AtomicU32,
    fresh: Mutex<Fresh>,
    /// Sessions in the directory that need no second look, or none yet.
    known: Mutex<HashMap<u64, Known>>,
}

/// Sessions on their way to the subscriber.
#[derive(Debug, Default)]
struct Fresh {
    attachments: Vec<Attachment>,
    /// The subscriber has gone, and takes nothing any more.
    is_closed: bool,
}

/// How a session in the directory stands with a subscriber.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// Joined, or what it never can be.
    Settled,
    /// The system refused to join it: to be tried again at `due`.
    PutOff {
        /// When.
        due: Instant,
        /// How long it was put off.
        delay: Duration,
    },
}

impl Known {
    /// After a failure at `now`, the last state being `last`.
    pub(crate) fn put_off(last: Option<Self>, now: Instant) -> Self {
        let delay = match last {
            Some(Self::PutOff { delay, .. }) => (2 * delay).min(RETRY_MAX),
            _ => RETRY_FIRST,
        };
        Self::PutOff { due: now + delay, delay }
    }

    /// When it is to be looked at again, if ever.
    pub(crate) const fn due(self) -> Option<Instant> {
        match self {
            Self::Settled => None,
            Self::PutOff { due, .. } => Some(due),
        }
    }
}

impl Mailbox {
    pub(crate) fn new(topics: &[&str], wait: WaitStrategy, telemetry: Arc<Telemetry>) -> Self {
        Self {
            topics: topics.iter().map(|&topic| topic.to_owned()).collect(),
            wait,
            telemetry,
            news: AtomicU32::new(0),
            fresh: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// The word that changes with every delivery.
    pub(crate) const fn news(&self) -> &AtomicU32 {
        &self.news
    }

    /// Leaves a joined session and wakes the subscriber; gives it up if that has gone.
    pub(crate) fn deliver(&self, attachment: Attachment) {
        let mut fresh = lock(&self.fresh);
        if fresh.is_closed {
            // Not under the lock: giving up a place can bring others here.
            drop(fresh);
            drop(attachment);
            return;
        }
        fresh.attachments.push(attachment);
        drop(fresh);
        self.telemetry.joined();
        self.ring();
    }

    /// Takes nothing more, and gives up what the subscriber has not fetched: others may hold this
    /// mailbox for a while yet.
    pub(crate) fn close(&self) {
        let mut fresh = lock(&self.fresh);
        fresh.is_closed = true;
        let unfetched = core::mem::take(&mut fresh.attachments);
        drop(fresh);
        drop(unfetched);
    }

    /// Wakes the subscriber.
    pub(crate) fn ring(&self) {
        // PAIRS(news): release here, acquire in `Subscriber::poll`.
        self.news.fetch_add(1, Ordering::Release);
        futex::wake(&self.news, 1);
    }

    /// The sessions left since the last call.
    pub(crate) fn take(&self) -> Vec<Attachment> {
        core::mem::take(&mut lock(&self.fresh).attachments)
    }

    /// How the sessions in the directory stand that have been looked at.
    pub(crate) fn known(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        lock(&self.known)
    }
}

/// The publisher of a joined session, watched by the conductor.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) ring: File,
    pub(crate) identity: Identity,
    pub(crate) subscriber: Weak<Mailbox>,
    is_gone: AtomicBool,
}

impl Peer {
    pub(crate) const fn new(ring: File, identity: Identity, subscriber: Weak<Mailbox>) -> Self {
        Self { ring, identity, subscriber, is_gone: AtomicBool::new(false) }
    }

    /// Asks the kernel; if the publisher has ended, tells the subscriber. Says whether it has.
    pub(crate) fn look(&self) -> bool {
        if is_owned(&self.ring, self.identity) {
            return false;
        }
        // PAIRS(gone): release here, acquire in `is_gone`. What the publisher committed is
        // visible to whoever sees the kernel's answer.
        self.is_gone.store(true, Ordering::Release);
        if let Some(subscriber) = self.subscriber.upgrade() {
            subscriber.ring();
        }
        true
    }

    /// Whether the publisher's process has ended.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        // PAIRS(gone): acquire here, release in `look`.
        self.is_gone.load(Ordering::Acquire)
    }
}

/// Whether a session's file still has its owner: the lock is held, by a process not known to
/// be gone. If the system does not tell, the owner gets the benefit of the doubt.
pub(crate) fn is_owned(file: &File, owner: Identity) -> bool {
    lanecast_os::is_locked(file, 0).unwrap_or(true) && !owner.is_surely_gone()
}

/// A panic elsewhere cannot leave these collections half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
