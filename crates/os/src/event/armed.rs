//! A bell for an event loop that waits for the progress of another thread.
//!
//! The loop stops some work because of a value that the other thread changes: a queue that is too
//! long, a record that is not on disk yet. Before it sleeps it [asks](AwaitedBell::ask) to be woken
//! and then looks at the value once more. The other thread changes the value and then
//! [notifies](AwaitedBell::notify). So either the loop sees the new value, or the other thread sees
//! that it is asked and rings: no change falls between the look and the sleep.
//!
//! While nothing is asked, a notification costs a fence and a load, and no system call.

use super::EventFd;
use lanecast_base::sync::{AtomicBool, Ordering, fence};
use std::io;
use std::time::Duration;

/// A bell that rings once for each time that its owner has asked for it.
///
/// ```
/// use lanecast_base::sync::{AtomicU64, Ordering};
/// use lanecast_os::event::AwaitedBell;
/// let (durable, bell) = (AtomicU64::new(0), AwaitedBell::new()?);
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         durable.store(7, Ordering::Relaxed);
///         bell.notify();
///     });
///     loop {
///         bell.ask();
///         if durable.load(Ordering::Relaxed) == 7 {
///             break;
///         }
///         bell.wait(None);
///     }
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ArmedEvent {
    bell: EventFd,
    /// The owner sleeps, or is about to, and wants to hear of the next progress.
    is_armed: AtomicBool,
}

impl ArmedEvent {
    /// A bell that is silent.
    ///
    /// # Errors
    /// If the process has no more descriptors to give.
    pub fn new() -> io::Result<Self> {
        Ok(Self { bell: EventFd::new(false)?, is_armed: AtomicBool::new(false) })
    }

    /// The owner asks for the next progress. It looks at what it waits for after this, and sleeps
    /// only if that is still missing.
    pub fn arm(&self) {
        self.is_armed.store(true, Ordering::Relaxed);
        // PAIRS(armed-event): ask, fence, look here; change, fence, is it asked in `notify`.
        fence(Ordering::SeqCst);
    }

    /// Another thread has changed what the owner may wait for.
    pub fn notify(&self) {
        // PAIRS(armed-event): change, fence, is it asked here; ask, fence, look in `arm`.
        fence(Ordering::SeqCst);
        // The first load keeps the line shared while nothing is asked.
        if self.is_armed.load(Ordering::Relaxed) && self.is_armed.swap(false, Ordering::Relaxed) {
            self.bell.signal();
        }
    }

    /// Makes the descriptor unreadable until the next ring. The owner looks at what it waits for
    /// after this, not before.
    pub fn clear(&self) {
        self.bell.clear();
    }

    /// Sleeps until it rings, at most `limit`, and hushes it. Wakes early now and then.
    pub fn wait(&self, limit: Option<Duration>) {
        self.bell.wait(limit);
        self.bell.clear();
    }
}

#[cfg(not(loom))]
impl std::os::fd::AsFd for ArmedEvent {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::event::wait_readable;
    use std::os::fd::AsFd;

    #[test]
    fn it_rings_once_for_each_time_it_was_asked() {
        let bell = ArmedEvent::new().unwrap();
        let is_heard = || wait_readable([bell.as_fd()], Some(Duration::ZERO))[0];
        bell.notify();
        assert!(!is_heard(), "nothing was asked");
        bell.arm();
        bell.notify();
        assert!(is_heard());
        bell.wait(None);
        bell.notify();
        assert!(!is_heard(), "it was not asked again");
    }
}

/// The hand-over between a loop that stops reading publishers and the thread that writes what they
/// published.
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
                let (waiting, bell) = &*writer;
                waiting.store(0, Ordering::Relaxed);
                bell.notify();
            });
            let (waiting, bell) = &*shared;
            // Its only wake-up is the bell: if that is missing, the model ends in a deadlock.
            loop {
                bell.arm();
                if waiting.load(Ordering::Relaxed) <= ENOUGH {
                    break;
                }
                bell.wait(None);
            }
            writer.join().unwrap();
        });
    }

    #[test]
    fn each_of_two_changes_is_seen_whichever_ring_it_comes_with() {
        loom::model(|| {
            let shared = Arc::new((AtomicU64::new(0), ArmedEvent::new().unwrap()));
            let writer = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                let (durable, bell) = &*writer;
                for sequence in 1..=2 {
                    durable.store(sequence, Ordering::Relaxed);
                    bell.notify();
                }
            });
            let (durable, bell) = &*shared;
            for wanted in 1..=2 {
                loop {
                    bell.arm();
                    if durable.load(Ordering::Relaxed) >= wanted {
                        break;
                    }
                    bell.wait(None);
                }
            }
            writer.join().unwrap();
        });
    }
}
