//! Asymmetric fences: membarrier(2).
//!
//! After a process has registered, a heavy fence of any process makes all CPUs that run it pass a
//! full barrier. Registration takes a child process for a moment, which visits each CPU.

use crate::cpu_sweep;
use lanecast_base::sync;
use std::sync::OnceLock;

const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const CMD_PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const CMD_REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

fn membarrier(command: libc::c_int) -> bool {
    // Miri does not know the call, and stops instead of returning an error.
    if cfg!(miri) {
        return false;
    }
    // SAFETY: membarrier takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Registers this process, once, so that its light fences are free; returns whether it could.
///
/// If the kernel or a sandbox refuses, or a CPU cannot be visited in time, light fences stay full
/// fences: slower, but as correct.
pub fn register() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        // A heavy fence is tried too: a process that may register but not fence would sleep
        // through its peers' messages.
        let registered = membarrier(CMD_REGISTER_PRIVATE_EXPEDITED)
            && membarrier(CMD_REGISTER_GLOBAL_EXPEDITED)
            && cpu_sweep::run(cpu_sweep::LIMIT)
            && everywhere();
        if registered {
            sync::enable_light_fences();
        }
        registered
    })
}

/// Makes every registered process on the host pass a full barrier; returns whether it could.
pub fn everywhere() -> bool {
    within_process() && membarrier(CMD_GLOBAL_EXPEDITED)
}

/// Makes every thread of this process pass a full barrier; returns whether it could.
fn within_process() -> bool {
    membarrier(CMD_PRIVATE_EXPEDITED)
}

/// The rare, expensive half of an asymmetric fence; returns whether it covers light fences of other
/// threads, of all processes. Without that a sleeper may miss a wake-up, and must not sleep for
/// long.
pub fn heavy_fence() -> bool {
    let mut covered = false;
    sync::heavy_fence(|| covered = everywhere());
    covered
}

/// As [`heavy_fence`], for light fences in threads of this process alone: cheaper, and what mutual
/// exclusion may depend on, since the kernel looks at the threads that run now, not at what its
/// CPUs remember of a registration. False only if the system refuses a barrier after it has granted
/// the registration: without that, light fences are full ones, and need no barrier.
pub fn heavy_fence_within_process() -> bool {
    let mut covered = false;
    sync::heavy_fence(|| covered = within_process());
    covered || !sync::light_fences_enabled()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::affinity;
    use lanecast_base::sync::{AtomicBool, Ordering};
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn registering_twice_says_the_same() {
        assert_eq!(register(), register());
        if register() {
            assert!(heavy_fence() && heavy_fence_within_process());
        }
    }

    /// Set in the process that has not registered yet.
    const FRESH: &str = "TEST_FRESH_PROCESS";

    #[test]
    fn a_cpu_that_ran_the_process_before_it_registered_is_covered() {
        if std::env::var_os(FRESH).is_some() {
            return in_single_thread(is_covered);
        }
        let name = "barrier::tests::a_cpu_that_ran_the_process_before_it_registered_is_covered";
        let mut test = Command::new(std::env::current_exe().unwrap());
        let ended = test.args(["--exact", name]).env(FRESH, "1").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    }

    /// Runs `test` in a child with one thread: the harness has more.
    fn in_single_thread(test: fn()) {
        // SAFETY: this process runs one test, and its other thread only waits for that.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let failed = std::panic::catch_unwind(test).is_err();
            // SAFETY: ends the child, which must not go on in the harness.
            unsafe { libc::_exit(failed.into()) };
        }
        let mut status = 0;
        // SAFETY: the status is written there.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "see the child's words");
    }

    /// Runs on one CPU, registers on another, and interrupts a thread on the first one by barriers.
    fn is_covered() {
        let cpus = affinity::allowed().unwrap();
        let [now, before, ..] = cpus[..] else { return };
        affinity::pin(before).unwrap();
        // So that the CPU leaves the process and comes back to it, before that has registered.
        std::thread::sleep(Duration::from_millis(2));
        affinity::pin(now).unwrap();
        let (registered, is_over) = (register(), AtomicBool::new(false));
        let Some(first) = calls(before).filter(|_| registered) else { return };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                affinity::pin(before).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    core::hint::spin_loop();
                }
            });
            let (start, mut count) = (Instant::now(), 0);
            while count < 1_000 && start.elapsed() < Duration::from_secs(60) {
                (0..100).for_each(|_| assert!(membarrier(CMD_GLOBAL_EXPEDITED)));
                count = calls(before).map_or(0, |calls| calls - first);
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(count >= 1_000, "barriers have reached CPU {before} {count} times");
        });
    }

    /// Function calls by which other CPUs have interrupted one, from proc(5).
    fn calls(cpu: usize) -> Option<u64> {
        let text = std::fs::read_to_string("/proc/interrupts").ok()?;
        let name = format!("CPU{cpu}");
        let column = text.lines().next()?.split_whitespace().position(|title| title == name)?;
        let calls = text.lines().find_map(|line| line.trim_start().strip_prefix("CAL:"))?;
        calls.split_whitespace().nth(column)?.parse().ok()
    }
}
