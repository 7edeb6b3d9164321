//! Signs between an end's owner and the conductor.

use lanecast_base::sync::{AtomicBool, AtomicU32, Ordering, fence};
use lanecast_os::alarm::Alarm;
use lanecast_os::event::EventBell;
use lanecast_os::udp::UdpSocket;
use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long owners have for what they are about before the conductor has a look: long enough that
/// it does not disturb the answer to what was sent, short enough that the end of a stream is not
/// late.
const GRACE: Duration = Duration::from_micros(150);

/// The conductor's sleep, as the ends see it.
#[derive(Debug)]
pub(crate) struct Attention {
    bell: EventBell,
    alarm: Alarm,
    /// Whether it sleeps until something happens, rather than until its next round.
    asleep: AtomicBool,
}

impl Attention {
    pub(crate) fn new() -> io::Result<Self> {
        let (bell, alarm) = (EventBell::new(false)?, Alarm::new()?);
        Ok(Self { bell, alarm, asleep: AtomicBool::new(false) })
    }

    /// Wakes the conductor.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Wakes the conductor at once if it sleeps until something happens.
    #[inline]
    pub(crate) fn call(&self) {
        if self.rouse() {
            self.bell.ring();
        }
    }

    /// Wakes the conductor soon if it sleeps until something happens: an end has something that it
    /// must look after should the owner go away.
    #[inline]
    pub(crate) fn nudge(&self) {
        if self.rouse() {
            self.remind();
        }
    }

    /// Wakes the conductor soon.
    pub(crate) fn remind(&self) {
        self.alarm.set(GRACE);
    }

    /// Whether the conductor is to be woken, by the caller.
    #[inline]
    fn rouse(&self) -> bool {
        // PAIRS(attention): what the owner did comes before this look, as the conductor's mark
        // comes before its last look at the ends.
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed)
    }

    /// The conductor is about to sleep until something happens.
    pub(crate) fn fall_asleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        // PAIRS(attention): the mark comes before the look at the ends that follows.
        fence(Ordering::SeqCst);
    }

    /// The conductor is up again.
    pub(crate) fn wake_up(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        self.bell.hush();
        self.alarm.hush();
    }

    /// What wakes the conductor.
    pub(crate) fn bells(&self) -> [BorrowedFd<'_>; 2] {
        [self.bell.as_fd(), self.alarm.as_fd()]
    }
}

/// What an end's owner is doing, as the conductor sees it.
#[derive(Debug)]
pub(crate) struct Presence {
    /// The owner sleeps on the end's own sockets, and looks after them itself when they are heard.
    waiting: AtomicBool,
    /// Rung when the sockets have changed, or something lies ready.
    pub(crate) bell: EventBell,
    /// The owner sleeps elsewhere, and leaves the sockets to the conductor.
    aside: AtomicBool,
    /// How many items the conductor has laid ready for the owner.
    ready: AtomicU32,
    /// Sessions that the end has given up, and that may come back.
    lost: Mutex<Vec<u64>>,
    /// Wakes an owner that sleeps elsewhere.
    waker: OnceLock<Waker>,
}

/// Something to be called that wakes the owner.
struct Waker(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

impl Presence {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            waiting: AtomicBool::new(false),
            bell: EventBell::new(false)?,
            aside: AtomicBool::new(false),
            ready: AtomicU32::new(0),
            lost: Mutex::default(),
            waker: OnceLock::new(),
        })
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn set_waiting(&self, waiting: bool) {
        self.waiting.store(waiting, Ordering::Relaxed);
        // PAIRS(presence): the mark comes before the owner's last look at what lies ready.
        fence(Ordering::SeqCst);
    }

    /// From now on [`tell`](Self::tell) calls `waker`, too.
    pub(crate) fn wake_by(&self, waker: impl Fn() + Send + Sync + 'static) {
        // Whoever has set one already keeps it: there is one owner, and it does so once.
        drop(self.waker.set(Waker(Box::new(waker))));
    }

    pub(crate) fn is_aside(&self) -> bool {
        self.aside.load(Ordering::Relaxed)
    }

    pub(crate) fn set_aside(&self, aside: bool) {
        self.aside.store(aside, Ordering::Relaxed);
    }

    /// The conductor has laid something ready, or changed the sockets.
    pub(crate) fn tell(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
        // PAIRS(presence): what lies ready comes before the look at the owner's mark.
        fence(Ordering::SeqCst);
        if self.is_waiting() {
            self.bell.ring();
        }
        if let Some(Waker(wake)) = self.waker.get() {
            wake();
        }
    }

    /// The end has given a session up: it is to be looked for.
    pub(crate) fn lose(&self, session: u64) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    pub(crate) fn take_lost(&self) -> Vec<u64> {
        std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A number that changes with every [`tell`](Self::tell).
    pub(crate) fn tidings(&self) -> u32 {
        self.ready.load(Ordering::Relaxed)
    }
}

/// A descriptor that an end and the conductor share, so that neither can be left with a closed one.
#[derive(Clone, Debug)]
pub(crate) enum Descriptor {
    Udp(Arc<UdpSocket>),
    Tcp(Arc<TcpStream>),
    Listener(Arc<TcpListener>),
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(socket) => socket.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
            Self::Listener(listener) => listener.as_fd(),
        }
    }
}
