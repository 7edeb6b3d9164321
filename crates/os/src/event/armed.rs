//! An event for a loop that waits for the progress of another thread.
//!
//! The loop stops some work because of a value that the other thread changes: a queue that is too
//! long, a record that is not on disk yet. Before it sleeps it [arms](ArmedEvent::arm) the event,
//! and then checks the value once more. The other thread changes the value and then
//! [notifies](ArmedEvent::notify). Either the loop sees the new value, or the other thread sees
//! that the event is armed and signals it: no change falls between the check and the sleep.
//!
//! While the event is not armed, a notification costs a fence and a load, and no system call.

use super::EventFd;
use lanecast_base::sync::{AtomicBool, Mutex, MutexGuard, Ordering, fence};
use std::io;
#[cfg(not(loom))]
use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::time::Duration;

/// An event that is signalled once for each time that its owner arms it.
///
/// ```
/// use lanecast_base::sync::{AtomicU64, Ordering};
/// use lanecast_os::event::ArmedEvent;
/// let (durable, event) = (AtomicU64::new(0), ArmedEvent::new()?);
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         durable.store(7, Ordering::Relaxed);
///         event.notify();
///     });
///     loop {
///         event.arm();
///         if durable.load(Ordering::Relaxed) == 7 {
///             break;
///         }
///         event.wait(None);
///     }
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ArmedEvent {
    event: EventFd,
    /// The owner sleeps, or is about to: the next progress has to wake it. Changed with
    /// `signalling` held.
    is_armed: AtomicBool,
    /// Makes disarming and signalling one step. A signal that came after the owner had armed the
    /// event again would leave the descriptor readable without news, and the owner's loop spinning.
    signalling: Mutex<()>,
}

impl ArmedEvent {
    /// An event that is neither armed nor signalled.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub fn new() -> io::Result<Self> {
        EventFd::new(false).map(Self::over)
    }

    /// `event`, not armed.
    pub fn over(event: EventFd) -> Self {
        Self { event, is_armed: AtomicBool::new(false), signalling: Mutex::new(()) }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.signalling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by the owner before it checks the value that it waits for. It sleeps only if the
    /// value is still missing.
    pub fn arm(&self) {
        let signalling = self.lock();
        self.is_armed.store(true, Ordering::Relaxed);
        drop(signalling);
        // PAIRS(armed-event): arm, fence, check here; change, fence, load of the flag in `notify`.
        fence(Ordering::SeqCst);
    }

    /// As [`arm`](Self::arm), and makes the descriptor unreadable: from here on it is readable only
    /// if the event has been notified, and [`is_armed`](Self::is_armed) is false then.
    pub fn clear_and_arm(&self) {
        let signalling = self.lock();
        self.event.clear();
        self.is_armed.store(true, Ordering::Relaxed);
        drop(signalling);
        // PAIRS(armed-event): arm, fence, check here; change, fence, load of the flag in `notify`.
        fence(Ordering::SeqCst);
    }

    /// Whether the event is armed: nothing has been notified since.
    pub fn is_armed(&self) -> bool {
        self.is_armed.load(Ordering::Relaxed)
    }

    /// Disarms the event and makes its descriptor unreadable, until it is armed and notified again.
    pub fn settle(&self) {
        let _signalling = self.lock();
        self.is_armed.store(false, Ordering::Relaxed);
        self.event.clear();
    }

    /// Called by the other thread after it changed the value that the owner may wait for.
    pub fn notify(&self) {
        // PAIRS(armed-event): change, fence, load of the flag here; arm, fence, check in `arm`.
        fence(Ordering::SeqCst);
        // While the event is not armed, notifications only share its cache line.
        if self.is_armed.load(Ordering::Relaxed) {
            let _signalling = self.lock();
            if self.is_armed.load(Ordering::Relaxed) {
                self.is_armed.store(false, Ordering::Relaxed);
                self.event.signal();
            }
        }
    }

    /// Signals again if the event is not armed and its descriptor not readable. The owner clears it
    /// by [`clear_and_arm`](Self::clear_and_arm) alone, so that another process has emptied the
    /// pipe.
    #[cfg(not(loom))]
    pub fn signal_again(&self) {
        let _signalling = self.lock();
        let is_armed = self.is_armed.load(Ordering::Relaxed);
        if !is_armed && !super::wait_readable([self.event.as_fd()], Some(Duration::ZERO))[0] {
            self.event.signal();
        }
    }

    /// Makes the descriptor readable, armed or not: as other processes do that have its pipe open.
    #[cfg(loom)]
    pub fn signal(&self) {
        self.event.signal();
    }

    /// Makes the descriptor unreadable until the next signal; returns whether it was readable. The
    /// owner checks the value after this, not before.
    pub fn clear(&self) -> bool {
        self.event.clear()
    }

    /// Sleeps until the event is signalled, at most `limit`, and leaves it signalled. May wake
    /// early.
    pub fn wait_uncleared(&self, limit: Option<Duration>) {
        self.event.wait(limit);
    }

    /// Sleeps until the event is signalled, at most `limit`, and clears it. May wake early.
    pub fn wait(&self, limit: Option<Duration>) {
        self.event.wait(limit);
        self.event.clear();
    }
}

#[cfg(not(loom))]
impl AsFd for ArmedEvent {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::event::wait_readable;

    #[test]
    fn a_signal_that_is_gone_is_given_again_unless_the_event_is_armed() {
        let event = ArmedEvent::new().unwrap();
        event.arm();
        event.signal_again();
        assert!(!event.clear());
        event.notify();
        event.signal_again();
        assert!(event.clear() && !event.clear());
        event.signal_again();
        assert!(event.clear());
    }

    #[test]
    fn an_event_is_signalled_once_per_arming() {
        let event = ArmedEvent::new().unwrap();
        let is_heard = || wait_readable([event.as_fd()], Some(Duration::ZERO))[0];
        event.notify();
        assert!(!is_heard(), "not armed");
        event.arm();
        event.notify();
        assert!(is_heard());
        event.wait(None);
        event.notify();
        assert!(!is_heard(), "not armed again");
    }
}

/// A loop that stops reading publishers, and the thread that writes their messages to disk.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use lanecast_base::sync::{Arc, AtomicU64, AtomicUsize};
    use loom::thread;

    /// More than this waits for the disk: publishers are not read.
    const ENOUGH: usize = 1;

    #[test]
    fn a_loop_that_stopped_for_a_long_queue_goes_on_when_it_is_taken() {
        loom::model(|| {
            let shared = Arc::new((AtomicUsize::new(2), ArmedEvent::new().unwrap()));
            let writer = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                let (waiting, event) = &*writer;
                waiting.store(0, Ordering::Relaxed);
                event.notify();
            });
            let (waiting, event) = &*shared;
            // The event is the only wake-up: if it is missing, the model ends in a deadlock.
            loop {
                event.arm();
                if waiting.load(Ordering::Relaxed) <= ENOUGH {
                    break;
                }
                event.wait(None);
            }
            writer.join().unwrap();
        });
    }

    #[test]
    fn an_event_that_is_armed_again_is_not_signalled_late() {
        loom::model(|| {
            let event = Arc::new(ArmedEvent::new().unwrap());
            event.arm();
            let notifier = Arc::clone(&event);
            let notifier = thread::spawn(move || notifier.notify());
            // A loop that polls in vain meanwhile.
            while event.is_armed() {
                thread::yield_now();
            }
            event.clear_and_arm();
            notifier.join().unwrap();
            assert!(event.is_armed() && !event.event.is_signalled());
        });
    }

    #[test]
    fn each_of_two_changes_is_seen_whichever_ring_it_comes_with() {
        loom::model(|| {
            let shared = Arc::new((AtomicU64::new(0), ArmedEvent::new().unwrap()));
            let writer = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                let (durable, event) = &*writer;
                for sequence in 1..=2 {
                    durable.store(sequence, Ordering::Relaxed);
                    event.notify();
                }
            });
            let (durable, event) = &*shared;
            for wanted in 1..=2 {
                loop {
                    event.arm();
                    if durable.load(Ordering::Relaxed) >= wanted {
                        break;
                    }
                    event.wait(None);
                }
            }
            writer.join().unwrap();
        });
    }
}
