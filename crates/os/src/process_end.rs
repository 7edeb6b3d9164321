//! The end of another process as a descriptor: pidfd_open(2).

use crate::checked;
use crate::process::Identity;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// A descriptor that is readable from the end of a process on: of all its threads, collected by its
/// parent or not.
///
/// ```
/// use lanecast_os::{event::wait_readable, process::Identity, process_end::ProcessEnd};
/// use std::{os::fd::AsFd, process::Command};
/// let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn()?;
/// let end = ProcessEnd::of(&Identity { pid: child.id(), ..Identity::own() })?;
/// child.kill()?;
/// while !wait_readable([end.as_fd()], None)[0] {}
/// child.wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ProcessEnd(OwnedFd);

impl ProcessEnd {
    /// The end of `process`. If that has ended already, another process can have its number: ask
    /// for its life once more after this.
    ///
    /// # Errors
    /// If there is no process with the number, if it is a number of another namespace, if the
    /// process has no free descriptor, or if the system has no such descriptors.
    pub fn of(process: &Identity) -> io::Result<Self> {
        if !process.is_of_own_namespace() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let pid = libc::pid_t::try_from(process.pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        let no_flags: libc::c_uint = 0;
        // SAFETY: pidfd_open takes two numbers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, no_flags) };
        let fd = checked(i32::try_from(fd).unwrap_or(-1))?;
        // SAFETY: the system has given this new descriptor to us alone; it is closed by exec(2).
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

impl AsFd for ProcessEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::event::wait_readable;
    use crate::refusal::without_call;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    fn is_over(end: &ProcessEnd, limit: Duration) -> bool {
        wait_readable([end.as_fd()], Some(limit)) == [true]
    }

    #[test]
    fn the_descriptor_is_readable_from_the_end_of_the_process_on() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Identity { pid: child.id(), ..Identity::own() };
        let end = ProcessEnd::of(&process).unwrap();
        assert!(!is_over(&end, Duration::ZERO));
        child.kill().unwrap();
        assert!(is_over(&end, Duration::from_secs(60)) && process.is_surely_gone());
        child.wait().unwrap();
        assert!(is_over(&end, Duration::ZERO), "it stays readable");
        assert!(ProcessEnd::of(&process).is_err());
    }

    #[test]
    fn processes_of_other_namespaces_and_older_systems_are_not_watched() {
        let own = Identity::own();
        let elsewhere = Identity { namespace: own.namespace + 1, ..own };
        assert!(ProcessEnd::of(&elsewhere).is_err() && ProcessEnd::of(&own).is_ok());
        without_call(libc::SYS_pidfd_open, move || assert!(ProcessEnd::of(&own).is_err()));
    }
}
