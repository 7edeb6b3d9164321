//! A bare futex: the cheapest way in which one CPU can wake another through the kernel.

use std::ptr;
use std::sync::atomic::AtomicU32;

use libc::c_int;

/// Threads that may sleep on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Threads of any process that has the word in its memory.
    Host,
    /// Threads of this process: cheaper, because the kernel need not find out whose page it is.
    Process,
}

impl Reach {
    fn flag(self) -> c_int {
        if self == Reach::Process { libc::FUTEX_PRIVATE_FLAG } else { 0 }
    }
}

/// Sleeps while the word holds `expected`. Returns at a wake-up, at once when the word differs,
/// and now and then for no reason: the caller looks at the word again.
pub fn wait(word: &AtomicU32, expected: u32, reach: Reach) {
    // SAFETY: the word outlives the call; no timeout is given.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | reach.flag(),
            expected,
            ptr::null::<libc::timespec>(),
        )
    };
}

/// Wakes one sleeper.
pub fn wake(word: &AtomicU32, reach: Reach) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | reach.flag(), 1) };
}
