//! The end of an agent that sleeps on a signal's epoch, as the wake-up thread does.

use super::check_sleep;
use crate::wake_signal::WakeSignal;
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_base::{Agent, run_until_stopped};
use lanecast_os::futex;
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

/// Looks at the epoch in its work and sleeps on it afterwards.
struct Sleeper {
    signal: Arc<WakeSignal>,
    seen_epoch: u32,
}

impl Agent for Sleeper {
    fn do_work(&mut self) -> usize {
        self.seen_epoch = self.signal.epoch();
        0
    }

    fn idle(&mut self) {
        futex::wait_any(&[(self.signal.word(), self.seen_epoch)], Duration::MAX);
    }

    fn name(&self) -> &'static str {
        "sleeper"
    }
}

#[test]
fn an_agent_that_is_stopped_does_not_sleep_on() {
    check_sleep(|| {
        let signal = Arc::new(WakeSignal::default());
        let stopped = Arc::new(AtomicBool::new(false));
        let mut agent = Sleeper { signal: Arc::clone(&signal), seen_epoch: 0 };
        let flag = Arc::clone(&stopped);
        let running = thread::spawn(move || run_until_stopped(&mut agent, &flag));
        // PAIRS(runner-stop): release here, acquire in `run_until_stopped`.
        stopped.store(true, Ordering::Release);
        signal.wake();
        running.join().expect("the agent ends");
    });
}
