//! Sleeping until one of many descriptors can be read or written: ppoll(2).

use crate::{socket, timespec};
use core::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Buffer of a [`PollSet`], reused for the next one: no allocation once it is warm.
#[derive(Debug, Default)]
pub struct PollBuffer(Vec<Polled>);

/// One entry, in the layout of `pollfd`, which has no `Debug`.
#[derive(Debug)]
#[repr(C)]
struct Polled {
    fd: i32,
    events: i16,
    revents: i16,
}

const _: () = {
    assert!(size_of::<Polled>() == size_of::<libc::pollfd>());
    assert!(align_of::<Polled>() == align_of::<libc::pollfd>());
};

impl PollBuffer {
    /// Starts an empty set.
    pub fn clear<'fd>(&mut self) -> PollSet<'_, 'fd> {
        self.0.clear();
        PollSet { entries: &mut self.0, descriptors: PhantomData }
    }
}

/// Descriptors to wait for. The set borrows them, so they stay open while it is in use.
///
/// ```
/// use lanecast_os::{event::EventFd, poll::PollBuffer};
/// use std::{os::fd::AsFd, time::Duration};
/// let (event, mut room) = (EventFd::new(true)?, PollBuffer::default());
/// let mut set = room.clear();
/// let index = set.add(event.as_fd(), false);
/// assert_eq!(set.wait(Some(Duration::from_secs(1))), 1);
/// assert!(set.ready(index));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PollSet<'room, 'fd> {
    entries: &'room mut Vec<Polled>,
    descriptors: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> PollSet<'_, 'fd> {
    /// Adds `descriptor`, to wait until it is readable, or also writable if `want_write`; returns
    /// its index.
    pub fn add(&mut self, descriptor: BorrowedFd<'fd>, want_write: bool) -> usize {
        let events = if want_write { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        self.entries.push(Polled { fd: descriptor.as_raw_fd(), events, revents: 0 });
        self.entries.len() - 1
    }

    /// Sleeps until a descriptor is ready or broken, at most `limit`, without end for `None`;
    /// returns the number of such descriptors. May wake early, with none.
    pub fn wait(&mut self, limit: Option<Duration>) -> usize {
        let limit = limit.map(timespec);
        let limit = limit.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let (entries, count) = (self.entries.as_mut_ptr().cast(), self.entries.len());
        let count = count as libc::nfds_t;
        // SAFETY: there are `count` entries in the system's layout, `limit` is null or a live
        // timespec, and no set of signals is given.
        let found = unsafe { libc::ppoll(entries, count, limit, core::ptr::null()) };
        let found = usize::try_from(found);
        if found.is_err() {
            // Interrupted: the entries still hold the results of an earlier wait.
            self.entries.iter_mut().for_each(|entry| entry.revents = 0);
        }
        found.unwrap_or(0)
    }

    /// Whether the descriptor at `index` was ready, or broken, at the last wait.
    ///
    /// # Panics
    /// If there is no such index.
    pub fn ready(&self, index: usize) -> bool {
        self.entries[index].revents != 0
    }
}

/// Whether the other end of `descriptor` has gone: the readers of a pipe, the peer of a connection.
/// Of TCP a peer that has only ended its sending counts as gone: it looks the same.
pub fn is_abandoned(descriptor: BorrowedFd<'_>) -> bool {
    // Broken descriptors are told without being asked for, the end of a TCP peer is not: this side
    // could still send. Of a pair of local sockets it would tell of one that still reads.
    let domain = socket::get(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN);
    let is_internet = domain.is_ok_and(|it| it == libc::AF_INET || it == libc::AF_INET6);
    let events = if is_internet { libc::POLLRDHUP } else { 0 };
    let mut entries = vec![Polled { fd: descriptor.as_raw_fd(), events, revents: 0 }];
    PollSet { entries: &mut entries, descriptors: PhantomData }.wait(Some(Duration::ZERO)) > 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::event::EventFd;
    use std::os::fd::AsFd;

    #[test]
    fn ready_descriptors_are_told_apart() {
        let bells = [true, false, true].map(|ringing| EventFd::new(ringing).unwrap());
        let mut room = PollBuffer::default();
        for _ in 0..2 {
            let mut set = room.clear();
            for (index, bell) in bells.iter().enumerate() {
                assert_eq!(set.add(bell.as_fd(), false), index);
            }
            assert_eq!(set.wait(Some(Duration::from_secs(20))), 2);
            assert_eq!([0, 1, 2].map(|index| set.ready(index)), [true, false, true]);
            bells[2].clear();
            assert_eq!(set.wait(None), 1);
            assert!(!set.ready(2));
            bells[2].signal();
        }
        assert_eq!(room.clear().wait(Some(Duration::from_millis(1))), 0, "only time passes");
    }

    #[test]
    fn a_pipe_without_readers_is_abandoned() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(!is_abandoned(writer.as_fd()));
        drop(reader);
        assert!(is_abandoned(writer.as_fd()));
        // Something to read, and room to write, are no reasons.
        let bell = EventFd::new(true).unwrap();
        assert!(!is_abandoned(bell.as_fd()));
        assert!(!is_abandoned(std::fs::File::open("/dev/null").unwrap().as_fd()));
    }

    #[test]
    fn a_connection_without_its_peer_is_abandoned() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut own, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut &peer, b"unread").unwrap();
        own.peek(&mut [0]).unwrap();
        assert!(!is_abandoned(own.as_fd()), "something to read is no reason");
        drop(peer);
        // The end comes over the loopback by and by: a read behind it returns nothing.
        std::io::copy(&mut own, &mut std::io::sink()).unwrap();
        assert!(is_abandoned(own.as_fd()));

        let (own, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!is_abandoned(own.as_fd()), "it still reads");
        drop(peer);
        assert!(is_abandoned(own.as_fd()));
    }

    #[test]
    fn writing_is_waited_for_only_if_wanted() {
        let bell = EventFd::new(false).unwrap();
        let mut room = PollBuffer::default();
        for want_write in [false, true] {
            let mut set = room.clear();
            set.add(bell.as_fd(), want_write);
            assert_eq!(set.wait(Some(Duration::ZERO)), usize::from(want_write));
            assert_eq!(set.ready(0), want_write);
        }
    }
}
