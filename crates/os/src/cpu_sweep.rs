//! A short-lived child process that runs on each CPU once, after a registration for membarrier(2).
//!
//! The kernel notes for each CPU whether the process that it runs is registered. It updates the
//! note when a process registers, on the CPUs that run it at that moment, and when a CPU changes
//! from the memory of one process to that of another. A CPU that ran this process before, and has
//! been idle since, does neither: it still has the memory of this process, and when it runs one of
//! its threads again, the note is out of date and barriers leave the CPU out (Linux 6.18: not one
//! of thousands reached it). The child has memory of its own, so its visit makes each CPU look
//! anew.

use std::time::{Duration, Instant};

/// A CPU for which the child waits longer is busy: with other processes, so that its note is of
/// theirs, or with a thread of this one that has seen the registration. It is left out.
const PATIENCE: Duration = Duration::from_millis(20);
/// Longest time of the whole.
const LIMIT: Duration = Duration::from_millis(500);
/// Interval of looks where the child is.
const LOOK: Duration = Duration::from_micros(50);

/// Has a child process run on each CPU that this process may use; returns whether there was one.
pub(crate) fn run() -> bool {
    // Miri has no processes, and models need none.
    if cfg!(any(miri, loom)) {
        return false;
    }
    // SAFETY: the configured number of CPUs is asked for.
    let cpus = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(1);
    // Without a signal at its end, and so without notice by the program or its handlers; with the
    // table of files in common, since copies would hold locks and ports that the program gives up.
    let flags = libc::c_long::from(libc::CLONE_FILES);
    // SAFETY: no memory is shared and no stack given, so this is a fork; the child calls nothing
    // but `visit`.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match child {
        0 => visit(cpus),
        child if child > 0 => {
            guide(child as libc::pid_t, &cpus_of(0));
            true
        }
        _ => false,
    }
}

/// The child: system calls alone, since other threads may have held any lock when it was made.
fn visit(cpus: usize) -> ! {
    for cpu in 0..cpus.min(libc::CPU_SETSIZE as usize) {
        let mut set = NO_CPUS;
        // SAFETY: the CPU is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        // Returns on that CPU, or refuses one that this process may not use.
        move_to(0, &set);
    }
    loop {
        // SAFETY: ends this process, without what the program does at its end.
        unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    }
}

/// Waits for the child's end, and makes it pass CPUs that it does not get.
fn guide(child: libc::pid_t, everywhere: &libc::cpu_set_t) {
    let start = Instant::now();
    let (mut since, mut last) = (start, NO_CPUS);
    // SAFETY: the status is not asked for. Only a wait for clones sees a child without a signal.
    while unsafe { libc::waitpid(child, core::ptr::null_mut(), libc::__WALL | libc::WNOHANG) } == 0
    {
        let set = cpus_of(child);
        // SAFETY: compares two sets.
        if !unsafe { libc::CPU_EQUAL(&set, &last) } {
            (since, last) = (Instant::now(), set);
        } else if since.elapsed() > PATIENCE {
            move_to(child, everywhere);
            since = Instant::now();
        }
        if start.elapsed() > LIMIT {
            // SAFETY: the child is not reaped yet, so the number is still its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // SAFETY: as above.
            unsafe { libc::waitpid(child, core::ptr::null_mut(), libc::__WALL) };
            return;
        }
        std::thread::sleep(LOOK);
    }
}

// SAFETY: a set is plain bits.
const NO_CPUS: libc::cpu_set_t = unsafe { core::mem::zeroed() };

/// CPUs on which `process` may run; 0 is the caller.
fn cpus_of(process: libc::pid_t) -> libc::cpu_set_t {
    let mut set = NO_CPUS;
    // SAFETY: the set is as long as it says.
    unsafe { libc::sched_getaffinity(process, size_of::<libc::cpu_set_t>(), &raw mut set) };
    set
}

/// Has `process` run on the CPUs of `set`, as far as it may; 0 is the caller.
fn move_to(process: libc::pid_t, set: &libc::cpu_set_t) {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the set is as long as it says.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, process, size, &raw const *set) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_child_is_gone_afterwards_and_nothing_is_heard_of_it() {
        // The one of other tests has ended then.
        crate::barrier::register();
        assert!(cfg!(miri) || run());
        // SAFETY: asks for any clone of this thread that has ended, without reaping it.
        let mut info = unsafe { core::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WCLONE;
        // SAFETY: `info` is written by the kernel.
        let left = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) };
        assert_eq!(left, -1, "no such child is left");
    }
}
