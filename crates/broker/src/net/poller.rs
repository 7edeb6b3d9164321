//! Waits for sockets with epoll(7).

use rustix::event::Timespec;
use rustix::event::epoll;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The most events of one wait.
const EVENTS_MAX: usize = 256;

/// The events of a socket to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
    Both,
    /// Only the end of the connection, reported once.
    Neither,
}

/// An epoll instance; each socket has a token.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    /// Readable, closed or failed.
    pub(crate) to_read: bool,
    pub(crate) to_write: bool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// Registers a socket for reading.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(token), flags(Interest::Read))?;
        Ok(())
    }

    /// Changes the events to wait for.
    pub(crate) fn change(&self, socket: impl AsFd, token: u64, what: Interest) -> io::Result<()> {
        epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(token), flags(what))?;
        Ok(())
    }

    pub(crate) fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.epoll, socket)?;
        Ok(())
    }

    /// Waits for at most `limit`, and appends ready sockets to `ready`.
    pub(crate) fn wait(&self, limit: Option<Duration>, ready: &mut Vec<Ready>) -> io::Result<()> {
        let limit = limit.map(|limit| Timespec {
            // The type of the system has fewer seconds than a Duration.
            tv_sec: limit.as_secs().min(1 << 30) as i64,
            tv_nsec: limit.subsec_nanos().into(),
        });
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let events = match epoll::wait(&self.epoll, &mut room, limit.as_ref()) {
            Ok((events, _)) => events,
            // A signal ends the wait early; the caller decides whether to go on.
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        ready.extend(events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            Ready {
                token: data.u64(),
                // Errors and hang-ups count as readable: the next read reports them.
                to_read: flags.intersects(!epoll::EventFlags::OUT),
                to_write: flags.contains(epoll::EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

fn flags(what: Interest) -> epoll::EventFlags {
    match what {
        Interest::Read => epoll::EventFlags::IN,
        Interest::Write => epoll::EventFlags::OUT,
        Interest::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        // epoll reports errors in any case. Without ONESHOT the end of a paused connection would
        // wake the server again and again, before it may act on it.
        Interest::Neither => epoll::EventFlags::RDHUP | epoll::EventFlags::ONESHOT,
    }
}
