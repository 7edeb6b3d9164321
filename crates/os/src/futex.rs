//! Sleeping on a word of shared memory: futex(2), and futex_waitv(2) for several words.

#[cfg(loom)]
mod model;

#[cfg(loom)]
use self::model::{wait_by, wait_on_all, wake_by};
use crate::timespec;
use lanecast_base::sync::AtomicU32;
use std::sync::OnceLock;
use std::time::Duration;

/// The most words that one sleep can watch.
pub const WORDS_MAX: usize = 128;

/// A count for [`wake`]: every thread that sleeps on the word.
pub const ALL: u32 = i32::MAX as u32;

/// Sleeps while `word` holds `expected`, at most `limit`. May wake early.
pub fn wait(word: &AtomicU32, expected: u32, limit: Duration) {
    wait_by(libc::FUTEX_WAIT, word, expected, Some(limit));
}

/// Wakes at most `count` threads asleep on `word`; returns their number.
pub fn wake(word: &AtomicU32, count: u32) -> usize {
    wake_by(libc::FUTEX_WAKE, word, count)
}

/// Same as [`wait`], on a word that only this process uses: the kernel finds it faster. Without a
/// limit it sleeps until woken.
pub fn wait_private(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    wait_by(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, word, expected, limit);
}

/// Wakes at most `count` threads asleep in [`wait_private`]; returns their number.
pub fn wake_private(word: &AtomicU32, count: u32) -> usize {
    wake_by(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, word, count)
}

#[cfg(not(loom))]
fn wait_by(operation: i32, word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    let limit = limit.map(timespec);
    let limit = limit.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: `word` is a live, aligned word and `limit` null or a live timespec for the whole
    // call; the remaining arguments are ignored by FUTEX_WAIT.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, expected, limit, 0, 0) };
}

#[cfg(not(loom))]
fn wake_by(operation: i32, word: &AtomicU32, count: u32) -> usize {
    // SAFETY: `word` is a live, aligned word; the remaining arguments are ignored.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word, operation, count, 0, 0, 0) };
    usize::try_from(woken).unwrap_or(0)
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Waiter {
    expected: u64,
    word: u64,
    flags: u32,
    reserved: u32,
}

impl Waiter {
    fn new(word: &AtomicU32, expected: u32) -> Self {
        Self {
            expected: u64::from(expected),
            word: core::ptr::from_ref(word).addr() as u64,
            flags: FUTEX2_SIZE_U32,
            reserved: 0,
        }
    }
}

const FUTEX2_SIZE_U32: u32 = 2;

/// Sleeps while every word holds its expected value, at most `limit`.
///
/// Where the kernel (before 5.16) cannot watch several words, or there are more than
/// [`WORDS_MAX`], it watches the first for at most a millisecond.
pub fn wait_any(words: &[(&AtomicU32, u32)], limit: Duration) {
    let Some(&(first, expected)) = words.first() else {
        std::thread::sleep(limit);
        return;
    };
    if words.len() == 1 {
        return wait(first, expected, limit);
    }
    if words.len() > WORDS_MAX || !(cfg!(loom) || can_watch_several()) {
        wait(first, expected, limit.min(Duration::from_millis(1)));
    } else {
        wait_on_all(words, limit);
    }
}

#[cfg(not(loom))]
fn wait_on_all(words: &[(&AtomicU32, u32)], limit: Duration) {
    let mut waiters = [Waiter::new(words[0].0, 0); WORDS_MAX];
    for (waiter, &(word, expected)) in waiters.iter_mut().zip(words) {
        *waiter = Waiter::new(word, expected);
    }
    waitv(&waiters[..words.len()], limit);
}

fn waitv(waiters: &[Waiter], limit: Duration) -> i64 {
    let mut now = timespec(Duration::ZERO);
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32);
    let until = timespec(now.saturating_add(limit));
    // SAFETY: `waiters` and `until` live through the call; each waiter's word is borrowed by
    // the caller for as long.
    unsafe {
        libc::syscall(
            libc::SYS_futex_waitv,
            waiters.as_ptr(),
            waiters.len(),
            0,
            &until,
            libc::CLOCK_MONOTONIC,
        )
    }
}

/// Whether one sleep can watch several words here (Linux 5.16 and later).
pub fn can_watch_several() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let word = AtomicU32::new(1);
        // A value that the word does not hold: the call returns at once.
        let waiter = Waiter::new(&word, 0);
        waitv(&[waiter], Duration::ZERO);
        std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use lanecast_base::sync::Ordering;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_changed_word_is_not_slept_on() {
        let words = [AtomicU32::new(1), AtomicU32::new(2)];
        let start = Instant::now();
        wait(&words[0], 0, LONG);
        wait_any(&[(&words[0], 1), (&words[1], 1)], LONG);
        assert!(start.elapsed() < LONG / 2);
    }

    #[test]
    fn waking_any_of_the_words_ends_the_sleep() {
        let words = [AtomicU32::new(0), AtomicU32::new(0)];
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                while words[1].load(Ordering::Relaxed) == 0 {
                    wait_any(&[(&words[0], 0), (&words[1], 0)], LONG);
                }
            });
            words[1].store(1, Ordering::Relaxed);
            while !sleeper.is_finished() {
                wake(&words[1], 1);
            }
        });
    }
}
