//! Agents: duty cycles that run beside the message path, and the thread that runs one.

use crate::sync::{AtomicBool, Ordering};
use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// Work done in short duty cycles, on its own thread or on the caller's.
pub trait Agent: Send {
    /// Runs one duty cycle; returns the number of work items done (0: idle).
    fn do_work(&mut self) -> usize;

    /// Sleeps until there may be work again. Must return soon after a wake-up.
    fn idle(&mut self);

    /// Name of the thread (the system shows at most 15 bytes).
    fn name(&self) -> &str;
}

/// Runs the duty cycle of `agent` until `stopped` is set and the agent is woken, in this order.
///
/// The wake-up may come before the agent's work, which then takes it for one of its own: so the
/// agent never sleeps without another look at `stopped` behind its work.
pub fn run_until_stopped(agent: &mut dyn Agent, stopped: &AtomicBool) {
    // PAIRS(runner-stop): acquire here, release in `AgentRunner::drop`.
    while !stopped.load(Ordering::Acquire) {
        // PAIRS(runner-stop): acquire here, release in `AgentRunner::drop`.
        if agent.do_work() == 0 && !stopped.load(Ordering::Acquire) {
            agent.idle();
        }
    }
}

/// A thread that runs the duty cycle of an [`Agent`] until dropped.
pub struct AgentRunner {
    stop: Arc<AtomicBool>,
    wake: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<()>>,
}

impl AgentRunner {
    /// Starts the thread. `wake` must end a running [`Agent::idle`], so that a drop is prompt.
    ///
    /// # Errors
    /// If the system refuses another thread.
    pub fn start(
        agent: Box<dyn Agent>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_with(|| Ok(()), agent, wake)
    }

    /// As [`start`](Self::start), but the thread runs `prepare` first, for example to pin itself
    /// to a CPU.
    ///
    /// # Errors
    /// If the system refuses another thread, or if `prepare` fails.
    pub fn start_with(
        prepare: impl FnOnce() -> io::Result<()> + Send + 'static,
        mut agent: Box<dyn Agent>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (prepared_tx, prepared_rx) = mpsc::channel();
        let thread = std::thread::Builder::new().name(agent.name().into()).spawn(move || {
            let prepared = prepare();
            let is_ready = prepared.is_ok();
            // `start_with` waits for this result.
            let _ = prepared_tx.send(prepared);
            if !is_ready {
                return;
            }
            run_until_stopped(agent.as_mut(), &stopped);
        })?;
        let runner = Self { stop, wake: Box::new(wake), thread: Some(thread) };
        prepared_rx.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended at once")))?;
        Ok(runner)
    }

    /// Ends a running [`Agent::idle`], so that the agent runs its next duty cycle now.
    pub fn wake(&self) {
        (self.wake)();
    }
}

impl Drop for AgentRunner {
    fn drop(&mut self) {
        // PAIRS(runner-stop): release here, acquire in `run_until_stopped`.
        self.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the agent has already been printed by its thread.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for AgentRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentRunner").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Stopped in its work, which takes the wake-up for one of its own.
    struct StoppedAtWork(Arc<AtomicBool>);

    impl Agent for StoppedAtWork {
        fn do_work(&mut self) -> usize {
            // PAIRS(runner-stop): release here, acquire in `run_until_stopped`.
            self.0.store(true, Ordering::Release);
            0
        }

        fn idle(&mut self) {
            panic!("nothing would wake it");
        }

        fn name(&self) -> &'static str {
            "stopped"
        }
    }

    #[test]
    fn an_agent_that_is_stopped_while_it_works_does_not_sleep() {
        let stopped = Arc::new(AtomicBool::new(false));
        run_until_stopped(&mut StoppedAtWork(Arc::clone(&stopped)), &stopped);
    }
}
