//! Waiting for sockets: epoll(7).

use rustix::event::Timespec;
use rustix::event::epoll;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The most events that are taken at a time.
const EVENTS_MAX: usize = 256;

/// What is waited for at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
    Both,
    /// Its end only, which is reported once.
    Neither,
}

/// The sockets, each with a number.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// Something can be done with a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) number: u64,
    /// There is something to read, an end or an error.
    pub(crate) to_read: bool,
    pub(crate) to_write: bool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// Waits for `socket` as well.
    pub(crate) fn add(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(number), wanted(Interest::Read))?;
        Ok(())
    }

    /// Waits for something else from now on.
    pub(crate) fn change(&self, socket: impl AsFd, number: u64, what: Interest) -> io::Result<()> {
        epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(number), wanted(what))?;
        Ok(())
    }

    pub(crate) fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.epoll, socket)?;
        Ok(())
    }

    /// Waits, at most `limit`; puts what is ready into `ready`.
    pub(crate) fn wait(&self, limit: Option<Duration>, ready: &mut Vec<Ready>) -> io::Result<()> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs().min(1 << 30) as i64,
            tv_nsec: limit.subsec_nanos().into(),
        });
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let events = match epoll::wait(&self.epoll, &mut room, limit.as_ref()) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        ready.extend(events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            Ready {
                number: data.u64(),
                to_read: flags.intersects(!epoll::EventFlags::OUT),
                to_write: flags.contains(epoll::EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

fn wanted(what: Interest) -> epoll::EventFlags {
    match what {
        Interest::Read => epoll::EventFlags::IN,
        Interest::Write => epoll::EventFlags::OUT,
        Interest::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        // An end is there for good, and errors cannot be left out: reported again and again they
        // would wake a server that has to wait before it can do anything about them.
        Interest::Neither => epoll::EventFlags::RDHUP | epoll::EventFlags::ONESHOT,
    }
}
