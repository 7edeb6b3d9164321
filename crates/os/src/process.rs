//! Identity and state of processes.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Identity of a process. Its id alone is reused after its death.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Process id, in the process's own namespace.
    pub pid: u32,
    /// The PID namespace (an inode number).
    pub namespace: u64,
    /// Start time, in clock ticks since boot; 0 if unknown.
    pub start_time: u64,
}

impl Identity {
    /// The calling process.
    pub fn own() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            namespace: own_namespace(),
            start_time: stat("self").map_or(0, |stat| stat.start_time),
        }
    }

    /// Whether the process is known to be of the caller's namespace, where its number names it.
    pub(crate) fn is_of_own_namespace(&self) -> bool {
        self.namespace == own_namespace() && self.namespace != 0 && self.pid != 0
    }

    /// Whether the process has certainly ended. False also means: unknown.
    ///
    /// Only two things prove it: no process has the id, or the one that has it is a zombie. Another
    /// start time proves nothing, because a process in another time namespace sees other times.
    pub fn is_surely_gone(&self) -> bool {
        if !self.is_of_own_namespace() {
            return false;
        }
        !number_in_use(self.pid)
            || stat(self.pid).is_some_and(|stat| stat.state == State::Ended) && has_own_proc()
    }

    /// State of the process; `None` if it is not visible from here.
    pub fn state(&self) -> Option<State> {
        if self.namespace != own_namespace() || !has_own_proc() {
            return None;
        }
        stat(self.pid).filter(|stat| stat.start_time == self.start_time).map(|stat| stat.state)
    }
}

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Running or runnable.
    Running,
    /// Asleep.
    Sleeping,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// A zombie: dead, but not yet reaped by its parent.
    Ended,
}

struct Stat {
    state: State,
    start_time: u64,
}

/// The caller's PID namespace; 0 if unknown. Read each time, since a forked child can be in another
/// one, even under the same process id.
fn own_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Whether `/proc` has the process ids of the caller's namespace. A program in a new namespace that
/// has not mounted its own `/proc` sees those of its parent's, which name other processes.
fn has_own_proc() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| is_in_one_namespace(&status))
}

/// Whether proc(5) `status` has one process id: one for each namespace, from that of `/proc` down
/// to the process's own.
fn is_in_one_namespace(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("NStgid:"));
    ids.is_some_and(|ids| ids.split_ascii_whitespace().count() == 1)
}

/// Whether a process may have the id: only the kernel's own word, and no other refusal of the
/// question, shows that none has.
fn number_in_use(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    // SAFETY: signal 0 only asks whether the process exists.
    let answer = unsafe { libc::kill(pid, 0) };
    answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

fn stat(process: impl std::fmt::Display) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parses proc(5) `stat`: the command in brackets may hold brackets, so fields count from the last.
fn parse_stat(line: &str) -> Option<Stat> {
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = match fields.next()? {
        "R" => State::Running,
        "T" | "t" => State::Stopped,
        "Z" | "X" => State::Ended,
        _ => State::Sleeping,
    };
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    // The state is the first thread's, and others may go on without it.
    let state = if threads > 1 && state == State::Ended { State::Sleeping } else { state };
    Some(Stat { state, start_time })
}

/// The calling process's name, cut to 16 bytes.
pub fn own_name() -> [u8; 16] {
    let mut name = [0; 16];
    let read = fs::read("/proc/self/comm").unwrap_or_default();
    let text = read.trim_ascii_end();
    let len = text.len().min(name.len());
    name[..len].copy_from_slice(&text[..len]);
    name
}

/// The effective user's number.
pub fn own_user() -> u32 {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() }
}

/// Starts a session of this process's own: setsid(2). A freshly started child can; the leader of a
/// shell's job cannot.
///
/// # Errors
/// If the process leads a session or a process group already.
pub fn start_session() -> std::io::Result<()> {
    // SAFETY: setsid has no preconditions.
    crate::checked(unsafe { libc::setsid() }).map(drop)
}

/// Ends this process (SIGTERM) when the thread that started it does.
///
/// # Errors
/// If the system refuses.
pub fn end_with_parent() -> std::io::Result<()> {
    // SAFETY: this option takes a signal's number, and no pointer.
    crate::checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) }).map(drop)
}

/// Has the process that `command` starts end (SIGTERM) when the thread that starts it does, also if
/// that is before the program begins.
pub fn end_child_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        end_with_parent()?;
        // SAFETY: getppid has no preconditions.
        let has_parent = u32::try_from(unsafe { libc::getppid() }) == Ok(parent);
        if has_parent { Ok(()) } else { Err(std::io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    unsafe { command.pre_exec(tie) };
}

/// Whether this process ignores the signal, as SIGHUP after nohup(1).
///
/// # Errors
/// If there is no such signal.
pub fn is_ignored(signal: i32) -> std::io::Result<bool> {
    let mut action = core::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is given, and `action` has room for the one in force.
    crate::checked(unsafe { libc::sigaction(signal, core::ptr::null(), action.as_mut_ptr()) })?;
    // SAFETY: the call has succeeded, and so written it.
    let action = unsafe { action.assume_init() };
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

/// Calls `work` while this thread blocks `signals`: one that comes meanwhile is delivered behind
/// it.
///
/// # Errors
/// That of `work`, or if there is no such signal.
pub fn with_blocked<T>(
    signals: &[i32],
    work: impl FnOnce() -> std::io::Result<T>,
) -> std::io::Result<T> {
    let mut set = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` has room for a set, which the call empties.
    crate::checked(unsafe { libc::sigemptyset(set.as_mut_ptr()) })?;
    for signal in signals {
        // SAFETY: the set was emptied above.
        crate::checked(unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) })?;
    }
    let mut before = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mask = |how, new: *const libc::sigset_t, old: *mut libc::sigset_t| {
        // SAFETY: `new` is a set, and `old` has room for one or is null.
        match unsafe { libc::pthread_sigmask(how, new, old) } {
            0 => Ok(()),
            error => Err(std::io::Error::from_raw_os_error(error)),
        }
    };
    mask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr())?;
    let result = work();
    mask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut())?;
    result
}

/// 64 random bits from getrandom(2).
///
/// # Errors
/// If the system has none, as early in its boot.
pub fn random() -> std::io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: `bytes` is writable for its whole length.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == 8 { Ok(u64::from_le_bytes(bytes)) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_process_is_not_gone_whatever_its_start_time() {
        let own = Identity::own();
        assert!(!own.is_surely_gone());
        assert!(own.state().is_some());
        // As it looks from another time namespace.
        let shifted = Identity { start_time: own.start_time + 1, ..own };
        assert!(!shifted.is_surely_gone(), "a start time proves nothing");
        assert!(shifted.state().is_none());
    }

    #[test]
    fn signals_are_ignored_or_not() {
        // The Rust runtime ignores SIGPIPE, and leaves SIGURG alone.
        assert_eq!(is_ignored(libc::SIGPIPE).ok(), Some(true));
        assert_eq!(is_ignored(libc::SIGURG).ok(), Some(false));
        assert!(is_ignored(-1).is_err());
    }

    #[test]
    fn a_blocked_signal_waits() {
        let is_pending = || {
            let status = std::fs::read_to_string("/proc/thread-self/status")?;
            let line = status.lines().find_map(|line| line.strip_prefix("SigPnd:\t"));
            let mask = line.and_then(|mask| u64::from_str_radix(mask, 16).ok());
            Ok(mask.is_some_and(|mask| mask & 1 << (libc::SIGURG - 1) != 0))
        };
        let was_pending = with_blocked(&[libc::SIGURG], || {
            // SAFETY: sends this thread a signal that does nothing by default.
            crate::checked(unsafe { libc::raise(libc::SIGURG) })?;
            is_pending()
        });
        assert_eq!(was_pending.ok(), Some(true));
        assert_eq!(is_pending().ok(), Some(false));
        assert!(with_blocked(&[-1], || Ok(())).is_err());
    }

    #[test]
    fn a_free_number_is_gone_in_its_own_namespace_only() {
        let own = Identity::own();
        // Linux gives out numbers up to 2^22.
        let free = Identity { pid: 1 << 23, ..own };
        assert!(free.is_surely_gone());
        let elsewhere = Identity { namespace: own.namespace + 1, ..free };
        assert!(!elsewhere.is_surely_gone(), "numbers of another namespace say nothing here");
        assert!(!Identity::default().is_surely_gone());
    }

    extern "C" fn pause_for_ever(_: *mut libc::c_void) -> *mut libc::c_void {
        loop {
            // SAFETY: pause has no preconditions.
            unsafe { libc::pause() };
        }
    }

    /// In a forked child: starts a second thread and ends the first one.
    fn outlive_the_first_thread() -> ! {
        let mut thread: libc::pthread_t = 0;
        let (attributes, argument) = (core::ptr::null(), core::ptr::null_mut());
        // SAFETY: the thread's number is writable, and its function takes no argument.
        unsafe { libc::pthread_create(&raw mut thread, attributes, pause_for_ever, argument) };
        // SAFETY: ends this thread alone, without unwinding or cleaning up.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
        unreachable!("this thread has ended")
    }

    #[test]
    fn a_process_lives_on_without_its_first_thread() {
        // SAFETY: the child calls only what a forked child may.
        let child = unsafe { libc::fork() };
        if child == 0 {
            outlive_the_first_thread();
        }
        assert!(child > 0, "a child");
        let identity = Identity { pid: child as u32, ..Identity::own() };
        let first_thread = || {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.as_bytes()[0]
        };
        let start = std::time::Instant::now();
        while first_thread() != b'Z' && start.elapsed().as_secs() < 20 {
            std::thread::yield_now();
        }
        let (ended, is_gone) = (first_thread() == b'Z', identity.is_surely_gone());
        // SAFETY: the child is this process's own.
        unsafe { libc::kill(child, libc::SIGKILL) };
        while !identity.is_surely_gone() && start.elapsed().as_secs() < 40 {
            std::thread::yield_now();
        }
        let is_gone_uncollected = identity.is_surely_gone();
        // SAFETY: as above; its status is not asked for.
        unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) };
        assert_eq!((ended, is_gone), (true, false), "its other thread lives");
        assert!(is_gone_uncollected && identity.is_surely_gone(), "now it has ended");
    }

    #[test]
    fn a_process_of_which_the_system_tells_nothing_is_not_gone() {
        let own = Identity::own();
        crate::refusal::without_call(libc::SYS_kill, move || {
            assert!(!own.is_surely_gone());
            assert!(!Identity { pid: 1 << 23, ..own }.is_surely_gone());
        });
    }

    /// In a forked child: enters a new namespace, and looks from there at processes outside.
    fn look_from_a_new_namespace() -> i32 {
        let outside = Identity::own();
        // SAFETY: unshare takes no pointers.
        if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
            return REFUSED;
        }
        // SAFETY: the child calls only what a forked child may.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let inside = Identity::own();
            let is_right = !outside.is_surely_gone()
                && inside.namespace != outside.namespace
                && !inside.is_surely_gone()
                && !has_own_proc();
            // SAFETY: ends the child without what the program does at its end.
            unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
        }
        exit_status(child)
    }

    /// Exit status of a child that may not enter a namespace.
    const REFUSED: i32 = 77;

    fn exit_status(child: libc::pid_t) -> i32 {
        let mut status = 0;
        // SAFETY: the status is written there.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        libc::WEXITSTATUS(status) | libc::WTERMSIG(status)
    }

    #[test]
    fn a_process_outside_of_a_new_namespace_is_not_gone() {
        assert!(!Identity::own().is_surely_gone());
        // SAFETY: the child calls only what a forked child may.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let status = look_from_a_new_namespace();
            // SAFETY: ends the child without what the program does at its end.
            unsafe { libc::_exit(status) };
        }
        match exit_status(child) {
            REFUSED => eprintln!("skipped: this user may not make a PID namespace"),
            status => assert_eq!(status, 0),
        }
    }

    #[test]
    fn proc_of_an_outer_namespace_is_recognised() {
        assert!(has_own_proc());
        assert!(is_in_one_namespace("Name:\tx\nNStgid:\t7\nNSpid:\t7\n"));
        assert!(!is_in_one_namespace("Name:\tx\nNStgid:\t4711\t7\nNSpid:\t4711\t7\n"));
        assert!(!is_in_one_namespace("Name:\tx\n"));
    }

    #[test]
    fn a_command_with_brackets_does_not_shift_the_fields() {
        let line = "7 (a) b) T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.state, stat.start_time), (State::Stopped, 4711));
        let zombie =
            |threads| format!("7 (x) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 {threads} 18 1");
        assert_eq!(parse_stat(&zombie(1)).unwrap().state, State::Ended);
        assert_eq!(parse_stat(&zombie(2)).unwrap().state, State::Sleeping);
        assert!(parse_stat("7 (x) R 1").is_none());
    }
}
