//! Announcement of a session: its addresses, transport and process.

use lanecast_wire::net::{AdvertEntry, DATAGRAM_MIN, address_bytes, advert_flag};
use std::net::{IpAddr, SocketAddr};
use zerocopy::FromZeros;

/// Transport of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SessionTransport {
    /// Reliable multicast.
    Multicast = 1,
    /// Reliable unicast.
    Unicast = 2,
    /// TCP.
    Tcp = 3,
}

impl SessionTransport {
    const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Multicast,
            2 => Self::Unicast,
            3 => Self::Tcp,
            _ => return None,
        })
    }
}

/// Announcement of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Number of the session, never 0; every publisher has a new one.
    pub session: u64,
    /// Transport.
    pub transport: SessionTransport,
    /// Address for control frames. An unspecified address stands for the one that the Adverts come
    /// from.
    pub control: SocketAddr,
    /// Multicast group that data is sent to.
    pub group: Option<SocketAddr>,
    /// Hash that identifies the host, or 0.
    pub host: u64,
    /// Shared-memory domain that also carries the session, or 0.
    pub domain: u64,
    /// Process id.
    pub pid: u32,
    /// Longest datagram, in bytes.
    pub datagram_bytes: u16,
}

impl Announcement {
    /// Reads an entry of an Advert from address `from`; `None` if it is malformed.
    pub(crate) fn read(entry: &AdvertEntry, from: SocketAddr) -> Option<Self> {
        let mut control = entry.control();
        // A publisher on all interfaces does not know the address that reaches it: the frame's
        // does.
        if control.ip().is_unspecified() {
            let port = control.port();
            control = from;
            control.set_port(port);
        }
        let group = entry.group().map(|group| with_scope(group, from));
        let it = Self {
            session: entry.session.get(),
            transport: SessionTransport::from_number(entry.transport)?,
            control: with_scope(control, from),
            group,
            host: entry.host.get(),
            domain: entry.domain.get(),
            pid: entry.pid.get(),
            datagram_bytes: entry.datagram_bytes.get(),
        };
        it.is_valid().then_some(it)
    }

    fn is_valid(&self) -> bool {
        let group_fits = match self.group {
            Some(group) => group.ip().is_multicast() && group.port() != 0,
            None => self.transport != SessionTransport::Multicast,
        };
        let control = self.control;
        self.session != 0
            && group_fits
            // Addresses that a Join must not go to: no port, a group, or a whole network.
            && control.port() != 0
            && !control.ip().is_multicast()
            && !matches!(control.ip(), IpAddr::V4(ip) if ip.is_broadcast())
            && usize::from(self.datagram_bytes) >= DATAGRAM_MIN
    }

    /// Entry that announces a session's end.
    pub(crate) fn end_entry(session: u64) -> AdvertEntry {
        let mut entry = AdvertEntry::new_zeroed();
        entry.session = session.into();
        entry.flags = advert_flag::GONE;
        entry
    }

    /// Entry of this announcement.
    pub(crate) fn entry(&self, flags: u8) -> AdvertEntry {
        let mut entry = AdvertEntry::new_zeroed();
        entry.session = self.session.into();
        entry.host = self.host.into();
        entry.domain = self.domain.into();
        (entry.control, entry.control_port) = address_bytes(self.control);
        if let Some(group) = self.group {
            (entry.group, entry.group_port) = address_bytes(group);
        }
        entry.pid = self.pid.into();
        entry.datagram_bytes = self.datagram_bytes.into();
        entry.transport = self.transport as u8;
        entry.flags = flags;
        entry
    }
}

/// Adds the scope of `from` to a link-local address: it refers to the link of the frame.
fn with_scope(address: SocketAddr, from: SocketAddr) -> SocketAddr {
    let (SocketAddr::V6(mut address), SocketAddr::V6(from)) = (address, from) else {
        return address;
    };
    let [first, second, ..] = address.ip().octets();
    let is_link_local = match first {
        0xfe => second & 0xc0 == 0x80,
        0xff => second & 0x0f == 2,
        _ => false,
    };
    if is_link_local {
        // A link-local address means nothing without its link: that of the sender's frame.
        address.set_scope_id(from.scope_id());
    }
    SocketAddr::V6(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Announcement {
        Announcement {
            session: 7,
            transport: SessionTransport::Unicast,
            control: "10.0.0.1:900".parse().unwrap(),
            group: None,
            host: 3,
            domain: 4,
            pid: 5,
            datagram_bytes: 1_472,
        }
    }

    #[test]
    fn an_entry_reads_back() {
        let from = "10.0.0.9:1".parse().unwrap();
        let mut it = plain();
        assert_eq!(Announcement::read(&it.entry(0), from), Some(it));
        it.transport = SessionTransport::Multicast;
        it.group = Some("239.1.1.1:80".parse().unwrap());
        assert_eq!(Announcement::read(&it.entry(0), from), Some(it));
        it.control = "0.0.0.0:77".parse().unwrap();
        let read = Announcement::read(&it.entry(0), from).expect("sense");
        assert_eq!(read.control, "10.0.0.9:77".parse().unwrap());
    }

    #[test]
    fn link_local_addresses_keep_their_link() {
        let from = "[fe80::1%4]:1".parse().unwrap();
        let control = "[fe80::2]:9".parse().unwrap();
        let it = Announcement { control, ..plain() };
        let read = Announcement::read(&it.entry(0), from).expect("sense");
        assert_eq!(read.control, "[fe80::2%4]:9".parse().unwrap());
    }

    #[test]
    fn malformed_entries_are_ignored() {
        let from = "10.0.0.9:1".parse().unwrap();
        let is_read = |it: Announcement| Announcement::read(&it.entry(0), from).is_some();
        let address = |text: &str| text.parse().unwrap();
        assert!(is_read(plain()));
        assert!(!is_read(Announcement { session: 0, ..plain() }));
        assert!(!is_read(Announcement { control: address("10.0.0.1:0"), ..plain() }));
        assert!(!is_read(Announcement { control: address("239.0.0.1:5"), ..plain() }));
        assert!(!is_read(Announcement { control: address("255.255.255.255:5"), ..plain() }));
        assert!(!is_read(Announcement { datagram_bytes: 10, ..plain() }));
        assert!(!is_read(Announcement { transport: SessionTransport::Multicast, ..plain() }));
        assert!(!is_read(Announcement { group: Some(address("10.0.0.1:5")), ..plain() }));
        let mut entry = plain().entry(0);
        entry.transport = 9;
        assert!(Announcement::read(&entry, from).is_none());
    }
}
