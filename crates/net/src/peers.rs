//! Discovery without multicast: other programs whose addresses are configured.
//!
//! All programs have the same list. Each binds the first free address of its host in it, sends to
//! all the others from there, and ignores datagrams from other addresses.

use crate::context::NetContext;
use crate::error::{OpenError, system};
use lanecast_os::udp::UdpSocket;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// The other programs, and the socket to them.
#[derive(Debug)]
pub(crate) struct Peers {
    socket: Arc<UdpSocket>,
    others: Vec<SocketAddr>,
}

impl Peers {
    /// Opens the socket to the peers in the settings; `None` without peers.
    ///
    /// # Errors
    /// If no address of the list is this host's and free.
    pub(crate) fn open(context: &NetContext) -> Result<Option<Self>, OpenError> {
        let peers = &context.settings.peers;
        if peers.is_empty() {
            return Ok(None);
        }
        let refuse = |fix| Err(OpenError::Setting { what: "net.peers", fix });
        let here = context.address;
        let reach = |peer: &SocketAddr| {
            peer.is_ipv4() == here.is_ipv4() && peer.ip().is_loopback() == here.is_loopback()
        };
        // Checked at the start: the system would only refuse each single send, silently.
        if !peers.iter().all(reach) {
            return refuse(
                "not all can be reached from the interface: they and net.interface must be of \
                 the same version of IP, and all on the loopback or none",
            );
        }
        let mut own = peers.iter().filter(|peer| peer.ip() == here).peekable();
        if own.peek().is_none() {
            return refuse(
                "none is an address of the interface, so no peer could answer: add this host's \
                 address with a port, and give all hosts the same list",
            );
        }
        for own in own {
            match context.socket(own.port()) {
                Ok(socket) => {
                    let others = peers.iter().filter(|peer| *peer != own).copied().collect();
                    return Ok(Some(Self { socket: Arc::new(socket), others }));
                }
                // Another program of this host has that place in the list: the next one is tried.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(system("open a UDP socket for net.peers")(error)),
            }
        }
        refuse(
            "other programs have all addresses of this host: add one with another port for each \
             program that runs here at the same time",
        )
    }

    pub(crate) const fn socket(&self) -> &Arc<UdpSocket> {
        &self.socket
    }

    /// Number of other programs.
    pub(crate) const fn count(&self) -> usize {
        self.others.len()
    }

    /// Whether `from` is a peer.
    pub(crate) fn contains(&self, from: SocketAddr) -> bool {
        self.others.contains(&from)
    }

    /// Sends a frame to all peers.
    pub(crate) fn send(&self, frame: &[u8]) {
        for other in &self.others {
            // Lost advertisements and queries are repeated.
            drop(self.socket.send_to(frame, *other));
        }
    }
}
