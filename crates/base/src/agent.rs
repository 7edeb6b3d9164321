//! Duty cycles: work that runs beside the path of a message.

use crate::sync::{AtomicBool, Ordering};
use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// Work done in short turns, on a thread of its own or on the caller's.
pub trait Agent: Send {
    /// One turn; returns how many things it did (0 = there was nothing to do).
    fn do_work(&mut self) -> usize;

    /// Sleeps until there may be work again; must return soon after its waker was called.
    fn idle(&mut self);

    /// The thread's name (at most 15 bytes are shown by the system).
    fn name(&self) -> &'static str;
}

/// A thread that turns an [`Agent`] until it is dropped.
pub struct Runner {
    stop: Arc<AtomicBool>,
    wake: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<()>>,
}

impl Runner {
    /// Starts the thread. `wake` must end a running [`Agent::idle`], so that dropping is prompt.
    ///
    /// # Errors
    /// If the system refuses another thread.
    pub fn start(
        agent: Box<dyn Agent>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_after(|| Ok(()), agent, wake)
    }

    /// As [`start`](Self::start), but the thread does `prepare` first: pins itself, say.
    ///
    /// # Errors
    /// If the system refuses another thread, or that of `prepare`.
    pub fn start_after(
        prepare: impl FnOnce() -> io::Result<()> + Send + 'static,
        mut agent: Box<dyn Agent>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name(agent.name().into()).spawn(move || {
            let prepared = prepare();
            let goes_on = prepared.is_ok();
            // Whoever started the thread waits for this.
            let _ = tell.send(prepared);
            if !goes_on {
                return;
            }
            // PAIRS(runner-stop): acquire here, release in `drop`.
            while !stopped.load(Ordering::Acquire) {
                if agent.do_work() == 0 {
                    agent.idle();
                }
            }
        })?;
        let runner = Self { stop, wake: Box::new(wake), thread: Some(thread) };
        told.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended at once")))?;
        Ok(runner)
    }

    /// Ends a running [`Agent::idle`] so that the agent looks for work now.
    pub fn wake(&self) {
        (self.wake)();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // PAIRS(runner-stop): release here, acquire in the thread's loop.
        self.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // An agent's panic has already been printed by its thread; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}
