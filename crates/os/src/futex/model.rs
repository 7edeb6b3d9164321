//! Futexes in the loom model checker, which has neither a kernel nor time: a sleep without a wake
//! is reported as a deadlock.

use lanecast_base::sync::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

/// All sleeping threads: any wake wakes all of them, and each checks its own word.
#[derive(Default)]
struct Sleepers {
    sleeping: Mutex<()>,
    waking: Condvar,
}

loom::lazy_static! {
    static ref SLEEPERS: Sleepers = Sleepers::default();
}

pub(super) fn wait_by(_operation: i32, word: &AtomicU32, expected: u32, _limit: Option<Duration>) {
    wait_on_all(&[(word, expected)], Duration::ZERO);
}

/// Sleeps while every word holds its expected value.
pub(super) fn wait_on_all(words: &[(&AtomicU32, u32)], _limit: Duration) {
    let mut sleeping = SLEEPERS.sleeping.lock().unwrap();
    // Relaxed: the kernel's load of a word synchronises nothing.
    while words.iter().all(|(word, expected)| word.load(Ordering::Relaxed) == *expected) {
        sleeping = SLEEPERS.waking.wait(sleeping).unwrap();
    }
}

pub(super) fn wake_by(_operation: i32, _word: &AtomicU32, _count: u32) -> usize {
    let _sleeping = SLEEPERS.sleeping.lock().unwrap();
    SLEEPERS.waking.notify_all();
    1
}
