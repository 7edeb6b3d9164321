//! Discovery without multicast: other programs whose addresses or DNS names are configured.
//!
//! All programs have the same list. Each binds the first free address of its host in it, or the
//! first free port of a name, sends to all the others from there, and ignores datagrams from other
//! addresses.

use crate::context::NetContext;
use crate::datagram_socket::DatagramSocket;
use crate::error::{OpenError, system};
use crate::peer_names::{PeerNames, port, system_lookup};
use std::io;
use std::net::SocketAddr;

/// Programs behind names for which the sending rate is shared out: their number isn't known when
/// the rate is set.
const EXPECTED_BEHIND_NAMES: usize = 16;

/// The other programs, and the socket to them.
#[derive(Debug)]
pub(crate) struct Peers {
    socket: DatagramSocket,
    list: PeerList,
}

/// Addresses of the other programs.
#[derive(Debug)]
pub(crate) struct PeerList {
    others: Vec<SocketAddr>,
    named: Option<PeerNames>,
    own: SocketAddr,
}

impl Peers {
    /// Opens the socket to the peers in the settings; `None` without peers.
    ///
    /// # Errors
    /// If no address of the list is this host's and free, and no port of the names.
    pub(crate) fn open(context: &NetContext) -> Result<Option<Self>, OpenError> {
        let (peers, names) = (&context.settings.peers, &context.settings.peer_names);
        if peers.is_empty() && names.is_empty() {
            return Ok(None);
        }
        let refuse = |what, fix| Err(OpenError::Setting { what, fix });
        let here = context.address;
        let reach = move |peer: &SocketAddr| {
            peer.is_ipv4() == here.is_ipv4() && peer.ip().is_loopback() == here.is_loopback()
        };
        // Checked at the start: the system would only refuse each single send, silently.
        if !peers.iter().all(reach) {
            return refuse(
                "net.peers",
                "not all can be reached from the interface: they and net.interface must be of \
                 the same version of IP, and all on the loopback or none",
            );
        }
        let own = peers.iter().filter(|peer| peer.ip() == here).map(SocketAddr::port);
        // A name need not lead here yet when the program starts: its port alone is taken.
        let mut ports = own.chain(names.iter().filter_map(|name| port(name))).peekable();
        if ports.peek().is_none() {
            return refuse(
                "net.peers",
                "none is an address of the interface, so no peer could answer: add this host's \
                 address with a port, and give all hosts the same list",
            );
        }
        for port in ports {
            match context.discovery_socket(port) {
                Ok(socket) => {
                    let own = SocketAddr::new(here, port);
                    let others = peers.iter().filter(|peer| **peer != own).copied().collect();
                    let watch = || PeerNames::watch(names.clone(), reach, system_lookup);
                    let named = (!names.is_empty()).then(watch).transpose();
                    let named = named.map_err(system("start a thread for net.peer_names"))?;
                    return Ok(Some(Self { socket, list: PeerList { others, named, own } }));
                }
                // Another program of this host has that place in the list: the next one is tried.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(system("open a UDP socket for net.peers")(error)),
            }
        }
        refuse(
            if peers.is_empty() { "net.peer_names" } else { "net.peers" },
            "other programs have all addresses of this host: add one with another port for each \
             program that runs here at the same time",
        )
    }

    pub(crate) const fn socket(&self) -> &DatagramSocket {
        &self.socket
    }

    /// The socket to read from, and the programs that may be heard there.
    pub(crate) const fn receiving(&mut self) -> (&mut DatagramSocket, &PeerList) {
        (&mut self.socket, &self.list)
    }

    /// Number of datagrams that each frame takes; of names, an estimate.
    pub(crate) const fn count(&self) -> usize {
        let PeerList { others, named, .. } = &self.list;
        others.len() + if named.is_some() { EXPECTED_BEHIND_NAMES } else { 0 }
    }

    /// Sends a frame to all peers.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        let PeerList { others, named, own } = &self.list;
        let named = named.as_ref().map(PeerNames::addresses);
        let named = named.iter().flat_map(|all| all.iter());
        let named = named.filter(|at| *at != own && !others.contains(at));
        for other in others.iter().chain(named) {
            // Lost advertisements and queries are repeated.
            drop(self.socket.send_to(frame, *other));
        }
    }
}

impl PeerList {
    /// Whether `from` is a peer.
    pub(crate) fn contains(&self, from: SocketAddr) -> bool {
        let is_named = |named: &PeerNames| named.addresses().binary_search(&from).is_ok();
        self.others.contains(&from) || self.named.as_ref().is_some_and(is_named)
    }
}
