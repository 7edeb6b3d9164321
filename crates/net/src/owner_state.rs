//! State of a subscriber's owner, shared with the conductor.
//!
//! The owner's thread sets how it sleeps; the conductor reads that to decide whether it serves
//! the sockets, and wakes the owner when a delivery is ready.

use lanecast_base::sync::{AtomicBool, AtomicU32, Ordering, fence};
use lanecast_os::event::{ArmedEvent, EventFd};
use std::fmt;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The reader of a subscriber's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum SocketReader {
    /// The owner, which polls.
    Polls = 0,
    /// The owner, woken by its descriptor, which watches the sockets and the deadline.
    Descriptor = 1,
    /// The conductor: the owner sleeps on something else.
    Conductor = 2,
}

/// Sleep state and wake-up of a subscriber's owner.
#[derive(Debug)]
pub(crate) struct OwnerState {
    /// The owner sleeps on the subscriber's own sockets, and serves them itself when they become
    /// readable.
    is_parked: AtomicBool,
    /// Wakes a parked owner.
    pub(crate) event: EventFd,
    /// The [`SocketReader`], while the owner is not parked.
    reader: AtomicU32,
    /// Counts the conductor's notifications.
    wake_epoch: AtomicU32,
    /// Sessions that timed out; discovery has to find them again.
    lost: Mutex<Vec<u64>>,
    /// Wakes an owner that sleeps on something else.
    waker: OnceLock<Waker>,
    /// The descriptor of the owner's event loop, if it asked for one.
    wakeup: OnceLock<ArmedEvent>,
}

/// The owner's own wake-up function.
struct Waker(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

impl OwnerState {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            is_parked: AtomicBool::new(false),
            event: EventFd::new(false)?,
            reader: AtomicU32::new(SocketReader::Polls as u32),
            wake_epoch: AtomicU32::new(0),
            lost: Mutex::default(),
            waker: OnceLock::new(),
            wakeup: OnceLock::new(),
        })
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.is_parked.load(Ordering::Relaxed)
    }

    pub(crate) fn set_parked(&self, parked: bool) {
        self.is_parked.store(parked, Ordering::Relaxed);
        // PAIRS(owner-parked): the flag comes before the owner's last load of the wake epoch.
        fence(Ordering::SeqCst);
    }

    /// Sets the function that [`notify`](Self::notify) calls. The first one stays.
    pub(crate) fn set_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        drop(self.waker.set(Waker(Box::new(waker))));
    }

    /// The event of the owner's event loop: `None` until the first
    /// [`open_wakeup`](Self::open_wakeup).
    pub(crate) fn wakeup(&self) -> Option<&ArmedEvent> {
        self.wakeup.get()
    }

    /// The event of the owner's event loop, signalled when it is new.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub(crate) fn open_wakeup(&self) -> io::Result<&ArmedEvent> {
        if self.wakeup.get().is_none() {
            let event = ArmedEvent::new()?;
            event.arm();
            event.notify();
            // Only the owner opens it: there is no other one yet.
            drop(self.wakeup.set(event));
        }
        self.wakeup.get().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn reader(&self) -> SocketReader {
        match self.reader.load(Ordering::Relaxed) {
            0 => SocketReader::Polls,
            1 => SocketReader::Descriptor,
            _ => SocketReader::Conductor,
        }
    }

    /// Called by the owner. [`SocketReader::Descriptor`] is set before the owner takes the lock
    /// under which it copies sockets and deadline: a conductor that changes them later has the lock
    /// later, and finds it.
    pub(crate) fn set_reader(&self, reader: SocketReader) {
        self.reader.store(reader as u32, Ordering::Relaxed);
    }

    /// Called by the conductor, with the lock of the sessions held, after it has changed their
    /// sockets or deadline: the descriptor watches old ones, so the conductor reads from here on.
    pub(crate) fn replace_descriptor(&self) {
        let (old, new) = (SocketReader::Descriptor as u32, SocketReader::Conductor as u32);
        // Relaxed: the lock orders it, see `set_reader`. An owner that polls meanwhile stays.
        let _ = self.reader.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Called by the thread that serves the sessions after it queued deliveries or changed the set
    /// of sockets.
    pub(crate) fn notify(&self) {
        // PAIRS(owner-epoch): release here, acquire where the owner reads the epoch.
        self.wake_epoch.fetch_add(1, Ordering::Release);
        // PAIRS(owner-parked): the new epoch comes before the load of the owner's flag.
        fence(Ordering::SeqCst);
        if self.is_parked() {
            self.event.signal();
        }
        if let Some(event) = self.wakeup.get() {
            event.notify();
        }
        // Called whether or not the owner is parked: it may sleep on something else.
        if let Some(Waker(wake)) = self.waker.get() {
            wake();
        }
    }

    /// Reports a session that timed out, for discovery.
    pub(crate) fn add_lost(&self, session: u64) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    pub(crate) fn take_lost(&self) -> Vec<u64> {
        std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A number that changes with every [`notify`](Self::notify).
    pub(crate) fn wake_epoch(&self) -> u32 {
        // PAIRS(owner-epoch): acquire here, release in `notify`: an owner that has seen the epoch
        // finds what was queued before it.
        self.wake_epoch.load(Ordering::Acquire)
    }
}
