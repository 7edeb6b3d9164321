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

/// A CPU for which the child waits longer is busy: the child passes it over, and tries again once,
/// at the end.
const PATIENCE: Duration = Duration::from_millis(20);
/// Longest time of the whole.
pub(crate) const LIMIT: Duration = Duration::from_millis(500);
/// Interval of looks where the child is.
const LOOK: Duration = Duration::from_micros(50);

/// Has a child process run on each CPU that this process may use; returns whether it has run on all
/// of them within `limit`. If not, barriers may leave a CPU out.
pub(crate) fn run(limit: Duration) -> bool {
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
        child if child > 0 => guide(child as libc::pid_t, &cpus_of(0), limit),
        _ => false,
    }
}

/// The child: system calls alone, since other threads may have held any lock when it was made.
fn visit(cpus: usize) -> ! {
    come_first();
    let mut passed_over = NO_CPUS;
    for cpu in 0..cpus.min(libc::CPU_SETSIZE as usize) {
        if !is_visited(cpu) {
            // SAFETY: the CPU is within the set.
            unsafe { libc::CPU_SET(cpu, &mut passed_over) };
        }
    }
    let mut status = VISITED_ALL;
    for cpu in 0..libc::CPU_SETSIZE as usize {
        // SAFETY: the CPU is within the set.
        if unsafe { libc::CPU_ISSET(cpu, &passed_over) } && !is_visited(cpu) {
            status = PASSED_OVER;
        }
    }
    loop {
        // SAFETY: ends this process, without what the program does at its end.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// Exit statuses of the child.
const VISITED_ALL: libc::c_int = 0;
const PASSED_OVER: libc::c_int = 1;

/// Moves the child before all threads that spin, if it may: it needs some microseconds of each CPU.
fn come_first() {
    let policy = libc::SCHED_FIFO;
    // SAFETY: asks for a number.
    let first = unsafe { libc::syscall(libc::SYS_sched_get_priority_max, policy) };
    let priority = first as libc::c_int;
    // SAFETY: the parameter of this policy is its priority alone.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
}

/// Runs on `cpu`; false if the parent has had it go on without that. A CPU that this process may
/// not use counts as visited.
fn is_visited(cpu: usize) -> bool {
    let mut set = NO_CPUS;
    // SAFETY: the CPU is within the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // Returns on that CPU, unless the parent moves this process elsewhere.
    if !move_to(0, &set) {
        return std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    }
    let (mut here, nothing) = (0_u32, core::ptr::null_mut::<libc::c_void>());
    // SAFETY: the number is written there.
    unsafe { libc::syscall(libc::SYS_getcpu, &raw mut here, nothing, nothing) };
    here as usize == cpu
}

/// Waits for the child's end, and makes it pass CPUs that it does not get; returns whether it has
/// visited all.
fn guide(child: libc::pid_t, everywhere: &libc::cpu_set_t, limit: Duration) -> bool {
    let start = Instant::now();
    let (mut since, mut last) = (start, NO_CPUS);
    while start.elapsed() < limit {
        let mut status = 0;
        let options = libc::__WALL | libc::WNOHANG;
        // SAFETY: the status is written there. Only a wait for clones sees a child without a
        // signal.
        let ended = unsafe { libc::waitpid(child, &raw mut status, options) };
        if ended != 0 {
            let is_exit = ended == child && libc::WIFEXITED(status);
            return is_exit && libc::WEXITSTATUS(status) == VISITED_ALL;
        }
        let set = cpus_of(child);
        // SAFETY: compares two sets.
        if !unsafe { libc::CPU_EQUAL(&set, &last) } {
            (since, last) = (Instant::now(), set);
        } else if since.elapsed() > PATIENCE {
            move_to(child, everywhere);
            since = Instant::now();
        }
        std::thread::sleep(LOOK);
    }
    // SAFETY: the child is not reaped yet, so the number is still its own.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: as above.
    unsafe { libc::waitpid(child, core::ptr::null_mut(), libc::__WALL) };
    false
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

/// Has `process` run on the CPUs of `set`, as far as it may; 0 is the caller. Returns whether it
/// could.
fn move_to(process: libc::pid_t, set: &libc::cpu_set_t) -> bool {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the set is as long as it says.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, process, size, &raw const *set) == 0 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_child_is_gone_afterwards_and_nothing_is_heard_of_it() {
        // The one of other tests has ended then.
        crate::barrier::register();
        let _ = run(LIMIT);
        check_none_left();
        assert!(!run(Duration::ZERO), "no CPU was visited");
        check_none_left();
    }

    fn check_none_left() {
        // SAFETY: asks for any clone of this thread that has ended, without reaping it.
        let mut info = unsafe { core::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WCLONE;
        // SAFETY: `info` is written by the kernel.
        let left = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) };
        assert_eq!(left, -1, "no such child is left");
    }
}
