//! Asymmetric fences: membarrier(2).
//!
//! After a process has registered, a heavy fence of any process makes all CPUs that run it pass a
//! full barrier. Registration costs the process nothing.

use lanecast_base::sync;
use std::sync::OnceLock;

const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

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
/// If the kernel or a sandbox refuses, light fences stay full fences: slower, but as correct.
pub fn register() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        // A heavy fence is tried too: a process that may register but not fence would sleep
        // through its peers' messages.
        let registered =
            membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) && membarrier(CMD_GLOBAL_EXPEDITED);
        if registered {
            sync::enable_light_fences();
        }
        registered
    })
}

/// Makes every registered process on the host pass a full barrier; returns whether it could.
pub fn everywhere() -> bool {
    membarrier(CMD_GLOBAL_EXPEDITED)
}

/// The rare, expensive half of an asymmetric fence; returns whether it covers light fences of other
/// threads. Without that a sleeper may miss a wake-up, and must not sleep for long.
pub fn heavy_fence() -> bool {
    let mut covered = false;
    sync::heavy_fence(|| covered = everywhere());
    covered
}

#[cfg(all(test, not(loom)))]
mod tests {
    #[test]
    fn registering_twice_says_the_same() {
        assert_eq!(super::register(), super::register());
        if super::register() {
            assert!(super::heavy_fence());
        }
    }
}
