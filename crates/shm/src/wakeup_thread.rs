//! The thread that makes descriptors readable: it sleeps on the futex words of all ends of a domain
//! whose programs asked for a descriptor, except for subscribers of publishers in the same process,
//! which [signal these](crate::slot_events) themselves. Ten times a second it checks that no other
//! process has taken a wake-up away.
//!
//! One for each domain handle, started with the first [`Wakeup`] and ended with the last. It always
//! sleeps on all words, so that arming a descriptor wakes no thread: a word changes only if its end
//! has announced that it sleeps.

use crate::wake_signal::WakeSignal;
use crate::watched_end::{WatchedEnd, WatchedWord};
use lanecast_base::sync::AtomicU32;
use lanecast_base::{Agent, AgentRunner};
use lanecast_os::event::ArmedEvent;
use lanecast_os::futex;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Longest sleep without a wake-up; a change of a word ends it. Wake-ups that another process has
/// taken away are found after that.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Sleep where words can change unnoticed: without `membarrier`, or with more words than one system
/// call can watch.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// Sleep where only words that stand in for a pipe can change unnoticed.
const BACKUP_INTERVAL: Duration = Duration::from_millis(50);
/// Interval at which ends are checked for lost wake-ups, and publishers that wait for room for
/// subscribers to evict, whose death changes no word.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The wake-up thread of a domain handle, while there is one.
#[derive(Debug, Default)]
pub(crate) struct Wakeups(Mutex<Weak<WakeupThread>>);

impl Wakeups {
    /// Watches `end`; starts the thread if it does not run.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn watch(&self, end: WatchedEnd) -> io::Result<Wakeup> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = match running.upgrade() {
            Some(thread) => thread,
            None => {
                let thread = Arc::new(WakeupThread::start()?);
                *running = Arc::downgrade(&thread);
                thread
            }
        };
        let end = Arc::new(end);
        thread.shared.ends().push(Arc::clone(&end));
        thread.shared.changed.wake();
        Ok(Wakeup { end, thread })
    }
}

/// An end's descriptor. Dropping it ends the watch, and the thread with the last one.
#[derive(Debug)]
pub(crate) struct Wakeup {
    end: Arc<WatchedEnd>,
    thread: Arc<WakeupThread>,
}

impl Wakeup {
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.end.event().as_fd()
    }

    pub(crate) fn event(&self) -> &Arc<ArmedEvent> {
        self.end.event()
    }

    /// Watches `words` from now on. A new word counts as changed if it has changed since it was
    /// made.
    pub(crate) fn watch(&self, words: Vec<Arc<WatchedWord>>) {
        *self.end.words() = words;
        self.thread.shared.changed.wake();
    }

    /// Notes whether the fence after the descriptor was armed reaches the other side. Without that
    /// the thread makes the descriptor readable each millisecond.
    pub(crate) fn note_coverage(&self, is_covered: bool) {
        if self.end.note_coverage(is_covered) {
            self.wake_thread();
        }
    }

    /// Makes the thread look at the end now.
    pub(crate) fn wake_thread(&self) {
        self.thread.shared.changed.wake();
    }
}

impl Drop for Wakeup {
    fn drop(&mut self) {
        self.thread.shared.ends().retain(|end| !Arc::ptr_eq(end, &self.end));
        self.thread.shared.changed.wake();
    }
}

/// The running thread.
#[derive(Debug)]
struct WakeupThread {
    shared: Arc<Shared>,
    _runner: AgentRunner,
}

impl WakeupThread {
    fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let agent = WakeupAgent::new(Arc::clone(&shared));
        let waker = Arc::clone(&shared);
        let runner = AgentRunner::start(Box::new(agent), move || waker.changed.wake())?;
        Ok(Self { shared, _runner: runner })
    }
}

/// State that the ends share with the thread.
#[derive(Debug, Default)]
struct Shared {
    ends: Mutex<Vec<Arc<WatchedEnd>>>,
    /// Changes with the set of ends and words.
    changed: WakeSignal,
}

impl Shared {
    fn ends(&self) -> MutexGuard<'_, Vec<Arc<WatchedEnd>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's duty cycle.
struct WakeupAgent {
    shared: Arc<Shared>,
    /// Epoch of `shared.changed` at the last look.
    seen_epoch: u32,
    ends: Vec<(Arc<WatchedEnd>, Vec<Arc<WatchedWord>>)>,
    last_check: Instant,
}

impl WakeupAgent {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, seen_epoch: 0, ends: Vec::new(), last_check: Instant::now() }
    }

    /// Copies the set of ends and words, which keeps their memory mapped during a sleep.
    fn collect(&mut self) {
        let ends = self.shared.ends().clone();
        self.ends = ends.into_iter().map(|end| (Arc::clone(&end), end.words().clone())).collect();
    }
}

impl Agent for WakeupAgent {
    fn do_work(&mut self) -> usize {
        let epoch = self.shared.changed.epoch();
        if epoch != self.seen_epoch {
            self.seen_epoch = epoch;
            self.collect();
        }
        let now = Instant::now();
        let is_check_due = now - self.last_check >= CHECK_INTERVAL;
        if is_check_due {
            self.last_check = now;
        }
        for (end, words) in &self.ends {
            // All of them, even after the first that changed: each is handled once.
            let changes = words.iter().filter(|word| word.take_change()).count();
            if changes > 0 || end.is_uncovered() || is_check_due && end.has_to_evict() {
                end.notify();
            }
            if is_check_due {
                end.recover_lost_wakeup(words);
            }
        }
        0
    }

    fn idle(&mut self) {
        let mut words: [(&AtomicU32, u32); futex::WORDS_MAX] =
            [(self.shared.changed.word(), self.seen_epoch); futex::WORDS_MAX];
        let mut limit = LONGEST_SLEEP;
        if self.ends.iter().any(|(end, _)| end.awaits_room()) {
            limit = CHECK_INTERVAL;
        }
        let mut count = 1;
        let words_of_all = self.ends.iter().flat_map(|(_, words)| words);
        for word in words_of_all.filter(|word| word.is_slept_on()) {
            let Some(entry) = words.get_mut(count) else {
                // More words than one call can watch: a change of the others is found a little
                // later.
                let longest = if word.is_backup() { BACKUP_INTERVAL } else { SHORT_SLEEP };
                limit = limit.min(longest);
                continue;
            };
            *entry = (word.word(), word.seen());
            count += 1;
        }
        if self.ends.iter().any(|(end, _)| end.is_uncovered()) {
            limit = SHORT_SLEEP;
        }
        futex::wait_any(&words[..count], limit);
    }

    fn name(&self) -> &'static str {
        "lanecast-wake"
    }
}
