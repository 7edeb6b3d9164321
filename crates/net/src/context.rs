//! Shared context of a network: its settings, interface, address and telemetry.

use crate::datagram_socket::DatagramSocket;
use crate::error::{OpenError, system};
use crate::lingering::Lingering;
use crate::lingering_close::ClosingConnections;
use crate::peer_socket::PeerOptions;
use crate::sealed_socket::SocketSealing;
use crate::settings::{IoKind, NetSettings, nanos};
use crate::source::TransportKind;
use crate::telemetry::Telemetry;
use lanecast_os::interface::{self, Interface};
use lanecast_os::tcp::TcpOptions;
use lanecast_os::udp::{UdpOptions, UdpSocket};
use lanecast_os::xdp::{RING_FRAMES, XdpDevice, XdpOptions, XdpSocket};
use lanecast_sealing::{KeyFile, KeyRing};
use lanecast_tls::TlsIdentity;
use lanecast_wire::net::SEALED_OVERHEAD;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Bytes of receive buffer that the kernel charges for a datagram of common length.
const DATAGRAM_CHARGE: usize = 2304;
/// The smallest receive window, in datagrams: nothing flows with less.
const WINDOW_MIN: usize = 16;

/// Settings, and the interface and address that they choose. Immutable after the start.
#[derive(Debug)]
pub(crate) struct NetContext {
    pub(crate) settings: NetSettings,
    pub(crate) interface: Interface,
    pub(crate) address: IpAddr,
    /// The longest datagram as it is sent, in bytes.
    carried_bytes: usize,
    /// Datagrams that fit into a subscriber's receive buffer.
    pub(crate) window_datagrams: u32,
    pub(crate) telemetry: Telemetry,
    /// Keys of the datagrams, if they are sealed.
    pub(crate) keys: Option<Arc<KeyRing>>,
    /// TLS of the connections, if they are encrypted.
    pub(crate) tls: Option<Arc<TlsIdentity>>,
    /// The interface past the kernel's stack, if sessions use it.
    pub(crate) xdp: Option<Arc<XdpDevice>>,
    /// Closed publishers and connections that the network's drop waits for.
    pub(crate) lingering: Arc<Lingering>,
    /// Connections of sessions that are over.
    pub(crate) closing: Arc<ClosingConnections>,
    /// The reason why sessions use sockets although the settings ask for more.
    pub(crate) io_fallback: Option<String>,
}

impl NetContext {
    pub(crate) fn new(settings: NetSettings) -> Result<Self, OpenError> {
        settings.check()?;
        let (interface, address) = interface::choose(&settings.interface)?;
        let carried_bytes = settings.datagram_bytes(address, interface.mtu as usize)?;
        let telemetry = Telemetry::disabled();
        let keys = settings.key_file.as_ref().map(|path| KeyRing::open(KeyFile::new(path)));
        let keys = keys.transpose().map_err(OpenError::KeyFile)?.map(Arc::new);
        let tls = TlsIdentity::open(&settings.tls).map_err(OpenError::Tls)?.map(Arc::new);
        let lingering = Arc::<Lingering>::default();
        let closing = ClosingConnections::new(nanos(settings.liveness), Arc::clone(&lingering));
        let mut context = Self {
            settings,
            interface,
            address,
            carried_bytes,
            window_datagrams: 0,
            telemetry,
            keys,
            tls,
            xdp: None,
            lingering,
            closing: Arc::new(closing),
            io_fallback: None,
        };
        // The kernel may grant less than the setting: a socket shows what it grants.
        let probe = context.socket(0).map_err(system("open a UDP socket"))?;
        let bytes = probe.receive_buffer_bytes().map_err(system("look at a socket's buffer"))?;
        // The kernel doubles the requested size, as it charges its own records too.
        let datagrams = (2 * bytes / DATAGRAM_CHARGE).max(WINDOW_MIN);
        context.window_datagrams = u32::try_from(datagrams).unwrap_or(u32::MAX);
        context.telemetry = Telemetry::open(context.settings.counters.as_deref());
        if context.settings.io == IoKind::Xdp {
            context.open_xdp();
        }
        Ok(context)
    }

    /// Has sessions bypass the kernel's stack, or notes why they cannot.
    fn open_xdp(&mut self) {
        let opened = if self.address.is_ipv4() {
            let options = XdpOptions {
                busy_poll: self.settings.busy_poll,
                send_buffer_bytes: self.settings.send_buffer_bytes,
            };
            XdpDevice::open(&self.interface, self.carried_bytes, options)
                .map_err(|error| error.to_string())
        } else {
            Err("it carries IPv4 only: choose an IPv4 address for net.interface".to_owned())
        };
        match opened {
            Ok(device) => {
                // A datagram more than the ring holds would be dropped.
                self.window_datagrams = self.window_datagrams.min(RING_FRAMES);
                self.xdp = Some(device);
            }
            Err(reason) => {
                self.telemetry.error(&format!("net.io = xdp: datagrams go by sockets: {reason}"));
                self.io_fallback = Some(reason);
            }
        }
    }

    /// Puts an AF_XDP socket beside `socket`, if sessions use them.
    fn past_the_stack(&self, socket: UdpSocket) -> io::Result<DatagramSocket> {
        let sealing = self.sealing_of(&socket)?;
        let options = PeerOptions {
            udp: self.options(socket.local_address()?, false),
            interface: self.interface.clone(),
            hops: self.settings.hops,
        };
        let Some(device) = &self.xdp else {
            return Ok(DatagramSocket::udp(socket, options, sealing));
        };
        match XdpSocket::open(device, socket, self.settings.hops) {
            Ok(socket) => Ok(DatagramSocket::xdp(socket, sealing)),
            Err((socket, error)) => {
                self.telemetry.error(&format!("net.io = xdp: a session goes by a socket: {error}"));
                Ok(DatagramSocket::udp(socket, options, sealing))
            }
        }
    }

    fn options(&self, local: SocketAddr, shared: bool) -> UdpOptions {
        UdpOptions {
            local,
            receive_buffer_bytes: self.settings.receive_buffer_bytes,
            send_buffer_bytes: self.settings.send_buffer_bytes,
            busy_poll: self.settings.busy_poll,
            shared,
            fragments: false,
        }
    }

    /// A UDP socket at the network's address.
    fn socket(&self, port: u16) -> io::Result<UdpSocket> {
        let socket = UdpSocket::open(&self.options(SocketAddr::new(self.address, port), false))?;
        if self.settings.group.is_ipv4() == self.address.is_ipv4() {
            socket.send_multicast_by(&self.interface, self.settings.hops)?;
        }
        Ok(socket)
    }

    /// A UDP socket that receives what comes to `group` through the interface, and nothing else.
    fn group_socket(&self, group: SocketAddr) -> io::Result<UdpSocket> {
        let socket = UdpSocket::open(&self.options(group, true))?;
        // Bound to the group's own address: datagrams to other groups at the port stay away.
        socket.join(group.ip(), &self.interface)?;
        Ok(socket)
    }

    /// A socket for frames of discovery, at the network's address.
    pub(crate) fn discovery_socket(&self, port: u16) -> io::Result<DatagramSocket> {
        self.socket(port).and_then(|socket| self.single(socket))
    }

    /// A socket for the frames of discovery that come to `group`.
    pub(crate) fn discovery_group_socket(&self, group: SocketAddr) -> io::Result<DatagramSocket> {
        self.group_socket(group).and_then(|socket| self.single(socket))
    }

    fn single(&self, socket: UdpSocket) -> io::Result<DatagramSocket> {
        let sealing = self.sealing_of(&socket)?;
        Ok(DatagramSocket::single(socket, sealing))
    }

    /// Sealing of the socket's datagrams, if there are keys.
    fn sealing_of(&self, socket: &UdpSocket) -> io::Result<Option<Box<SocketSealing>>> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let here = socket.local_address()?;
        SocketSealing::of_keys(Arc::clone(keys), here, self.telemetry.clone()).map(Some)
    }

    /// A socket for a session's datagrams, at the network's address.
    pub(crate) fn session_socket(&self, port: u16) -> io::Result<DatagramSocket> {
        self.socket(port).and_then(|socket| self.past_the_stack(socket))
    }

    /// A socket for the datagrams that sessions send to `group`.
    pub(crate) fn session_group_socket(&self, group: SocketAddr) -> io::Result<DatagramSocket> {
        self.group_socket(group).and_then(|socket| self.past_the_stack(socket))
    }

    /// Whether publishers by TCP are joined: under TLS only with an authority that vouches for
    /// them; without TLS only if datagrams are not sealed either.
    pub(crate) fn can_join_by_tcp(&self) -> bool {
        self.tls.as_ref().map_or(self.keys.is_none(), |tls| tls.can_connect())
    }

    /// Whether publishers by datagrams are joined: with TLS only if datagrams are sealed, as any
    /// host may advertise a publisher.
    pub(crate) const fn can_join_by_datagrams(&self) -> bool {
        self.keys.is_some() || self.tls.is_none()
    }

    /// Transports by which publishers are joined.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = TransportKind> {
        self.settings.accept.iter().copied().filter(|kind| match kind {
            TransportKind::Tcp => self.can_join_by_tcp(),
            TransportKind::Rm | TransportKind::Ru => self.can_join_by_datagrams(),
        })
    }

    /// Refuses a subscriber that could join no publisher: it would wait without a word.
    ///
    /// # Errors
    /// If there is no transport by which publishers are joined.
    pub(crate) fn check_joins(&self) -> Result<(), OpenError> {
        if self.accepted().next().is_some() {
            return Ok(());
        }
        let (what, fix) = match &self.tls {
            Some(_) if self.settings.accept.contains(&TransportKind::Tcp) => (
                "net.tls_authorities",
                "to subscribe with TLS, name the authorities that issue publishers' certificates, \
                 for tcp, or set net.key_file, for rm and ru",
            ),
            Some(_) => (
                "net.key_file",
                "with TLS, datagrams have to be sealed: set a key to subscribe by rm or ru, or \
                 accept tcp",
            ),
            None => (
                "net.accept",
                "with a key and without TLS, no publisher is joined by tcp: accept rm or ru, or \
                 set net.tls_authorities",
            ),
        };
        Err(OpenError::Setting { what, fix })
    }

    /// Refuses datagrams that nothing seals, if connections are under TLS.
    ///
    /// # Errors
    /// If there is TLS and no key.
    pub(crate) const fn check_datagrams(&self) -> Result<(), OpenError> {
        match self.can_join_by_datagrams() {
            true => Ok(()),
            false => Err(OpenError::Setting {
                what: "net.key_file",
                fix: "with TLS, datagrams have to be sealed: set a key to publish by rm or ru, or \
                      publish by tcp",
            }),
        }
    }

    /// TLS of accepted connections, if they are encrypted.
    ///
    /// # Errors
    /// If they would have to be, and cannot.
    pub(crate) fn accepting_tls(&self) -> Result<Option<Arc<TlsIdentity>>, OpenError> {
        match &self.tls {
            Some(tls) if tls.can_accept() => Ok(Some(Arc::clone(tls))),
            Some(_) => Err(OpenError::Setting {
                what: "net.tls_certificate",
                fix: "a publisher by tcp needs one to show to its subscribers, and net.tls_key",
            }),
            None if self.keys.is_some() => Err(OpenError::Setting {
                what: "net.key_file",
                fix: "it seals datagrams only, not TCP: publish by rm or ru, or encrypt \
                      connections with net.tls_certificate",
            }),
            None => Ok(None),
        }
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

    /// The longest datagram of the protocols, in bytes.
    pub(crate) fn datagram_bytes(&self) -> usize {
        self.carried_bytes - self.envelope_bytes()
    }

    /// Bytes that sealing adds to a datagram of the protocols.
    pub(crate) const fn envelope_bytes(&self) -> usize {
        if self.keys.is_some() { SEALED_OVERHEAD } else { 0 }
    }
}
