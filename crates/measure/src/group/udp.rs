//! Bare multicast datagrams, for comparison: nothing repairs a loss or holds a sender back.

use super::transport::{GroupEvent, GroupTransport, SendRefusal, SenderId};
use lanecast_os::interface;
use lanecast_os::poll::PollBuffer;
use lanecast_os::udp::{RECEIVE_BYTES_MAX, UdpOptions, UdpSocket, is_full};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

/// Each message begins with its length: the kernel may hand over several datagrams at once.
const LENGTH_BYTES: usize = 2;
/// The longest datagram of IPv4, less the length.
const LONGEST: usize = 65_507 - LENGTH_BYTES;
/// Stays on this network.
const HOPS: u32 = 1;

/// A multicast group of plain UDP. Messages longer than a datagram of the network are fragmented by
/// IP, as in the document's test.
#[derive(Debug)]
pub struct UdpTransport {
    /// Receives. Sends go through a socket of its own, whose port tells members of one host apart.
    incoming: UdpSocket,
    outgoing: UdpSocket,
    group: SocketAddr,
    buffer: Vec<u8>,
    datagram: Vec<u8>,
    room: PollBuffer,
    /// Messages cut short or with a wrong length.
    malformed: u64,
}

impl UdpTransport {
    /// Joins `group` on the interface that `interface` names: an address, a network or a name.
    ///
    /// # Errors
    /// If there is no such interface, or the group cannot be joined there.
    pub fn open(interface: &str, group: SocketAddr) -> io::Result<Self> {
        let (interface, address) = interface::choose(interface).map_err(io::Error::other)?;
        if address.is_ipv4() != group.is_ipv4() {
            let what = format!("{address} and {group} are of different kinds");
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        let any: IpAddr = match group {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let options = UdpOptions { fragments: true, ..UdpOptions::default() };
        let local = SocketAddr::new(any, group.port());
        let incoming = UdpSocket::open(&UdpOptions { local, shared: true, ..options })?;
        incoming.join(group.ip(), &interface)?;
        let outgoing =
            UdpSocket::open(&UdpOptions { local: SocketAddr::new(address, 0), ..options })?;
        outgoing.send_multicast_by(&interface, HOPS)?;
        Ok(Self {
            incoming,
            outgoing,
            group,
            buffer: vec![0; RECEIVE_BYTES_MAX],
            datagram: Vec::new(),
            room: PollBuffer::default(),
            malformed: 0,
        })
    }
}

impl GroupTransport for UdpTransport {
    fn longest_message(&self) -> usize {
        LONGEST
    }

    fn try_send(&mut self, bytes: &[u8]) -> Result<(), SendRefusal> {
        let length = u16::try_from(bytes.len()).map_err(|_| {
            SendRefusal::Failed(io::Error::new(ErrorKind::InvalidInput, "the message is too long"))
        })?;
        self.datagram.clear();
        self.datagram.extend_from_slice(&length.to_le_bytes());
        self.datagram.extend_from_slice(bytes);
        self.outgoing.send_to(&self.datagram, self.group).map_err(|error| {
            if is_full(&error) { SendRefusal::Full } else { SendRefusal::Failed(error) }
        })
    }

    fn poll(
        &mut self,
        limit: usize,
        handler: &mut impl FnMut(GroupEvent<'_>),
    ) -> io::Result<usize> {
        let mut count = 0;
        while count < limit {
            let Some((got, from)) = self.incoming.receive(&mut self.buffer)? else { break };
            let from = SenderId(identity(from));
            let mut rest = &self.buffer[..got];
            while let Some((length, behind)) = rest.split_first_chunk::<LENGTH_BYTES>() {
                let length = usize::from(u16::from_le_bytes(*length));
                let Some((bytes, behind)) = behind.split_at_checked(length) else { break };
                handler(GroupEvent::Message { from, bytes });
                count += 1;
                rest = behind;
            }
            self.malformed += u64::from(!rest.is_empty());
        }
        Ok(count)
    }

    fn wait(&mut self, limit: Duration) {
        let mut set = self.room.clear();
        set.add(self.incoming.as_fd(), false);
        set.wait(Some(limit));
    }

    fn counters(&self) -> Vec<(String, u64)> {
        let dropped = self.incoming.dropped().unwrap_or(0);
        let room = self.incoming.receive_buffer_bytes().unwrap_or(0);
        vec![
            ("datagrams dropped for lack of room in the receive buffer".to_owned(), dropped.into()),
            ("receive buffer, bytes".to_owned(), room as u64),
            ("malformed datagrams".to_owned(), self.malformed),
        ]
    }
}

/// A number of its own for each address and port.
fn identity(address: SocketAddr) -> u64 {
    let port = u64::from(address.port());
    match address.ip() {
        IpAddr::V4(ip) => u64::from(u32::from(ip)) << 16 | port,
        IpAddr::V6(ip) => {
            let bits = u128::from(ip);
            ((bits >> 64) as u64).rotate_left(29) ^ (bits as u64).rotate_left(16) ^ port
        }
    }
}
