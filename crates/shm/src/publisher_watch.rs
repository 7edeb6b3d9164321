//! Watch of the publishers of other processes: finds those that have died.
//!
//! Owned by the conductor, used on its thread. The kernel makes the descriptor of a process that
//! ends readable, so that its end is found at once and costs nothing before. Publishers without
//! such a descriptor, as in other PID namespaces, are asked for at intervals.

use crate::remote_publisher::RemotePublisher;
use lanecast_os::epoll::Epoll;
use lanecast_os::event::wait_readable;
use lanecast_os::process_end::ProcessEnd;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Longest interval between two checks of all publishers.
const INTERVAL_MAX: Duration = Duration::from_millis(250);
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The publishers of joined sessions.
#[derive(Debug, Default)]
pub(crate) struct PublisherWatch {
    publishers: Vec<Watched>,
    /// Readable when one of `processes` has ended; `None` before the first, or if the system has
    /// no descriptor for it.
    set: Option<Epoll>,
    /// The ends in the set, by process number.
    processes: HashMap<u32, ProcessEnd>,
}

#[derive(Debug)]
struct Watched {
    publisher: Weak<RemotePublisher>,
    pid: u32,
    /// The set has its process.
    has_descriptor: bool,
}

impl PublisherWatch {
    /// Watches `publisher` for as long as it is in use.
    pub(crate) fn add(&mut self, publisher: &Arc<RemotePublisher>) {
        let pid = publisher.pid();
        let has_descriptor = match self.processes.get(&pid) {
            // The end of one that has ended is not that of a later process with its number.
            Some(end) => wait_readable([end.as_fd()], Some(Duration::ZERO)) == [false],
            None => self.watch_process(publisher),
        };
        // It may have died before, and its number be another process's now. If it has, the next
        // check forgets it.
        publisher.check_alive();
        let publisher = Arc::downgrade(publisher);
        self.publishers.push(Watched { publisher, pid, has_descriptor });
    }

    fn watch_process(&mut self, publisher: &RemotePublisher) -> bool {
        if self.set.is_none() {
            self.set = Epoll::new().ok();
        }
        let (Some(set), Ok(end)) = (&self.set, ProcessEnd::of(publisher.process())) else {
            return false;
        };
        let is_added = set.add(end.as_fd(), u64::from(publisher.pid())).is_ok();
        if is_added {
            self.processes.insert(publisher.pid(), end);
        }
        is_added
    }

    /// The descriptor that is readable when a process has ended.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.set.as_ref().map(Epoll::as_fd)
    }

    /// Longest time between two checks of all publishers, for an end to be found within `liveness`.
    pub(crate) fn interval(&self, liveness: Duration) -> Duration {
        if self.publishers.iter().all(|watched| watched.has_descriptor) {
            return INTERVAL_MAX;
        }
        (liveness / 4).clamp(INTERVAL_MIN, INTERVAL_MAX)
    }

    /// Notes the publishers whose processes have ended by their descriptors, or, if `all`, by any
    /// sign; returns whether there are some.
    pub(crate) fn check(&mut self, all: bool) -> bool {
        let mut ended = Vec::new();
        if let Some(set) = &self.set {
            // If the system refuses, the next check of all finds them.
            let _ = set.wait(Some(Duration::ZERO), &mut ended);
        }
        if ended.is_empty() && !all {
            return false;
        }
        let mut has_dead = false;
        self.publishers.retain(|watched| {
            let Some(publisher) = watched.publisher.upgrade() else { return false };
            let has_ended = watched.has_descriptor && ended.contains(&u64::from(watched.pid));
            if has_ended {
                publisher.note_gone();
            }
            let is_alive = !has_ended && (!all || publisher.check_alive());
            has_dead |= !is_alive;
            is_alive
        });
        self.forget_processes();
        has_dead
    }

    /// Removes the processes without publishers from the set.
    fn forget_processes(&mut self) {
        let Self { publishers, set, processes } = self;
        let is_gone = |pid: &u32| !publishers.iter().any(|it| it.has_descriptor && it.pid == *pid);
        for (_, end) in processes.extract_if(|pid, _| is_gone(pid)) {
            // Not by closing it alone: the copy of a forked child would keep it in the set.
            if let Some(set) = set {
                let _ = set.remove(end.as_fd());
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
