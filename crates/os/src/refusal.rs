//! A system call that the system refuses, as in a container with a strict profile: seccomp(2). For
//! tests.

/// Runs `test` in a thread that the system refuses barriers; skips it, with a word, where it takes
/// no filters.
pub fn without_barriers(test: impl FnOnce() + Send + 'static) {
    without_call(libc::SYS_membarrier, test);
}

/// Runs `test` in a thread whose calls of `call` fail with ENOSYS, and those of its children.
pub(crate) fn without_call(call: libc::c_long, test: impl FnOnce() + Send + 'static) {
    let run = move || {
        if refuse(call) {
            test();
        } else {
            eprintln!("skipped: the system takes no filter of system calls");
        }
    };
    if let Err(panic) = std::thread::spawn(run).join() {
        std::panic::resume_unwind(panic);
    }
}

/// Makes calls of `call` by this thread fail with ENOSYS; returns whether it could.
fn refuse(call: libc::c_long) -> bool {
    let Ok(call) = u32::try_from(call) else { return false };
    let step = |code: u32, skip_if_not: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: skip_if_not,
        k: value,
    };
    // The number of the call is the first field of what the filter sees.
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the option takes numbers alone.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return false;
    }
    // SAFETY: the kernel copies the filter, whose steps live until then.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0 }
}
