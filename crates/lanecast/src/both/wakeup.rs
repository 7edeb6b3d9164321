//! The descriptor of an end over both transports: a set of the descriptors of its two parts.

use lanecast_os::epoll::Epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Readable while the descriptor of either part is.
#[derive(Debug, Default)]
pub(super) struct BothWakeup(Option<Epoll>);

impl BothWakeup {
    /// Whether the program asked for the descriptor.
    pub(super) const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// The descriptor over those of both parts.
    ///
    /// # Errors
    /// If one of the parts has none, or the process has no free descriptor.
    pub(super) fn open(
        &mut self,
        near: io::Result<BorrowedFd<'_>>,
        far: io::Result<BorrowedFd<'_>>,
    ) -> io::Result<BorrowedFd<'_>> {
        let set = match self.0.take() {
            Some(set) => set,
            None => {
                let set = Epoll::new()?;
                set.add(near?, 0)?;
                set.add(far?, 1)?;
                set
            }
        };
        let set: &Epoll = self.0.insert(set);
        Ok(set.as_fd())
    }
}
