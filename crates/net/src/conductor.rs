//! The conductor: a background thread beside the path of messages.
//!
//! It finds publishers, and serves the sessions of owners that are busy elsewhere. Its duty cycle
//! runs [`SubAgent`]s: `sender_agent` and `receiver_agent`, on one thread or on two. Owners reach
//! it through `conductor_handle`, whose commands it reads from a [`CommandQueue`].

use crate::conductor_waker::ConductorWaker;
use crate::poller::{Descriptor, Poller};
use lanecast_base::clock::Clock;
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_base::{Agent, WaitStep, WaitStrategy, Waiter, spin};
use lanecast_os::biased::{Visitor, VisitorGuard};
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The first pause while owners serve their sessions themselves, and the longest.
const REST: Nanos = 100 * MICROSECOND;
const REST_MAX: Nanos = 16 * MILLISECOND;
/// The longest pause while a publisher batches commits. Pauses start short and double, so the tail
/// of a stream is flushed no later than the stream took.
const BATCHING_REST_MAX: Nanos = 4 * MILLISECOND;
/// Longest wait for a session's lock by the only thread that serves it; it then tries again later.
const LOCK_PATIENCE: Duration = Duration::from_micros(50);

/// Commands to a background thread, from owners or from another background thread.
#[derive(Debug)]
pub(crate) struct CommandQueue<C> {
    commands: Mutex<Vec<C>>,
    /// There are commands: a duty cycle without any takes no lock.
    has_commands: AtomicBool,
}

impl<C> CommandQueue<C> {
    /// Adds a command. The caller then wakes the thread.
    pub(crate) fn push(&self, command: C) {
        let mut commands = self.lock();
        commands.push(command);
        // Relaxed: the lock orders the commands, and the wake-up that follows delays none.
        self.has_commands.store(true, Ordering::Relaxed);
    }

    pub(crate) fn drain(&self) -> Vec<C> {
        if !self.has_commands.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut commands = self.lock();
        self.has_commands.store(false, Ordering::Relaxed);
        std::mem::take(&mut *commands)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<C>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Default for CommandQueue<C> {
    fn default() -> Self {
        Self { commands: Mutex::default(), has_commands: AtomicBool::new(false) }
    }
}

/// Descriptors and deadline of the conductor's next sleep, collected in a duty cycle.
#[derive(Debug)]
pub(crate) struct WaitSet {
    pub(crate) descriptors: Vec<(Descriptor, bool)>,
    pub(crate) deadline: Nanos,
    /// An owner serves its own session, or holds its lock: look again after a pause.
    pub(crate) owners_active: bool,
    /// Whether each descriptor of the cycle before was ready at the end of the sleep; empty
    /// without a sleep in between.
    pub(crate) ready: Vec<bool>,
}

impl WaitSet {
    pub(crate) const fn new() -> Self {
        Self {
            descriptors: Vec::new(),
            deadline: Nanos::MAX,
            owners_active: false,
            ready: Vec::new(),
        }
    }

    /// Begins a duty cycle: sessions and sockets come and go, so all is collected anew.
    pub(crate) fn clear(&mut self) {
        self.descriptors.clear();
        (self.deadline, self.owners_active) = (Nanos::MAX, false);
    }

    /// Whether one of the descriptors that had these places in the cycle before is ready; unknown
    /// without a sleep in between.
    pub(crate) fn is_ready(&self, places: Range<usize>) -> Option<bool> {
        self.ready.get(places).map(|ready| ready.contains(&true))
    }
}

/// A part of the conductor's duty cycle.
pub(crate) trait SubAgent: Debug + Send {
    /// Runs once; returns how many commands and frames were handled.
    fn do_work(&mut self, now: Nanos, wait_set: &mut WaitSet) -> usize;

    /// Whether an owner has entered its session since, without waking the conductor.
    fn was_locked(&self) -> bool {
        false
    }

    /// Whether a publisher batches commits, and does not tell the end of the batch.
    fn is_batching(&self) -> bool {
        false
    }

    /// Whether a publisher packs commits until it tells.
    fn is_packing(&self) -> bool {
        false
    }
}

/// Locks a session for the conductor. One that `waits` for the owner does so for up to 50 µs: the
/// only driver of the session, or with a task that the owner never does. A stand-in for the owner
/// gives way at once.
pub(crate) fn lock_session<T>(visitor: &Visitor<T>, waits: bool) -> Option<VisitorGuard<'_, T>> {
    // No driver may block without limit: other sessions wait for this thread.
    if waits { visitor.try_lock_for(LOCK_PATIENCE) } else { visitor.try_lock() }
}

/// The duty cycle of a conductor thread.
#[derive(Debug)]
pub(crate) struct Conductor {
    name: String,
    agents: Vec<Box<dyn SubAgent>>,
    waker: Arc<ConductorWaker>,
    /// This thread moves all bytes itself; owners never do.
    only_driver: bool,
    clock: Clock,
    poller: Poller,
    /// Steps before a sleep.
    waiter: Waiter,
    rest: Nanos,
    wait_set: WaitSet,
}

impl Conductor {
    /// `wait` says what comes before a sleep without work.
    pub(crate) fn new(
        name: String,
        agents: Vec<Box<dyn SubAgent>>,
        waker: Arc<ConductorWaker>,
        only_driver: bool,
        wait: WaitStrategy,
    ) -> Self {
        let (clock, poller, wait_set) = (Clock::host(), Poller::default(), WaitSet::new());
        let waiter = Waiter::new(wait);
        Self { name, agents, waker, only_driver, clock, poller, waiter, rest: REST, wait_set }
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// Length of the next pause while owners serve their sessions themselves.
    fn next_rest(&self) -> Nanos {
        let longer = self.rest * 2;
        if self.only_driver {
            REST
        } else if !self.agents.iter().any(|agent| agent.is_batching()) {
            // Owners serve themselves: the pauses double, and the conductor hardly costs anything.
            let is_packing = self.agents.iter().any(|agent| agent.is_packing());
            longer.min(if is_packing { BATCHING_REST_MAX } else { REST_MAX })
        } else if self.rest > BATCHING_REST_MAX {
            // A stream has just begun: start short again.
            REST
        } else {
            longer.min(BATCHING_REST_MAX)
        }
    }

    /// Longest sleep without a wake-up.
    fn sleep_limit(&mut self) -> Nanos {
        // Busy owners do not wake this thread: it has to look again by itself.
        if self.wait_set.owners_active {
            self.rest = self.next_rest();
            return self.rest;
        }
        self.rest = REST;
        // The flag first, then the check of the sessions: an owner sees the one or is seen by the
        // other.
        self.waker.park();
        // An owner that entered before it could see the flag has not woken this thread.
        match self.agents.iter().any(|agent| agent.was_locked()) {
            false => Nanos::MAX,
            // The owner's rest of the work is this thread's alone.
            true if self.only_driver => 0,
            true => REST,
        }
    }
}

impl Agent for Conductor {
    fn do_work(&mut self) -> usize {
        let now = self.now();
        self.wait_set.clear();
        let Self { agents, wait_set, .. } = self;
        let work = agents.iter_mut().map(|agent| agent.do_work(now, wait_set)).sum();
        // Of the last sleep, and the places were those of the cycle before it.
        wait_set.ready.clear();
        if work > 0 {
            self.waiter.found(work);
        }
        work
    }

    fn idle(&mut self) {
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.sleep(),
        }
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Conductor {
    /// Sleeps until a descriptor is ready, a deadline is due, or another thread wakes this one.
    fn sleep(&mut self) {
        let now = self.now();
        let limit = self.sleep_limit().min(self.wait_set.deadline.saturating_sub(now));
        let limit = (limit != Nanos::MAX).then(|| Duration::from_nanos(limit));
        let wakers = self.waker.descriptors();
        let WaitSet { descriptors, ready, .. } = &mut self.wait_set;
        let [event, timer] = self.poller.sleep_and_tell(wakers, descriptors, limit, ready);
        // A wake-up from here on ends the next sleep.
        self.waker.unpark(event, timer);
    }
}
