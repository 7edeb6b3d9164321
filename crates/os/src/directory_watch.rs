//! Sleeping until a directory changes: inotify(7), and a waker that ends the sleep.

use crate::checked;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Ends a [`DirectoryWatch::wait`] from another thread.
#[derive(Clone, Debug)]
pub struct WatchWaker(Arc<File>);

impl WatchWaker {
    fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: a new descriptor without another owner.
        Ok(Self(Arc::new(unsafe { File::from_raw_fd(fd) })))
    }

    /// Ends the running wait, or the next one.
    pub fn wake(&self) {
        // Any value but zero wakes; a full counter means that it has been woken already.
        let _ = io::Write::write(&mut &*self.0, &1u64.to_le_bytes());
    }
}

/// Watches a directory for files that are created, removed, or change their attributes.
#[derive(Debug)]
pub struct DirectoryWatch {
    events: File,
    waker: WatchWaker,
}

impl DirectoryWatch {
    /// Starts to watch `directory`.
    ///
    /// # Errors
    /// If the directory is missing, or the system has no free watch.
    pub fn new(directory: &Path) -> io::Result<Self> {
        // SAFETY: inotify_init1 takes no pointers.
        let fd = checked(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
        // SAFETY: a new descriptor without another owner.
        let events = unsafe { File::from_raw_fd(fd) };
        let path = CString::new(directory.as_os_str().as_bytes())?;
        let wanted = libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_ATTRIB | libc::IN_DELETE;
        // SAFETY: `path` is a live, terminated string.
        checked(unsafe { libc::inotify_add_watch(events.as_raw_fd(), path.as_ptr(), wanted) })?;
        Ok(Self { events, waker: WatchWaker::new()? })
    }

    /// The waker of this watch.
    pub fn waker(&self) -> WatchWaker {
        self.waker.clone()
    }

    /// Sleeps until the directory changes, the waker is called, or `limit` has passed. Calls
    /// `changed` with the name of each changed file. Returns whether the whole directory has to be
    /// read instead, because the waker was called or changes got lost.
    pub fn wait(&self, limit: Duration, changed: impl FnMut(&OsStr)) -> bool {
        self.wait_beside(None, limit, changed)
    }

    /// As [`wait`](Self::wait); the sleep ends, too, when `other` is readable.
    pub fn wait_beside(
        &self,
        other: Option<BorrowedFd<'_>>,
        limit: Duration,
        mut changed: impl FnMut(&OsStr),
    ) -> bool {
        let poll = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // The system passes over negative numbers.
        let other = other.map_or(-1, |other| other.as_raw_fd());
        let mut fds = [poll(self.events.as_raw_fd()), poll(self.waker.0.as_raw_fd()), poll(other)];
        let limit_ms = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: `fds` is writable and its length is given.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, limit_ms) };
        let mut bytes = [0; 4096];
        let mut all = (&*self.waker.0).read(&mut bytes[..8]).is_ok();
        while let Ok(read @ 1..) = (&self.events).read(&mut bytes) {
            all |= report_names(&bytes[..read], &mut changed);
        }
        all
    }
}

/// Calls `changed` with the names in `events`; returns whether changes got lost.
fn report_names(mut events: &[u8], changed: &mut impl FnMut(&OsStr)) -> bool {
    let mut lost = false;
    while let Some((header, rest)) = events.split_at_checked(size_of::<libc::inotify_event>()) {
        let word = |at: usize| header[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        let (mask, length) = (word(4), word(12) as usize);
        let Some((name, rest)) = rest.split_at_checked(length) else { return true };
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(length);
        if end > 0 {
            changed(OsStr::from_bytes(&name[..end]));
        }
        // The kernel's queue was full, or the directory itself was removed.
        lost |= mask & (libc::IN_Q_OVERFLOW | libc::IN_IGNORED) != 0;
        events = rest;
    }
    lost
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
        let mut names = Vec::new();
        assert!(!watch.wait(Duration::ZERO, |name| names.push(name.to_owned())));
        std::fs::write(path.join("x"), "").unwrap();
        std::fs::write(path.join("a longer name"), "").unwrap();
        assert!(!watch.wait(LONG, |name| names.push(name.to_owned())));
        assert_eq!(names, ["x", "a longer name"], "only these need a look");
        watch.waker().wake();
        assert!(watch.wait(LONG, |_| panic!("nothing has changed")));
        assert!(!watch.wait(Duration::ZERO, |_| panic!("nothing has changed")));
        std::fs::remove_dir_all(&path).unwrap();
        assert!(watch.wait(LONG, |_| {}), "the directory is gone");
    }

    #[test]
    fn changes_that_got_lost_are_told() {
        let event = |mask: u32, name: &[u8]| {
            let words = [0, mask, 0, name.len() as u32].map(u32::to_ne_bytes);
            [words.as_flattened(), name].concat()
        };
        let mut names = Vec::new();
        let kept = [event(libc::IN_CREATE, b"a\0\0\0"), event(libc::IN_ATTRIB, b"bc\0\0")].concat();
        assert!(!report_names(&kept, &mut |name| names.push(name.to_owned())));
        assert_eq!(names, ["a", "bc"]);
        assert!(report_names(&event(libc::IN_Q_OVERFLOW, b""), &mut |_| panic!("no name")));
    }
}
