//! Sleeping inside the model checker, which knows neither a kernel nor time: a sleep that no
//! wake ends is reported as a deadlock.

use lanecast_base::sync::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

/// Where everybody sleeps: any wake wakes all, who then look at their own word.
#[derive(Default)]
struct Bed {
    sleeping: Mutex<()>,
    waking: Condvar,
}

loom::lazy_static! {
    static ref BED: Bed = Bed::default();
}

pub(super) fn wait_by(_operation: i32, word: &AtomicU32, expected: u32, _limit: Option<Duration>) {
    let mut sleeping = BED.sleeping.lock().unwrap();
    // Relaxed, as the kernel's look at the word is no synchronisation of ours.
    while word.load(Ordering::Relaxed) == expected {
        sleeping = BED.waking.wait(sleeping).unwrap();
    }
}

pub(super) fn wake_by(_operation: i32, _word: &AtomicU32, _count: u32) -> usize {
    let _sleeping = BED.sleeping.lock().unwrap();
    BED.waking.notify_all();
    1
}
