//! Where clients come in.

use crate::Nanos;
use crate::net::poller::Poller;
use lanecast_os::tcp;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;
/// When nothing can be accepted, for want of descriptors say, it is tried again after this.
const ACCEPT_AGAIN: Nanos = 100_000_000;

/// What is spoken there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Frames, each with its length.
    Frames,
    /// The messages of a WebSocket.
    WebSocket,
}

#[derive(Debug)]
struct Listener {
    listener: TcpListener,
    speech: Framing,
    /// Whether the poller waits for guests there.
    is_watched: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    entrances: Vec<Listener>,
    again: Option<Nanos>,
}

impl Listeners {
    /// Listens at one more address.
    pub(crate) fn open(&mut self, at: SocketAddr, speech: Framing) -> io::Result<()> {
        let listener = tcp::listen(at, BACKLOG)?;
        self.entrances.push(Listener { listener, speech, is_watched: false });
        Ok(())
    }

    /// Where guests come in who speak so.
    pub(crate) fn address(&self, speech: Framing) -> Option<io::Result<SocketAddr>> {
        let mut entrances = self.entrances.iter();
        let entrance = entrances.find(|entrance| entrance.speech == speech)?;
        Some(entrance.listener.local_addr())
    }

    /// Whether the poller's number is that of an entrance; other numbers are clients'.
    pub(crate) fn is_one(number: u64) -> bool {
        number > u64::from(u32::MAX) << 1
    }

    /// Makes the poller wait for guests.
    pub(crate) fn watch(&mut self, poller: &Poller) -> io::Result<()> {
        for (at, entrance) in self.entrances.iter_mut().enumerate() {
            if !entrance.is_watched {
                poller.add(&entrance.listener, u64::MAX - at as u64)?;
                entrance.is_watched = true;
            }
        }
        Ok(())
    }

    /// Nobody comes in any more.
    pub(crate) fn close(&mut self, poller: &Poller) {
        for entrance in &self.entrances {
            // What it still knows in spite of this would only make it wake more often.
            drop(poller.remove(&entrance.listener));
        }
        self.entrances.clear();
    }

    /// When those where nothing could be accepted are to be tried again.
    pub(crate) fn again(&self) -> Option<Nanos> {
        self.again
    }

    /// Tries those again where nothing could be accepted, if it is time.
    pub(crate) fn on_time(&mut self, now: Nanos, poller: &Poller) {
        if self.again.is_some_and(|at| at <= now) {
            let again = now.saturating_add(ACCEPT_AGAIN);
            self.again = self.watch(poller).is_err().then_some(again);
        }
    }

    /// The next guest.
    pub(crate) fn next(
        &mut self,
        now: Nanos,
        poller: &Poller,
    ) -> Option<(TcpStream, SocketAddr, Framing)> {
        for entrance in self.entrances.iter_mut().filter(|entrance| entrance.is_watched) {
            loop {
                match entrance.listener.accept() {
                    Ok((stream, from)) => return Some((stream, from, entrance.speech)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    Err(_) => {
                        // Or the poller would report it again at once, for as long as it lasts.
                        if poller.remove(&entrance.listener).is_ok() {
                            entrance.is_watched = false;
                            self.again = Some(now.saturating_add(ACCEPT_AGAIN));
                        }
                        break;
                    }
                }
            }
        }
        None
    }
}
