//! Where on the network a context is.

use crate::error::{OpenError, system};
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use lanecast_os::interface::{self, Interface};
use lanecast_os::tcp::TcpOptions;
use lanecast_os::udp::{UdpOptions, UdpSocket};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// What the kernel charges a socket for a datagram of common length, its own records included.
const DATAGRAM_CHARGE: usize = 2304;
/// The fewest datagrams under way: below, nothing flows.
const WINDOW_MIN: usize = 16;

/// An interface, one address of it, and the settings.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) settings: Settings,
    pub(crate) interface: Interface,
    pub(crate) address: IpAddr,
    /// How many datagrams a subscriber's socket can hold.
    pub(crate) window_datagrams: u32,
    pub(crate) telemetry: Telemetry,
}

impl Place {
    pub(crate) fn new(settings: Settings) -> Result<Self, OpenError> {
        settings.check()?;
        let (interface, address) = interface::choose(&settings.interface)?;
        let telemetry = Telemetry::silent();
        let mut place = Self { settings, interface, address, window_datagrams: 0, telemetry };
        let probe = place.socket(0).map_err(system("open a UDP socket"))?;
        let bytes = probe.receive_buffer_bytes().map_err(system("look at a socket's buffer"))?;
        // The kernel counts twice what was asked for, as it charges its own records too.
        let datagrams = (2 * bytes / DATAGRAM_CHARGE).max(WINDOW_MIN);
        place.window_datagrams = u32::try_from(datagrams).unwrap_or(u32::MAX);
        place.telemetry = Telemetry::open(place.settings.counters.as_deref());
        Ok(place)
    }

    fn options(&self, local: SocketAddr, shared: bool) -> UdpOptions {
        UdpOptions {
            local,
            receive_buffer_bytes: self.settings.receive_buffer_bytes,
            send_buffer_bytes: self.settings.send_buffer_bytes,
            busy_poll: self.settings.busy_poll,
            shared,
        }
    }

    /// A socket at the place's own address.
    pub(crate) fn socket(&self, port: u16) -> io::Result<UdpSocket> {
        let socket = UdpSocket::open(&self.options(SocketAddr::new(self.address, port), false))?;
        if self.settings.group.is_ipv4() == self.address.is_ipv4() {
            socket.send_multicast_by(&self.interface, self.settings.hops)?;
        }
        Ok(socket)
    }

    /// A socket that hears what comes to `group` by the place's interface, and nothing else.
    pub(crate) fn group_socket(&self, group: SocketAddr) -> io::Result<UdpSocket> {
        let socket = UdpSocket::open(&self.options(group, true))?;
        socket.join(group.ip(), &self.interface)?;
        Ok(socket)
    }

    pub(crate) fn tcp_options(&self) -> TcpOptions {
        TcpOptions {
            send_buffer_bytes: self.settings.send_buffer_bytes,
            receive_buffer_bytes: self.settings.receive_buffer_bytes,
            busy_poll: self.settings.busy_poll,
            user_timeout: Some(self.settings.liveness),
            ..TcpOptions::default()
        }
    }

    /// The longest datagram that fits on the interface.
    pub(crate) fn datagram_bytes(&self) -> usize {
        self.settings.datagram_bytes(self.address, self.interface.mtu as usize)
    }
}
