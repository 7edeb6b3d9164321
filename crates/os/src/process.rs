//! Who a process is, and whether it is still that one.

use std::fs;
use std::sync::OnceLock;

/// One run of one process: its number alone is used again after its death.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its number, in its own namespace.
    pub pid: u32,
    /// The namespace that the number belongs to (an inode number).
    pub namespace: u64,
    /// When it started, in clock ticks since boot; 0 if the system does not tell.
    pub start_time: u64,
}

impl Identity {
    /// The calling process.
    pub fn own() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            namespace: own_namespace(),
            start_time: stat(pid).map_or(0, |stat| stat.start_time),
        }
    }

    /// Whether this run is surely over. False also means: cannot tell from here.
    pub fn is_surely_gone(&self) -> bool {
        if self.namespace != own_namespace() || self.start_time == 0 {
            return false;
        }
        match stat(self.pid) {
            Some(stat) => stat.start_time != self.start_time || stat.state == State::Ended,
            // Where /proc hides other users' processes, no entry proves nothing.
            None => fs::metadata("/proc/self/stat").is_ok() && !number_in_use(self.pid),
        }
    }

    /// What it is doing; `None` if it cannot be seen from here.
    pub fn state(&self) -> Option<State> {
        if self.namespace != own_namespace() {
            return None;
        }
        stat(self.pid).filter(|stat| stat.start_time == self.start_time).map(|stat| stat.state)
    }
}

/// What a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Running or ready to.
    Running,
    /// Waiting for something.
    Sleeping,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Dead, but not yet collected by its parent.
    Ended,
}

struct Stat {
    state: State,
    start_time: u64,
}

fn own_namespace() -> u64 {
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
    })
}

fn number_in_use(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    // SAFETY: signal 0 only asks whether the process exists.
    let answer = unsafe { libc::kill(pid, 0) };
    answer == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// proc(5): the command in brackets may hold anything, so fields count from its last bracket.
fn parse_stat(line: &str) -> Option<Stat> {
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = match fields.next()? {
        "R" => State::Running,
        "T" | "t" => State::Stopped,
        "Z" | "X" => State::Ended,
        _ => State::Sleeping,
    };
    let start_time = fields.nth(18)?.parse().ok()?;
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

/// Starts a session of this process's own. A process that its parent starts, and that does
/// nothing before, can; one that a shell put at the head of a job cannot.
///
/// # Errors
/// If it leads a session or a group of processes already.
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

/// 64 bits from the system's random source.
///
/// # Errors
/// If the system has none (only very early after its start).
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
    fn this_process_is_not_gone_and_its_like_with_another_start_is() {
        let own = Identity::own();
        assert!(!own.is_surely_gone());
        assert!(own.state().is_some());
        let earlier = Identity { start_time: own.start_time + 1, ..own };
        assert!(earlier.is_surely_gone());
        let elsewhere = Identity { namespace: own.namespace + 1, ..earlier };
        assert!(!elsewhere.is_surely_gone(), "numbers of another namespace say nothing here");
    }

    #[test]
    fn a_command_with_brackets_does_not_shift_the_fields() {
        let line = "7 (a) b) T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.state, stat.start_time), (State::Stopped, 4711));
        assert!(parse_stat("7 (x) R 1").is_none());
    }
}
