//! UDP sockets as all raw peers make them.

use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::place::Place;

/// Requested socket buffer of a receiver and of a sender.
const BUFFER: usize = 16 << 20;
/// An end that sleeps looks so often whether it should go on.
pub const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// One socket for one direction each; with two unicast hosts both are the same.
#[derive(Debug)]
pub struct Pair {
    /// Connected to where messages go.
    pub out: UdpSocket,
    /// Bound to where they come from.
    pub inward: UdpSocket,
}

impl Pair {
    /// Opens a socket to one other host.
    pub fn unicast(place: &Place, sleeps: bool) -> Result<Self> {
        let (waiting, beginning) = (place.waiting()?, place.beginning()?);
        let begins = place.role.begins();
        let (own, other) = if begins { (beginning, waiting) } else { (waiting, beginning) };
        let out = bound(own, sleeps)?;
        out.connect(other)?;
        Ok(Self { inward: out.try_clone()?, out })
    }

    /// Opens a socket to a group and from another one.
    pub fn multicast(place: &Place, sleeps: bool) -> Result<Self> {
        let (group, port) = place.group(true);
        let inward = bound((group, port).into(), sleeps)?;
        inward.join_multicast_v4(&group, &place.local)?;
        let out = bound((place.local, 0).into(), sleeps)?;
        let options = socket2::SockRef::from(&out);
        options.set_multicast_if_v4(&place.local)?;
        options.set_multicast_loop_v4(place.is_loopback())?;
        out.connect(place.group(false))?;
        Ok(Self { out, inward })
    }
}

fn bound(address: SocketAddr, sleeps: bool) -> Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    // Root may ask for more than the system's limit, others get what that allows.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        socket.set_recv_buffer_size(BUFFER)?;
    }
    if setsockopt(&socket, sockopt::SndBufForce, &BUFFER).is_err() {
        socket.set_send_buffer_size(BUFFER)?;
    }
    socket.bind(&SockAddr::from(address)).with_context(|| format!("cannot bind {address}"))?;
    socket.set_nonblocking(!sleeps)?;
    socket.set_read_timeout(Some(LONGEST_SLEEP))?;
    Ok(socket.into())
}

/// Whether the error only means that nothing was there to read, or no receiver yet.
pub fn is_harmless(error: &Error) -> bool {
    let kind = error.kind();
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::ConnectionRefused | ErrorKind::Interrupted)
}
