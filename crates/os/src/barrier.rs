//! Barriers on other processors' behalf: membarrier(2).
//!
//! A process that registers promises nothing and pays nothing; from then on a heavy fence of
//! any process makes all CPUs that run it pass a full barrier.

use lanecast_base::sync;
use std::sync::OnceLock;

const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> bool {
    // Miri knows no such call, and takes it for a mistake instead of refusing it.
    if cfg!(miri) {
        return false;
    }
    // SAFETY: membarrier takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Registers this process, once, so that its light fences are free; says whether it could.
///
/// Where the kernel or a sandbox refuses, light fences stay full fences: slower, as correct.
pub fn register() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        // Sending is tried too: a process that may register but not send would sleep through
        // its peers' messages.
        let registered =
            membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) && membarrier(CMD_GLOBAL_EXPEDITED);
        if registered {
            sync::enable_light_fences();
        }
        registered
    })
}

/// Makes every registered process on the host pass a full barrier; says whether it could.
pub fn everywhere() -> bool {
    membarrier(CMD_GLOBAL_EXPEDITED)
}

/// The rare, expensive half of an asymmetric fence; says whether light fences elsewhere are
/// covered. If not, whoever goes to sleep must not sleep for long.
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
