//! One descriptor for all that a store waits for: messages, frames, and the disk.

use lanecast_os::epoll::Epoll;
use lanecast_os::event::{ArmedEvent, wait_readable};
use lanecast_transport::Subscribe;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Sleeps until a subscriber has something, or the disk has written records.
#[derive(Debug)]
pub(crate) struct Wakeup {
    /// The messages of topics, and all the others.
    set: Epoll,
    /// The disk, and the subscribers to frames.
    others: Epoll,
    written: Arc<ArmedEvent>,
    ready: Vec<u64>,
}

impl Wakeup {
    /// `written` is notified when the journal has come further.
    pub(crate) fn new(written: Arc<ArmedEvent>) -> io::Result<Self> {
        let (set, others) = (Epoll::new()?, Epoll::new()?);
        others.add(written.as_fd(), 0)?;
        set.add(others.as_fd(), 0)?;
        Ok(Self { set, others, written, ready: Vec::new() })
    }

    /// Waits for the frames of this subscriber too, until it is dropped.
    pub(crate) fn add(&self, subscriber: &mut impl Subscribe) -> io::Result<()> {
        self.others.add(subscriber.wakeup()?, 0)
    }

    /// Waits for the messages of this subscriber to a topic too, until it is dropped.
    pub(crate) fn add_topic(&self, subscriber: &mut impl Subscribe) -> io::Result<()> {
        self.set.add(subscriber.wakeup()?, 0)
    }

    /// Makes the descriptor readable with the disk's next news, before a last look at those that
    /// are there. Without it the disk's progress costs no system call.
    pub(crate) fn arm(&self) {
        if !self.written.is_armed() {
            self.written.clear_and_arm();
        }
    }

    /// Sleeps until there is something to do, at most `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) {
        // A set that cannot be waited on (a limit of the system) must not become a busy loop.
        if self.set.wait(Some(limit), &mut self.ready).is_err() {
            std::thread::sleep(limit.min(Duration::from_millis(1)));
        }
    }

    /// Sleeps until there is something to do besides messages of topics, at most `limit`, which is
    /// short.
    pub(crate) fn wait_for_others(&self, limit: Duration) {
        wait_readable([self.others.as_fd()], Some(limit));
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::event::EventFd;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn messages_of_topics_end_no_wait_for_the_others() {
        let written = Arc::new(ArmedEvent::new().expect("a descriptor"));
        let mut wakeup = Wakeup::new(Arc::clone(&written)).expect("descriptors");
        let [topic, frames] = [(); 2].map(|()| EventFd::new(false).expect("a descriptor"));
        wakeup.set.add(topic.as_fd(), 0).expect("added");
        wakeup.others.add(frames.as_fd(), 0).expect("added");
        let is_ready = |wakeup: &Wakeup| {
            let sets = [wakeup.set.as_fd(), wakeup.others.as_fd()];
            wait_readable(sets, Some(Duration::ZERO))
        };
        assert_eq!(is_ready(&wakeup), [false, false]);
        topic.signal();
        wakeup.wait(LIMIT);
        assert_eq!(is_ready(&wakeup), [true, false]);
        topic.clear();
        frames.signal();
        wakeup.wait_for_others(LIMIT);
        assert_eq!(is_ready(&wakeup), [true, true]);
        frames.clear();
        wakeup.arm();
        assert_eq!(is_ready(&wakeup), [false, false]);
        written.notify();
        wakeup.wait_for_others(LIMIT);
        assert_eq!(is_ready(&wakeup), [true, true]);
    }
}
