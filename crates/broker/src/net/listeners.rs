//! The listening sockets: TCP and, if configured, WebSocket. The server owns them, and polls them
//! together with the connections.

use crate::net::poller::Poller;
use crate::time::Nanos;
use lanecast_os::tcp;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Connections that the system queues until they are accepted.
const BACKLOG: u32 = 1_024;
/// Pause after a failed accept, such as one for want of file descriptors.
const RETRY_NS: Nanos = 100_000_000;
/// Poller token of all listeners, above those of clients.
pub(crate) const LISTENER_EVENT: u64 = u64::MAX;

/// The framing of commands on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Frames with a length prefix.
    LengthPrefixed,
    /// Messages of a WebSocket.
    WebSocket,
}

#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    framing: Framing,
    /// Whether the poller reports new connections.
    is_polled: bool,
}

/// All listening sockets.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    listeners: Vec<Listener>,
    retry_at: Option<Nanos>,
}

impl Listeners {
    /// Listens on one more address.
    pub(crate) fn open(&mut self, address: SocketAddr, framing: Framing) -> io::Result<()> {
        let socket = tcp::listen(address, BACKLOG)?;
        self.listeners.push(Listener { socket, framing, is_polled: false });
        Ok(())
    }

    /// The address of the listener for a framing.
    pub(crate) fn address(&self, framing: Framing) -> Option<io::Result<SocketAddr>> {
        let mut listeners = self.listeners.iter();
        let listener = listeners.find(|listener| listener.framing == framing)?;
        Some(listener.socket.local_addr())
    }

    /// Registers listeners that are not polled.
    pub(crate) fn register(&mut self, poller: &Poller) -> io::Result<()> {
        for listener in &mut self.listeners {
            if !listener.is_polled {
                poller.add(&listener.socket, LISTENER_EVENT)?;
                listener.is_polled = true;
            }
        }
        Ok(())
    }

    /// Stops listening.
    pub(crate) fn close(&mut self, poller: &Poller) {
        for listener in &self.listeners {
            // A listener that stays registered would only wake the poller more often.
            drop(poller.remove(&listener.socket));
        }
        // Closes the sockets: the system refuses new connections from now on.
        self.listeners.clear();
    }

    /// When to poll listeners again whose accept failed.
    pub(crate) fn retry_at(&self) -> Option<Nanos> {
        self.retry_at
    }

    /// Polls listeners again whose accept failed, once the pause is over.
    pub(crate) fn retry(&mut self, now: Nanos, poller: &Poller) {
        if self.retry_at.is_some_and(|at| at <= now) {
            let retry_at = now.saturating_add(RETRY_NS);
            self.retry_at = self.register(poller).is_err().then_some(retry_at);
        }
    }

    /// Accepts the next connection.
    pub(crate) fn accept(
        &mut self,
        now: Nanos,
        poller: &Poller,
    ) -> Option<(TcpStream, SocketAddr, Framing)> {
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            while listener.is_polled {
                match listener.socket.accept() {
                    Ok((stream, peer)) => {
                        let framing = listener.framing;
                        // The next one's turn: a flood of connections on one must not hide it.
                        self.listeners.rotate_left(index + 1);
                        return Some((stream, peer, framing));
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The peer hung up while it was queued.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    Err(_) => {
                        // The connection stays queued, so the poller would report it at once again.
                        if poller.remove(&listener.socket).is_ok() {
                            listener.is_polled = false;
                            self.retry_at = Some(now.saturating_add(RETRY_NS));
                        }
                        break;
                    }
                }
            }
        }
        None
    }
}
