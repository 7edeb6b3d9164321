//! A bare futex: the cheapest way in which one CPU can wake another through the kernel.

use std::ptr;
use std::sync::atomic::AtomicU32;

/// Sleeps while the word holds `expected`. Returns at a wake-up, at once when the word differs,
/// and now and then for no reason: the caller looks at the word again.
pub fn wait(word: &AtomicU32, expected: u32) {
    // SAFETY: the word outlives the call; no timeout is given.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            ptr::null::<libc::timespec>(),
        )
    };
}

/// Wakes one sleeper.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
