//! Named pipes by which publishers of other processes make a subscriber's descriptor readable.
//!
//! A descriptor cannot wait on a futex word, and an eventfd has no name by which another process
//! could open it. So a subscriber with a descriptor makes a pipe in the domain's directory, and
//! shows its number in its slots; a publisher that wakes such a slot writes to the pipe. If a pipe
//! cannot be made or opened, the publisher wakes by the slot's word, on which the subscriber's
//! [wake-up thread](crate::wakeup_thread) sleeps.
//!
//! A subscriber makes its pipe on its own thread; publishers open pipes on theirs, when they wake a
//! slot with that pipe for the first time.

use lanecast_os::event::EventFd;
use lanecast_os::process::random;
use lanecast_os::{LockByte, make_pipe, open_pipe};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Extension of a pipe's name.
const PIPE: &str = "pipe";
/// Extension until the pipe is locked. Its removal then makes its subscriber begin anew.
const UNFINISHED_PIPE: &str = "newpipe";
/// Attempts to make a pipe; each fails only if another process cleans up at the same instant.
const ATTEMPTS: usize = 16;

/// Path of the pipe with this number.
fn pipe_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016x}.{PIPE}"))
}

/// Whether the file has the name of a pipe, finished or not.
pub(crate) fn is_pipe(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == PIPE || kind == UNFINISHED_PIPE)
}

/// The pipe of a subscriber of this process. It has its name until it is dropped.
#[derive(Debug)]
pub(crate) struct WakePipe {
    number: u64,
    path: PathBuf,
    /// Proves that the subscriber lives.
    lock: LockByte,
}

impl WakePipe {
    /// Makes a pipe in `directory`.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn make(directory: &Path, mode: u32) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let number = random()?.max(1);
            let path = pipe_path(directory, number);
            if let Some(lock) = make_locked(&path, mode)? {
                return Ok(Self { number, path, lock });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// The number by which publishers find it.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The event that a write to the pipe signals.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub(crate) fn event(&self) -> io::Result<EventFd> {
        self.lock.file().try_clone().map(EventFd::over_pipe)
    }
}

impl Drop for WakePipe {
    fn drop(&mut self) {
        // If that fails, the next process to open the domain tries again.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Makes the pipe `path`, which is locked when it gets that name; `None` if it was taken for the
/// remains of a dead subscriber before.
fn make_locked(path: &Path, mode: u32) -> io::Result<Option<LockByte>> {
    let unfinished = path.with_extension(UNFINISHED_PIPE);
    let make = || -> io::Result<_> {
        let Ok(lock) = LockByte::try_take(make_pipe(&unfinished, mode)?, 0)? else {
            return Ok(None);
        };
        std::fs::rename(&unfinished, path)?;
        Ok(Some(lock))
    };
    match make() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let _ = std::fs::remove_file(&unfinished);
            Err(error)
        }
        made => made,
    }
}

/// Pipes of other processes' subscribers that publishers of a domain handle have opened: one
/// descriptor for each, however many sessions the subscriber has joined.
#[derive(Debug)]
pub(crate) struct OpenPipes {
    directory: PathBuf,
    pipes: Mutex<HashMap<u64, Weak<EventFd>>>,
}

impl OpenPipes {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), pipes: Mutex::default() }
    }

    /// The pipe with this number, opened now unless it is open.
    fn get(&self, number: u64) -> io::Result<Arc<EventFd>> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = pipes.get(&number).and_then(Weak::upgrade) {
            return Ok(event);
        }
        pipes.retain(|_, event| event.strong_count() > 0);
        let pipe = open_pipe(&pipe_path(&self.directory, number))?;
        let event = Arc::new(EventFd::over_pipe(pipe));
        pipes.insert(number, Arc::downgrade(&event));
        Ok(event)
    }
}

/// Pipes of a session's slots, as its publisher has opened them.
#[derive(Debug)]
pub(crate) struct SlotPipes {
    opened: Arc<OpenPipes>,
    slots: Mutex<HashMap<usize, (u64, Arc<EventFd>)>>,
}

impl SlotPipes {
    pub(crate) fn new(opened: Arc<OpenPipes>) -> Self {
        Self { opened, slots: Mutex::default() }
    }

    /// Makes the descriptor of the subscriber in slot `index`, with this pipe, readable; returns
    /// whether that was possible. Number 0 is no pipe. `has_owner` tells whether a slot has a
    /// subscriber.
    pub(crate) fn signal(
        &self,
        index: usize,
        number: u64,
        has_owner: impl Fn(usize) -> bool,
    ) -> bool {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, event)) = slots.get(&index)
            && *known == number
        {
            event.signal();
            return true;
        }
        // The pipe of the slot's last owner, and those of others that have left: each holds a
        // descriptor.
        slots.retain(|&slot, _| slot != index && has_owner(slot));
        if number == 0 {
            return false;
        }
        let Ok(event) = self.opened.get(number) else { return false };
        event.signal();
        slots.insert(index, (number, event));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::event::wait_readable;
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn is_readable(event: &EventFd) -> bool {
        wait_readable([event.as_fd()], Some(Duration::ZERO))[0]
    }

    #[test]
    fn a_pipe_is_signalled_through_its_number_until_its_subscriber_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = WakePipe::make(directory.path(), 0o600).unwrap();
        let (number, event) = (pipe.number(), pipe.event().unwrap());
        let slots = SlotPipes::new(Arc::new(OpenPipes::new(directory.path())));
        assert!(!is_readable(&event));
        for _ in 0..3 {
            assert!(slots.signal(5, number, |_| true));
        }
        assert!(is_readable(&event) && event.clear() && !event.clear());
        assert!(!is_readable(&event), "one clear takes all signals");
        drop((pipe, event));
        // The publisher has its own end: a write raises no signal, and finds nothing wrong.
        assert!(slots.signal(5, number, |_| true));
        assert!(!slots.signal(4, number.wrapping_add(1), |_| true), "no such pipe");
        assert!(!slots.signal(5, number.wrapping_add(1), |_| true), "no such pipe");
        assert!(
            !slots.signal(5, number, |_| true),
            "the name is gone, and the slot's end was closed"
        );
    }

    #[test]
    fn a_full_pipe_loses_no_wake_up_and_holds_no_publisher() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = WakePipe::make(directory.path(), 0o600).unwrap();
        let slots = SlotPipes::new(Arc::new(OpenPipes::new(directory.path())));
        for _ in 0..20_000 {
            assert!(slots.signal(0, pipe.number(), |_| true));
        }
        let event = pipe.event().unwrap();
        assert!(is_readable(&event) && event.clear());
        assert!(!is_readable(&event));
    }

    #[test]
    fn pipes_of_subscribers_that_have_left_are_closed() {
        let directory = tempfile::tempdir().unwrap();
        let slots = SlotPipes::new(Arc::new(OpenPipes::new(directory.path())));
        let open = || slots.slots.lock().unwrap().len();
        let pipes = [(); 3].map(|()| WakePipe::make(directory.path(), 0o600).unwrap());
        for (index, pipe) in pipes.iter().enumerate() {
            assert!(slots.signal(index, pipe.number(), |_| true));
        }
        assert_eq!(open(), 3);
        assert!(!slots.signal(1, 0, |_| true), "its next owner has none");
        assert_eq!(open(), 2);
        assert!(slots.signal(3, pipes[1].number(), |index| index != 0));
        assert_eq!(open(), 2, "the owner of slot 0 has left");
    }

    #[test]
    fn sessions_share_the_descriptor_of_a_pipe() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = WakePipe::make(directory.path(), 0o600).unwrap();
        let opened = Arc::new(OpenPipes::new(directory.path()));
        let event = opened.get(pipe.number()).unwrap();
        assert!(Arc::ptr_eq(&event, &opened.get(pipe.number()).unwrap()));
        drop(event);
        let other = WakePipe::make(directory.path(), 0o600).unwrap();
        let _event = opened.get(other.number()).unwrap();
        assert_eq!(opened.pipes.lock().unwrap().len(), 1, "closed pipes are forgotten");
    }

    #[test]
    fn only_named_pipes_are_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let slots = SlotPipes::new(Arc::new(OpenPipes::new(directory.path())));
        let (file, target) = (pipe_path(directory.path(), 1), pipe_path(directory.path(), 2));
        std::fs::write(&file, b"kept").unwrap();
        assert!(!slots.signal(0, 1, |_| true));
        assert_eq!(std::fs::read(&file).unwrap(), b"kept");
        let real = WakePipe::make(directory.path(), 0o600).unwrap();
        std::os::unix::fs::symlink(pipe_path(directory.path(), real.number()), target).unwrap();
        assert!(!slots.signal(0, 2, |_| true), "links are not followed");
    }
}
