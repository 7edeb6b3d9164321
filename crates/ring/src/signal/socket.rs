//! 256 signals from any threads to one that also waits for sockets.
//!
//! A summary word has a bit for each word of the bitmap with signals, and one for an armed waiter.
//! Only the first signal to an armed waiter writes to the eventfd. While the waiter is not armed
//! the descriptor stays readable, so a thread that blocks without arming first returns at once.

use super::interface::{Deadline, NoSuchSignal, Signal, Signals, wake_up};
use super::numbers::SignalSet;
use super::numbers::{WORDS, place};
use lanecast_base::CachePadded;
use lanecast_base::sync::{Arc, AtomicU64, Ordering};
use lanecast_os::event::EventFd;
use std::io;
#[cfg(not(loom))]
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The waiter blocks, or is about to; the lower bits are the words with signals.
const ARMED: u64 = 1 << 63;

#[derive(Debug)]
struct Shared {
    summary: CachePadded<AtomicU64>,
    words: CachePadded<[AtomicU64; WORDS]>,
    bell: EventFd,
}

impl Shared {
    /// Takes the signals of the words in `summary`.
    fn take(&self, summary: u64) -> SignalSet {
        let named = |index: usize| summary >> index & 1 == 1;
        SignalSet::of_words(core::array::from_fn(|index| {
            // PAIRS(socket-signal): acquire here, release in `signal`.
            if named(index) { self.words[index].swap(0, Ordering::Acquire) } else { 0 }
        }))
    }
}

/// The waiting half of 256 signals, with a descriptor for poll(2), epoll or io_uring.
///
/// A loop that blocks in its own system call does so in this order:
///
/// 1. [`arm`](Self::arm). If that returns signals, handle them instead of blocking.
/// 2. Block until the descriptor, or a socket beside it, is readable.
/// 3. [`check`](Signals::check), handle the signals, then the sockets; back to 1.
///
/// No bytes are read from the descriptor: its readability is the message. Without step 1 it is
/// readable, so the call does not block.
///
/// ```
/// use lanecast_ring::signal::{Signal, Signals, SocketSignal};
/// use std::os::fd::AsFd;
/// let mut waiter = SocketSignal::new()?;
/// let signal = waiter.bind(200).expect("below 256");
/// std::thread::spawn(move || signal.signal());
/// let mut taken = waiter.arm();
/// while taken.is_empty() {
///     // Sockets' descriptors could stand beside this one.
///     lanecast_os::event::wait_readable([waiter.as_fd()], None);
///     taken = waiter.check();
/// }
/// assert!(taken.contains(200));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct SocketSignal {
    shared: Arc<Shared>,
}

/// The sending half of a [`SocketSignal`], bound to one signal.
#[derive(Clone, Debug)]
pub struct SocketSignalSender {
    shared: Arc<Shared>,
    word: usize,
    bit: u64,
}

impl SocketSignal {
    /// A waiter without signals.
    ///
    /// # Errors
    /// If the process has too many open descriptors: raise its limit (`ulimit -n`).
    pub fn new() -> io::Result<Self> {
        let shared = Shared {
            summary: CachePadded::default(),
            words: CachePadded::default(),
            bell: EventFd::new(true)?,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Blocks on the bell, as an event loop does.
    #[cfg(all(test, loom))]
    pub(super) fn block(&self) {
        self.shared.bell.wait(None);
    }

    /// Takes the pending signals. If there are none the caller may block: the descriptor is then
    /// unreadable until the first signal.
    pub fn arm(&mut self) -> SignalSet {
        let taken = self.check();
        if !taken.is_empty() {
            return taken;
        }
        // Reset the eventfd, then arm: any write after the arming stays.
        self.shared.bell.clear();
        // PAIRS(socket-summary): acquire here, release in `signal`.
        let summary = self.shared.summary.swap(ARMED, Ordering::Acquire);
        self.shared.take(summary)
    }
}

#[cfg(not(loom))]
impl AsFd for SocketSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

impl Signals for SocketSignal {
    type Signal = SocketSignalSender;
    const COUNT: usize = 256;

    fn bind(&self, number: usize) -> Result<SocketSignalSender, NoSuchSignal> {
        NoSuchSignal::check(number, Self::COUNT)?;
        let (word, bit) = place(number);
        Ok(SocketSignalSender { shared: Arc::clone(&self.shared), word, bit })
    }

    #[inline]
    fn check(&mut self) -> SignalSet {
        // Read first: an armed waiter without signals stays armed.
        if self.shared.summary.load(Ordering::Relaxed) & !ARMED == 0 {
            return SignalSet::default();
        }
        // PAIRS(socket-summary): acquire here, release in `signal`.
        let summary = self.shared.summary.swap(0, Ordering::Acquire);
        self.shared.take(summary)
    }

    fn poll(&mut self, limit: Duration) -> SignalSet {
        let deadline = Deadline::after(limit);
        let mut taken = self.check();
        while taken.is_empty() && !deadline.is_over() {
            taken = self.arm();
            if taken.is_empty() {
                self.shared.bell.wait(deadline.left());
                taken = self.check();
            }
        }
        taken
    }
}

impl Signal for SocketSignalSender {
    #[inline]
    fn signal(&self) {
        // PAIRS(socket-signal): release here, acquire in `take`.
        self.shared.words[self.word].fetch_or(self.bit, Ordering::Release);
        // PAIRS(socket-summary): release here, acquire in `check` and `arm`: the signal before the
        // summary.
        let before = self.shared.summary.fetch_or(1 << self.word, Ordering::Release);
        if before == ARMED {
            wake_up(|| self.shared.bell.signal());
        }
    }
}
