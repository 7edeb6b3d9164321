//! Sleeping until a directory changes: inotify(7), and a bell to be called away.

use crate::checked;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Ends a [`DirectoryWatch::wait`] from another thread.
#[derive(Clone, Debug)]
pub struct Bell(Arc<File>);

impl Bell {
    fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Self(Arc::new(unsafe { File::from_raw_fd(fd) })))
    }

    /// Ends the running wait, or the next one.
    pub fn ring(&self) {
        // Any value but zero rings; a full counter means that it has been rung already.
        let _ = io::Write::write(&mut &*self.0, &1u64.to_le_bytes());
    }
}

/// Watches a directory for files that appear, change their attributes or go.
#[derive(Debug)]
pub struct DirectoryWatch {
    events: File,
    bell: Bell,
}

impl DirectoryWatch {
    /// Starts watching.
    ///
    /// # Errors
    /// If the directory is missing or the system has no more watches to give.
    pub fn new(directory: &Path) -> io::Result<Self> {
        // SAFETY: inotify_init1 takes no pointers.
        let fd = checked(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
        // SAFETY: a new descriptor that nobody else owns.
        let events = unsafe { File::from_raw_fd(fd) };
        let path = CString::new(directory.as_os_str().as_bytes())?;
        let wanted = libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_ATTRIB | libc::IN_DELETE;
        // SAFETY: `path` is a live, terminated string.
        checked(unsafe { libc::inotify_add_watch(events.as_raw_fd(), path.as_ptr(), wanted) })?;
        Ok(Self { events, bell: Bell::new()? })
    }

    /// A bell that ends a wait.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Sleeps until something changes, the bell rings or `limit` has passed; says whether it
    /// was one of the first two.
    pub fn wait(&self, limit: Duration) -> bool {
        let poll = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = [poll(self.events.as_raw_fd()), poll(self.bell.0.as_raw_fd())];
        let limit_ms = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: `fds` is writable and its length is given.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, limit_ms) };
        let mut scrap = [0; 4096];
        let mut woken = (&*self.bell.0).read(&mut scrap[..8]).is_ok();
        while (&self.events).read(&mut scrap).is_ok_and(|read| read > 0) {
            woken = true;
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_new_file_and_the_bell_both_end_the_wait() {
        let path = std::env::temp_dir().join(format!("lanecast-watch-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let watch = DirectoryWatch::new(&path).unwrap();
        assert!(!watch.wait(Duration::ZERO));
        std::fs::write(path.join("x"), "").unwrap();
        assert!(watch.wait(LONG));
        watch.bell().ring();
        assert!(watch.wait(LONG));
        assert!(!watch.wait(Duration::ZERO));
        std::fs::remove_dir_all(path).unwrap();
    }
}
