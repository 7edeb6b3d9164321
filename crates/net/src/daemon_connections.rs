//! Discovery's TCP connections to resolver daemons: connect, exchange frames, reconnect when the
//! resolver says so.

use crate::context::NetContext;
use crate::frame_stream::FrameStream;
use crate::poller::Descriptor;
use crate::telemetry::Telemetry;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_protocol::resolution::{DaemonAction, Resolver};
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_tls::{ByteStream, TlsIdentity};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Buffers of a daemon's socket, in each direction.
const SOCKET_BYTES: usize = 256 << 10;
/// Pause while a daemon does not read.
const BLOCKED_REST: Nanos = 100 * MILLISECOND;

/// Connections to all configured daemons, indexed by their numbers at the resolver.
#[derive(Debug)]
pub(crate) struct DaemonConnections(Vec<Daemon>);

#[derive(Debug)]
struct Daemon {
    address: SocketAddr,
    /// Local address to connect from, if the daemon is reachable from it.
    from: Option<IpAddr>,
    /// TLS of new connections, if they are encrypted.
    tls: Option<Arc<TlsIdentity>>,
    connection: Connection,
}

#[derive(Debug)]
enum Connection {
    Closed,
    Connecting(FrameStream),
    /// Connected, within the handshake of TLS.
    Handshaking(FrameStream),
    Established(FrameStream),
}

impl DaemonConnections {
    pub(crate) fn new(
        addresses: impl IntoIterator<Item = SocketAddr>,
        context: &NetContext,
        resolver: &mut Resolver,
        now: Nanos,
    ) -> Self {
        let daemon_connections = addresses.into_iter().map(|address| {
            resolver.add_daemon(now);
            let from = Some(context.address).filter(|from| {
                // An address of the other family, or the loopback for a daemon elsewhere, cannot
                // connect: the system then chooses one.
                from.is_ipv4() == address.is_ipv4()
                    && from.is_loopback() == address.ip().is_loopback()
            });
            Daemon { address, from, tls: context.tls.clone(), connection: Connection::Closed }
        });
        Self(daemon_connections.collect())
    }

    /// Exchanges frames with all daemons, and tells why a connection fails; returns the number of
    /// frames.
    pub(crate) fn do_work(
        &mut self,
        resolver: &mut Resolver,
        now: Nanos,
        buffer: &mut [u8],
        telemetry: &Telemetry,
    ) -> usize {
        let each = |(number, daemon): (usize, &mut Daemon)| {
            daemon.exchange(number, resolver, now, buffer).unwrap_or_else(|error| {
                telemetry.stream_error(daemon.address.ip(), &error);
                daemon.connection = Connection::Closed;
                // The resolver times the next attempt; this file only carries it out.
                resolver.daemon_disconnected(now, number);
                0
            })
        };
        self.0.iter_mut().enumerate().map(each).sum()
    }

    pub(crate) fn next_deadline(&self, resolver: &Resolver, now: Nanos) -> Nanos {
        let deadline = |(number, daemon): (usize, &Daemon)| {
            let due = resolver.daemon_deadline(number);
            // The frame that is due waits for room in the socket.
            if daemon.is_blocked() { due.max(now.saturating_add(BLOCKED_REST)) } else { due }
        };
        self.0.iter().enumerate().map(deadline).min().unwrap_or(Nanos::MAX)
    }

    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        into.extend(self.0.iter().filter_map(|daemon| match &daemon.connection {
            Connection::Closed => None,
            // A socket becomes writable when its connect has ended, well or badly.
            Connection::Connecting(stream) => Some((stream.descriptor().0, true)),
            Connection::Handshaking(stream) | Connection::Established(stream) => {
                Some(stream.descriptor())
            }
        }));
    }
}

impl Daemon {
    fn connect(&self) -> io::Result<ByteStream> {
        let stream = tcp::connect(self.from, self.address)?;
        let options = TcpOptions {
            send_buffer_bytes: SOCKET_BYTES,
            receive_buffer_bytes: SOCKET_BYTES,
            ..TcpOptions::default()
        };
        tcp::tune(&stream, &options)?;
        match &self.tls {
            None => Ok(ByteStream::plain(stream)),
            Some(tls) => tls.connect(stream, self.address.ip()),
        }
    }

    fn is_blocked(&self) -> bool {
        matches!(&self.connection, Connection::Established(stream) if stream.has_more())
    }

    /// Connects or closes as the resolver says, and exchanges frames.
    ///
    /// # Errors
    /// If the connection has failed, or has to be closed.
    fn exchange(
        &mut self,
        number: usize,
        resolver: &mut Resolver,
        now: Nanos,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        match resolver.next_daemon_action(now, number) {
            Some(DaemonAction::Connect) => {
                self.connection = Connection::Connecting(FrameStream::new(self.connect()?));
            }
            Some(DaemonAction::Close) => self.connection = Connection::Closed,
            None => {}
        }
        // An error by `?` leaves the connection closed, as it has to be.
        self.connection = match std::mem::replace(&mut self.connection, Connection::Closed) {
            Connection::Connecting(stream) if tcp::established(stream.stream().socket())? => {
                Connection::Handshaking(stream)
            }
            connection => connection,
        };
        self.connection = match std::mem::replace(&mut self.connection, Connection::Closed) {
            Connection::Handshaking(mut stream) => {
                if stream.shake_hands(buffer)? {
                    resolver.daemon_connected(now, number);
                    Connection::Established(stream)
                } else {
                    Connection::Handshaking(stream)
                }
            }
            connection => connection,
        };
        match &mut self.connection {
            Connection::Established(stream) => {
                exchange_frames(stream, number, self.address, resolver, now, buffer)
            }
            _ => Ok(0),
        }
    }
}

fn exchange_frames(
    stream: &mut FrameStream,
    number: usize,
    from: SocketAddr,
    resolver: &mut Resolver,
    now: Nanos,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut is_refused = false;
    let received = stream.read(buffer, |frame| {
        is_refused |= resolver.on_daemon_frame(now, number, from, frame).is_err();
        // Frames after a refusal are not read: the daemon's connection ends.
        !is_refused
    })?;
    if is_refused {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(received.unwrap_or(0)
        + stream.write(|buffer| resolver.next_daemon_frame(now, number, buffer))?)
}
