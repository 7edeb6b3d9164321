//! Where there is no multicast: other programs whose addresses are known.
//!
//! All programs have the same list. Each hears at the first address in it that is its host's and
//! free, and speaks to all the others from there; who is not in the list is not heard.

use crate::error::{OpenError, system};
use crate::place::Place;
use lanecast_os::udp::UdpSocket;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// The most addresses in a list.
const PEERS_MAX: usize = 64;

/// The other programs, and the socket for them.
#[derive(Debug)]
pub(crate) struct Peers {
    socket: Arc<UdpSocket>,
    others: Vec<SocketAddr>,
}

impl Peers {
    /// The peers that the settings name; none if they name none.
    ///
    /// # Errors
    /// If the program has no place among them.
    pub(crate) fn open(place: &Place) -> Result<Option<Self>, OpenError> {
        let peers = &place.settings.peers;
        if peers.is_empty() {
            return Ok(None);
        }
        let refuse = |fix| Err(OpenError::Setting { what: "net.peers", fix });
        let here = place.address;
        let reach = |peer: &SocketAddr| {
            peer.is_ipv4() == here.is_ipv4() && peer.ip().is_loopback() == here.is_loopback()
        };
        if !peers.iter().all(reach) {
            return refuse(
                "not all can be reached from the interface: they and net.interface must be of \
                 the same version of IP, and all on the loopback or none",
            );
        }
        let mut own = peers.iter().filter(|peer| peer.ip() == here).peekable();
        if own.peek().is_none() {
            return refuse(
                "none is an address of the interface, so nobody could answer: add this host's \
                 address with a port, and give all hosts the same list",
            );
        }
        for own in own {
            match place.socket(own.port()) {
                Ok(socket) => {
                    let others = peers.iter().filter(|peer| *peer != own).copied().collect();
                    return Ok(Some(Self { socket: Arc::new(socket), others }));
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(system("open a UDP socket for net.peers")(error)),
            }
        }
        refuse(
            "other programs have all addresses of this host: add one with another port for each \
             program that runs here at the same time",
        )
    }

    /// Whether a list can be one, wherever it is used.
    pub(crate) fn can_be(peers: &[SocketAddr]) -> bool {
        let is_program = |at: &SocketAddr| {
            at.port() != 0 && !at.ip().is_unspecified() && !at.ip().is_multicast()
        };
        peers.len() <= PEERS_MAX && peers.iter().all(is_program)
    }

    pub(crate) const fn socket(&self) -> &Arc<UdpSocket> {
        &self.socket
    }

    /// How many others there are.
    pub(crate) const fn count(&self) -> usize {
        self.others.len()
    }

    /// Whether what comes from there is heard.
    pub(crate) fn has(&self, from: SocketAddr) -> bool {
        self.others.contains(&from)
    }

    /// Sends a frame to all others.
    pub(crate) fn tell(&self, frame: &[u8]) {
        for other in &self.others {
            // Whoever is not there now is told again.
            drop(self.socket.send_to(frame, *other));
        }
    }
}
