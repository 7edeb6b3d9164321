//! A non-blocking UDP socket: udp(7), with buffers, multicast groups, GSO and GRO.
//!
//! Set-up errors carry advice; calls on the path of a message allocate nothing and return the
//! system's errors as they are.

mod gso;
mod name;
mod segments;

pub use self::gso::{GSO_BYTES_MAX, GSO_SEGMENTS_MAX, GsoBatch};
pub use self::segments::segmentation_works;

use self::name::Name;
use crate::interface::Interface;
use crate::raw_io;
use crate::socket::{Direction, dropped, poll_busily, set, told};
use core::mem::MaybeUninit;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Default size of a socket's buffers, in bytes.
pub const BUFFER_BYTES: usize = 8 << 20;

/// The longest result of one receive: a coalesced (GRO) run of datagrams, in bytes.
pub const RECEIVE_BYTES_MAX: usize = 1 << 16;

/// Options of a [`UdpSocket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// Local address. Port 0 takes any free port.
    pub local: SocketAddr,
    /// Receive buffer, in bytes; 0 leaves the system's default.
    pub receive_buffer_bytes: usize,
    /// Send buffer, in bytes; 0 leaves the system's default.
    pub send_buffer_bytes: usize,
    /// Time for which an empty receive polls the network card's queue (SO_BUSY_POLL).
    pub busy_poll: Option<Duration>,
    /// Whether other sockets may use the same port, as receivers of a group do.
    pub shared: bool,
    /// Whether IP may cut datagrams beyond the MTU into fragments; otherwise sending them fails.
    pub fragments: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            local: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            receive_buffer_bytes: BUFFER_BYTES,
            send_buffer_bytes: BUFFER_BYTES,
            busy_poll: None,
            shared: false,
            fragments: false,
        }
    }
}

/// Datagrams of one sender that were received together (GRO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedRun {
    /// Bytes of all.
    pub bytes: usize,
    /// Bytes of each but the last.
    pub segment: usize,
}

/// A UDP socket: non-blocking, with GRO where the kernel has it.
#[derive(Debug)]
pub struct UdpSocket {
    socket: std::net::UdpSocket,
}

impl UdpSocket {
    /// Opens a socket.
    ///
    /// Buffers larger than the system's limit are cut to it, unless the process may exceed it
    /// (`CAP_NET_ADMIN`): see [`receive_buffer_bytes`](Self::receive_buffer_bytes).
    ///
    /// # Errors
    /// If the address is not this host's or is taken, or the process may not poll busily. The
    /// error says which.
    pub fn open(options: &UdpOptions) -> io::Result<Self> {
        let UdpOptions { local, busy_poll, .. } = *options;
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(local), kind, Some(Protocol::UDP))
            .map_err(|error| told(&error, format_args!("no UDP socket for {local}")))?;
        if options.shared {
            socket.set_reuse_address(true)?;
        }
        fragment(&socket, local.is_ipv6(), options.fragments)?;
        receive_own_groups_only(&socket, local.is_ipv6())?;
        Direction::In.reserve(socket.as_fd(), options.receive_buffer_bytes)?;
        Direction::Out.reserve(socket.as_fd(), options.send_buffer_bytes)?;
        if let Some(time) = busy_poll {
            poll_busily(socket.as_fd(), time)?;
        }
        // Kernels before 5.0 have no GRO, and return datagrams one by one.
        let _ = set(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, &1);
        socket.bind(&local.into()).map_err(|error| {
            let what = "take a free port, and an address of this host";
            told(&error, format_args!("{local} cannot be opened for UDP: {what}"))
        })?;
        Ok(Self { socket: socket.into() })
    }

    /// Connects to `peer`: sends to it, and receives from it alone.
    ///
    /// # Errors
    /// If no route leads there.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(peer).map_err(|error| {
            told(&error, format_args!("no way to {peer}: look at `ip route get {}`", peer.ip()))
        })
    }

    /// A further socket at this one's address, to be [connected](Self::connect) at once: then it
    /// takes what comes from its peer, and sends there without a look for the route. Until then it
    /// takes datagrams of others. Its `options` are this socket's.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn open_beside(&self, options: &UdpOptions) -> io::Result<Self> {
        let share = |socket: &std::net::UdpSocket, on| SockRef::from(socket).set_reuse_address(on);
        // Two sockets can be bound to one address only while both allow it. Then it is exclusive
        // again.
        share(&self.socket, true)?;
        let options = UdpOptions { local: self.local_address()?, shared: true, ..*options };
        let opened = Self::open(&options);
        share(&self.socket, false)?;
        let opened = opened?;
        share(&opened.socket, false)?;
        Ok(opened)
    }

    /// The local address.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The receive buffer's real size, in bytes.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        Direction::In.room(self.as_fd())
    }

    /// The send buffer's real size, in bytes.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn send_buffer_bytes(&self) -> io::Result<usize> {
        Direction::Out.room(self.as_fd())
    }

    /// Datagrams that the system dropped because the receive buffer was full.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn dropped(&self) -> io::Result<u32> {
        dropped(self.as_fd())
    }

    /// Joins `group` on `interface`, and on no other.
    ///
    /// # Errors
    /// If `group` is no multicast address of this socket's kind, or the interface has no
    /// multicast. The error says which.
    pub fn join(&self, group: IpAddr, interface: &Interface) -> io::Result<()> {
        let socket = SockRef::from(&self.socket);
        let joined = match group {
            IpAddr::V4(group) => {
                let index = InterfaceIndexOrAddress::Index(interface.index);
                socket.join_multicast_v4_n(&group, &index)
            }
            IpAddr::V6(group) => socket.join_multicast_v6(&group, interface.index),
        };
        joined.map_err(|error| {
            let what = if group.is_multicast() {
                "look at `ip maddr` and the interface's multicast flag"
            } else {
                "a group is an address of 224.0.0.0/4 or ff00::/8"
            };
            let name = &interface.name;
            told(&error, format_args!("group {group} cannot be joined on {name}: {what}"))
        })
    }

    /// Has what the host itself sends to `group` from `own` not come to this member; `own` is an
    /// address of the interface by which the group was joined.
    ///
    /// While a member wants it, each send to the group makes a route of its own, since there are
    /// members on this host: 0.2 µs more.
    ///
    /// # Errors
    /// If the socket is no member, or `own` no address of the interface.
    pub fn exclude_own(&self, group: Ipv4Addr, own: Ipv4Addr) -> io::Result<()> {
        self.filter_source(libc::IP_BLOCK_SOURCE, group, own)
    }

    /// Undoes [`exclude_own`](Self::exclude_own).
    ///
    /// # Errors
    /// If the group cannot be joined by `interface` any more.
    pub fn include_own(
        &self,
        group: Ipv4Addr,
        own: Ipv4Addr,
        interface: &Interface,
    ) -> io::Result<()> {
        if self.filter_source(libc::IP_UNBLOCK_SOURCE, group, own).is_ok() {
            return Ok(());
        }
        // The system finds the member by an address that the interface may have lost. A new
        // member, found by the interface's number, leaves nothing out.
        let index = InterfaceIndexOrAddress::Index(interface.index);
        drop(SockRef::from(&self.socket).leave_multicast_v4_n(&group, &index));
        self.join(group.into(), interface)
    }

    fn filter_source(&self, option: i32, group: Ipv4Addr, own: Ipv4Addr) -> io::Result<()> {
        let number = |address: Ipv4Addr| libc::in_addr { s_addr: u32::from(address).to_be() };
        let request = libc::ip_mreq_source {
            imr_multiaddr: number(group),
            imr_interface: number(own),
            imr_sourceaddr: number(own),
        };
        set(self.as_fd(), libc::IPPROTO_IP, option, &request)
    }

    /// Sends multicast through `interface` with a time to live of `hops`, looped back to this
    /// host's own members.
    ///
    /// # Errors
    /// If the interface is gone, or there are more than 255 hops.
    pub fn send_multicast_by(&self, interface: &Interface, hops: u32) -> io::Result<()> {
        let socket = SockRef::from(&self.socket);
        let set = if self.local_address()?.is_ipv4() {
            multicast_by(self.as_fd(), interface.index)
                .and_then(|()| socket.set_multicast_ttl_v4(hops))
                .and_then(|()| socket.set_multicast_loop_v4(true))
        } else {
            socket
                .set_multicast_if_v6(interface.index)
                .and_then(|()| socket.set_multicast_hops_v6(hops))
                .and_then(|()| socket.set_multicast_loop_v6(true))
        };
        set.map_err(|error| {
            let name = &interface.name;
            told(&error, format_args!("cannot multicast through {name} over {hops} hops"))
        })
    }

    /// Sets whether this host's own members of groups receive what the socket sends.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_multicast_loopback(&self, on: bool) -> io::Result<()> {
        let socket = SockRef::from(&self.socket);
        if self.local_address()?.is_ipv4() {
            socket.set_multicast_loop_v4(on)
        } else {
            socket.set_multicast_loop_v6(on)
        }
    }

    /// Whether this host's own members of groups receive what the socket sends.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn multicast_loopback(&self) -> io::Result<bool> {
        let socket = SockRef::from(&self.socket);
        if self.local_address()?.is_ipv4() {
            socket.multicast_loop_v4()
        } else {
            socket.multicast_loop_v6()
        }
    }

    /// Sends one datagram to the connected peer.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; `ConnectionRefused` if the peer has refused an earlier
    /// datagram, then this one was not sent either; others as they come from the system.
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let sent = raw_io::send::<Name>(self.fd(), bytes, 0, None);
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends one datagram to `to`.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        let (name, name_length) = Name::of(to);
        let sent = raw_io::send(self.fd(), bytes, 0, Some((&name, name_length)));
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends `batches`, in order, with one system call; returns the number sent, which can be
    /// fewer.
    ///
    /// A batch that the interface cannot segment (without checksum offload, say) is sent datagram
    /// by datagram; losses of it then count as losses on the network.
    ///
    /// # Errors
    /// Same as [`send`](Self::send), if not even the first was sent.
    ///
    /// # Panics
    /// If a batch exceeds [`GSO_BYTES_MAX`] or [`GSO_SEGMENTS_MAX`].
    #[inline]
    pub fn send_batches(&self, batches: &[GsoBatch<'_>]) -> io::Result<usize> {
        match batches {
            [] => Ok(0),
            [batch] if batch.is_one_datagram() => {
                self.send_datagram(batch.bytes, batch.to).map(|()| 1)
            }
            [first, ..] => match gso::send_many(self.fd(), batches) {
                Err(error) if !first.is_one_datagram() && gso::is_refused_segmentation(&error) => {
                    self.send_separately(first).map(|()| 1)
                }
                result => result,
            },
        }
    }

    #[inline]
    fn send_datagram(&self, bytes: &[u8], to: Option<SocketAddr>) -> io::Result<()> {
        match to {
            None => self.send(bytes),
            Some(to) => self.send_to(bytes, to),
        }
    }

    #[cold]
    fn send_separately(&self, batch: &GsoBatch<'_>) -> io::Result<()> {
        let mut datagrams = batch.bytes.chunks(batch.segment);
        datagrams.next().map_or(Ok(()), |first| self.send_datagram(first, batch.to))?;
        for datagram in datagrams {
            let _ = self.send_datagram(datagram, batch.to);
        }
        Ok(())
    }

    /// Receives a datagram and its sender's address; `None` if there is none.
    ///
    /// With GRO it is a run of datagrams from one sender, all but the last equally long. `into`
    /// should have [`RECEIVE_BYTES_MAX`] bytes: the rest would be lost.
    ///
    /// # Errors
    /// As they come from the system.
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        let mut name = MaybeUninit::<Name>::uninit();
        let (got, name_length) = raw_io::receive_from(self.fd(), into, &mut name);
        let Ok(got) = usize::try_from(got) else { return nothing(io::Error::last_os_error()) };
        // SAFETY: the system has written the sender's name, and says how long it is.
        let from = unsafe { Name::read(&name, name_length) };
        Ok(from.map(|from| (got, from)))
    }

    /// Same as [`receive`](Self::receive), with the length of each datagram of the run but the
    /// last, which may be shorter: it never is 0. Costs some 50 ns more.
    ///
    /// # Errors
    /// As they come from the system.
    #[inline]
    pub fn receive_run(&self, into: &mut [u8]) -> io::Result<Option<(ReceivedRun, SocketAddr)>> {
        let mut name = MaybeUninit::<Name>::uninit();
        let (got, name_length, segment) = raw_io::receive_run(self.fd(), into, &mut name);
        let Ok(bytes) = usize::try_from(got) else { return nothing(io::Error::last_os_error()) };
        // SAFETY: the system has written the sender's name, and says how long it is.
        let from = unsafe { Name::read(&name, name_length) };
        let segment = if segment == 0 { bytes.max(1) } else { segment };
        Ok(from.map(|from| (ReceivedRun { bytes, segment }, from)))
    }

    /// Same as [`receive`](Self::receive), from the connected peer.
    ///
    /// # Errors
    /// As [`receive`](Self::receive); `ConnectionRefused` if the peer has refused what was sent.
    #[inline]
    pub fn receive_connected(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let got = raw_io::receive(self.fd(), into);
        let Ok(got) = usize::try_from(got) else { return nothing(io::Error::last_os_error()) };
        Ok(Some(got))
    }

    #[inline(always)]
    fn fd(&self) -> i32 {
        self.socket.as_raw_fd()
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Fragments datagrams beyond the MTU, or makes sending them fail.
fn fragment(socket: &Socket, is_v6: bool, allowed: bool) -> io::Result<()> {
    let (level, option, value) = match (is_v6, allowed) {
        (true, false) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
        (true, true) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT),
        (false, false) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        (false, true) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
    };
    set(socket.as_fd(), level, option, &value)
}

/// Receives only the groups that the socket has joined; by default Linux delivers those of all
/// sockets on the host.
fn receive_own_groups_only(socket: &Socket, is_v6: bool) -> io::Result<()> {
    if is_v6 {
        // The same port can then be opened for IPv4 too.
        socket.set_only_v6(true)?;
        socket.set_multicast_all_v6(false)
    } else {
        socket.set_multicast_all_v4(false)
    }
}

/// Sets the interface for multicast over IPv4 by its index.
fn multicast_by(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let any = libc::in_addr { s_addr: 0 };
    let imr_ifindex = i32::try_from(index).unwrap_or(0);
    let request = libc::ip_mreqn { imr_multiaddr: any, imr_address: any, imr_ifindex };
    set(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)
}

/// Whether a send failed for lack of room in the socket or in the interface's queue.
pub fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Turns `WouldBlock` into `None`.
fn nothing<T>(error: io::Error) -> io::Result<Option<T>> {
    if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) }
}

#[cfg(all(test, not(loom)))]
mod tests;
