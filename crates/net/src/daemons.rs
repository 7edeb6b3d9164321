//! A resolver's connections to daemons.

use crate::frame_stream::FrameStream;
use crate::place::Place;
use crate::presence::Descriptor;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_protocol::resolution::{DaemonAction, Resolver};
use lanecast_protocol::{MILLISECOND, Nanos};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

/// What the system may hold for a daemon, each way, in bytes.
const SOCKET_BYTES: usize = 256 << 10;
/// The pause between two looks while a daemon does not read.
const BLOCKED_REST: Nanos = 100 * MILLISECOND;

/// The daemons that the settings name, in the order of their numbers at the resolver.
#[derive(Debug)]
pub(crate) struct Daemons(Vec<Daemon>);

#[derive(Debug)]
struct Daemon {
    address: SocketAddr,
    /// The interface to connect from, where that leads there.
    from: Option<IpAddr>,
    link: Link,
}

#[derive(Debug)]
enum Link {
    Down,
    Connecting(FrameStream),
    Up(FrameStream),
}

impl Daemons {
    pub(crate) fn new(
        addresses: impl IntoIterator<Item = SocketAddr>,
        place: &Place,
        resolver: &mut Resolver,
        now: Nanos,
    ) -> Self {
        let daemons = addresses.into_iter().map(|address| {
            resolver.add_daemon(now);
            let from = Some(place.address).filter(|from| {
                from.is_ipv4() == address.is_ipv4()
                    && from.is_loopback() == address.ip().is_loopback()
            });
            Daemon { address, from, link: Link::Down }
        });
        Self(daemons.collect())
    }

    /// One turn; returns how many frames came and went.
    pub(crate) fn turn(&mut self, resolver: &mut Resolver, now: Nanos, buffer: &mut [u8]) -> usize {
        let each = |(number, daemon): (usize, &mut Daemon)| {
            daemon.turn(number, resolver, now, buffer).unwrap_or_else(|_| {
                daemon.link = Link::Down;
                resolver.daemon_disconnected(now, number);
                0
            })
        };
        self.0.iter_mut().enumerate().map(each).sum()
    }

    pub(crate) fn next_deadline(&self, resolver: &Resolver, now: Nanos) -> Nanos {
        let deadline = |(number, daemon): (usize, &Daemon)| {
            let due = resolver.daemon_deadline(number);
            // What is due cannot be said yet: room is waited for.
            if daemon.is_blocked() { due.max(now.saturating_add(BLOCKED_REST)) } else { due }
        };
        self.0.iter().enumerate().map(deadline).min().unwrap_or(Nanos::MAX)
    }

    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        into.extend(self.0.iter().filter_map(|daemon| match &daemon.link {
            Link::Down => None,
            Link::Connecting(stream) => Some((stream.descriptor().0, true)),
            Link::Up(stream) => Some(stream.descriptor()),
        }));
    }
}

impl Daemon {
    fn connect(&self) -> io::Result<TcpStream> {
        let stream = tcp::connect(self.from, self.address)?;
        let options = TcpOptions {
            send_buffer_bytes: SOCKET_BYTES,
            receive_buffer_bytes: SOCKET_BYTES,
            ..TcpOptions::default()
        };
        tcp::tune(&stream, &options)?;
        Ok(stream)
    }

    fn is_blocked(&self) -> bool {
        matches!(&self.link, Link::Up(stream) if stream.has_more())
    }

    /// # Errors
    /// If the connection has failed, or has to be closed.
    fn turn(
        &mut self,
        number: usize,
        resolver: &mut Resolver,
        now: Nanos,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        match resolver.next_daemon_action(now, number) {
            Some(DaemonAction::Connect) => {
                self.link = Link::Connecting(FrameStream::new(self.connect()?));
            }
            Some(DaemonAction::Close) => self.link = Link::Down,
            None => {}
        }
        self.link = match std::mem::replace(&mut self.link, Link::Down) {
            Link::Connecting(stream) if tcp::established(stream.stream())? => {
                resolver.daemon_connected(now, number);
                Link::Up(stream)
            }
            link => link,
        };
        match &mut self.link {
            Link::Up(stream) => talk(stream, number, self.address, resolver, now, buffer),
            _ => Ok(0),
        }
    }
}

fn talk(
    stream: &mut FrameStream,
    number: usize,
    from: SocketAddr,
    resolver: &mut Resolver,
    now: Nanos,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut refused = false;
    let heard = stream.read(buffer, |frame| {
        refused |= resolver.on_daemon_frame(now, number, from, frame).is_err();
        !refused
    })?;
    if refused {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(heard + stream.write(|buffer| resolver.next_daemon_frame(now, number, buffer))?)
}
