//! Real-time scheduling of the measured thread, for a limited time.
//!
//! A spinning thread with a real-time priority has its CPU to itself, but only for a short time:
//! the system reserves a share of each second, and two such threads on one CPU block each other. A
//! watchdog with a higher priority therefore restores the thread's normal priority after
//! [`LONGEST`].

use lanecast_os::priority::Thread;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest time of real-time scheduling.
pub(crate) const LONGEST: Duration = Duration::from_millis(900);
/// The measured thread's priority, and the watchdog's.
const PRIORITY: u8 = 10;
const WATCHDOG_PRIORITY: u8 = 11;

/// Real-time scheduling of the thread that created it, from `begin` to `end`.
#[derive(Debug)]
pub(crate) struct RealTime {
    measured: Thread,
    longest: Duration,
    shared: Arc<Shared>,
    watchdog: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Active(Instant),
    Expired,
    Over,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the state, if the watchdog has not acted; gives the one in force.
    fn set(&self, wanted: State) -> State {
        let mut state = self.lock();
        if *state != State::Expired {
            *state = wanted;
        }
        self.changed.notify_one();
        *state
    }
}

impl RealTime {
    /// Prepares real-time scheduling of the calling thread, without starting it.
    ///
    /// # Errors
    /// If this process may not use real-time priorities.
    pub(crate) fn prepare() -> io::Result<Self> {
        Self::prepare_for(LONGEST)
    }

    fn prepare_for(longest: Duration) -> io::Result<Self> {
        let measured = Thread::current();
        let state = Mutex::new(State::Ready);
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let (tell, told) = mpsc::channel();
        let watched = Arc::clone(&shared);
        let watchdog = std::thread::Builder::new().name("watchdog".into()).spawn(move || {
            let raised = Thread::current().make_real_time(WATCHDOG_PRIORITY);
            let is_raised = raised.is_ok();
            // Without a receiver the caller has given up, and no thread was raised.
            if tell.send(raised).is_ok() && is_raised {
                watch(&watched, measured);
            }
        })?;
        let ready = Self { measured, longest, shared, watchdog: Some(watchdog) };
        told.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        Ok(ready)
    }

    /// Starts real-time scheduling. Called by that thread.
    pub(crate) fn begin(&self) {
        // The watchdog first, so that it is awake before this thread can block its CPU.
        self.shared.set(State::Active(Instant::now() + self.longest));
        // The watchdog got a higher priority, so this one is allowed.
        let _ = self.measured.make_real_time(PRIORITY);
    }

    /// Ends real-time scheduling; true if the watchdog had ended it before.
    pub(crate) fn end(mut self) -> bool {
        self.finish()
    }

    fn finish(&mut self) -> bool {
        let Some(watchdog) = self.watchdog.take() else { return false };
        let expired = self.shared.set(State::Over) == State::Expired;
        let _ = watchdog.join();
        let _ = self.measured.make_normal();
        expired
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The watchdog: waits for the thread's time to begin, and for its end.
fn watch(shared: &Shared, measured: Thread) {
    let mut state = shared.lock();
    loop {
        state = match *state {
            State::Ready => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            State::Active(until) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let _ = measured.make_normal();
                    *state = State::Expired;
                    return;
                }
                let waited = shared.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            State::Expired | State::Over => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Real-time scheduling, if the system permits it; else checks the refusal.
    fn prepared(longest: Duration) -> Option<RealTime> {
        match RealTime::prepare_for(longest) {
            Ok(ready) => Some(ready),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                assert!(!Thread::current().is_real_time().unwrap());
                None
            }
        }
    }

    #[test]
    fn the_thread_is_in_front_from_beginning_to_end() {
        let Some(ready) = prepared(LONGEST) else { return };
        assert!(!Thread::current().is_real_time().unwrap(), "not yet");
        ready.begin();
        assert!(Thread::current().is_real_time().unwrap());
        assert!(!ready.end(), "its time was not over");
        assert!(!Thread::current().is_real_time().unwrap());
    }

    #[test]
    fn the_watchdog_ends_it_while_the_thread_spins() {
        let Some(ready) = prepared(Duration::from_millis(10)) else { return };
        ready.begin();
        let deadline = Instant::now() + Duration::from_secs(10);
        while Thread::current().is_real_time().unwrap() {
            assert!(Instant::now() < deadline, "the watchdog did not come");
        }
        assert!(ready.end(), "it is told");
    }

    #[test]
    fn giving_up_in_between_takes_the_thread_back() {
        let Some(ready) = prepared(LONGEST) else { return };
        ready.begin();
        drop(ready);
        assert!(!Thread::current().is_real_time().unwrap());
    }
}
