//! Scheduling class of a thread: sched_setscheduler(2).

use crate::checked;
use std::io;

/// A thread of this process, by its kernel id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(libc::pid_t);

impl Thread {
    /// The calling thread.
    pub fn current() -> Self {
        // SAFETY: gettid has no preconditions.
        Self(unsafe { libc::gettid() })
    }

    /// Schedules the thread before all normal ones, and before real-time ones of a lower `priority`
    /// (1 to 99), until it sleeps or is [made normal](Self::make_normal). A spinning real-time
    /// thread keeps all other threads off its CPU.
    ///
    /// # Errors
    /// If this process lacks the privilege: CAP_SYS_NICE, or a limit on real-time
    /// priorities (`ulimit -r`) of at least `priority`.
    pub fn make_real_time(self, priority: u8) -> io::Result<()> {
        self.schedule(libc::SCHED_FIFO, priority)
    }

    /// Schedules the thread as a normal one again, with its nice value.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn make_normal(self) -> io::Result<()> {
        self.schedule(libc::SCHED_OTHER, 0)
    }

    /// Whether the thread is scheduled in real time.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn is_real_time(self) -> io::Result<bool> {
        // SAFETY: sched_getscheduler only reads the thread's id.
        let policy = checked(unsafe { libc::sched_getscheduler(self.0) })?;
        Ok(policy == libc::SCHED_FIFO || policy == libc::SCHED_RR)
    }

    fn schedule(self, policy: i32, priority: u8) -> io::Result<()> {
        let parameters = libc::sched_param { sched_priority: priority.into() };
        // SAFETY: `parameters` is valid for the call's duration.
        checked(unsafe { libc::sched_setscheduler(self.0, policy, &parameters) }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_raised_and_taken_back_or_the_refusal_is_told() {
        let thread = Thread::current();
        assert!(!thread.is_real_time().unwrap());
        match thread.make_real_time(1) {
            Ok(()) => assert!(thread.is_real_time().unwrap()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        thread.make_normal().unwrap();
        assert!(!thread.is_real_time().unwrap());
    }

    #[test]
    fn a_priority_that_does_not_exist_is_refused() {
        assert!(Thread::current().make_real_time(100).is_err());
    }
}
