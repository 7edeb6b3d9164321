//! Set-up of non-blocking TCP connections: tcp(7). They are read and written by `raw_io` or the
//! standard library.

use crate::socket::{Direction, get, poll_busily, set, told};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Options of a connection; `None` and 0 leave the system's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Send buffer, in bytes.
    pub send_buffer_bytes: usize,
    /// Receive buffer, in bytes.
    pub receive_buffer_bytes: usize,
    /// Time for which an empty read polls the network card's queue (SO_BUSY_POLL).
    pub busy_poll: Option<Duration>,
    /// Time after which unacknowledged bytes end the connection (TCP_USER_TIMEOUT).
    pub user_timeout: Option<Duration>,
    /// Idle time before the first keepalive probe, and interval of further ones, in whole seconds.
    pub keepalive: Option<Duration>,
}

/// Listens at `local`; port 0 takes any that is free. At most `backlog` connections wait to be
/// accepted.
///
/// # Errors
/// If the address is not this host's or is taken; the error says what to do.
pub fn listen(local: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = open(local)?;
    // A restarted program does not wait for its predecessor's connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    if local.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    let bound = socket.bind(&local.into());
    bound.and_then(|()| socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))).map_err(
        |error| {
            let what = "take a free port, and an address of this host";
            told(&error, format_args!("cannot listen on {local}: {what}"))
        },
    )?;
    Ok(socket.into())
}

/// A free TCP port of this host, for a program that passes it on to another, or listens later.
///
/// While it is held the system gives the port to no connection and to no socket that takes any
/// port. [`listen`] and [`TcpListener::bind`] succeed at it; until then connections to it are
/// refused, and none can connect to itself. See `SO_REUSEADDR` in socket(7).
///
/// ```
/// use lanecast_os::tcp::{ReservedPort, listen};
///
/// let port = ReservedPort::take(std::net::Ipv4Addr::LOCALHOST.into())?;
/// let listener = listen(port.address(), 8)?;
/// assert_eq!(listener.local_addr()?, port.address());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    /// Bound, and never listening.
    _socket: Socket,
}

impl ReservedPort {
    /// Takes a free port at the address `local`.
    ///
    /// # Errors
    /// If the address is not this host's, or no port is free.
    pub fn take(local: IpAddr) -> io::Result<Self> {
        let any = SocketAddr::new(local, 0);
        let socket = open(any)?;
        socket.set_reuse_address(true)?;
        socket.bind(&any.into()).map_err(|error| {
            told(&error, format_args!("no port at {local}: take an address of this host"))
        })?;
        let address = socket.local_addr()?.as_socket();
        let address = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { address, _socket: socket })
    }

    /// The address and its port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Starts to connect to `to`, from the local address `from` if given; [`established`] returns the
/// outcome.
///
/// # Errors
/// If no route leads there, or `from` is not this host's; a refusal may come here too.
pub fn connect(from: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = open(to)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(from) = from {
        // Lets one port serve connections to several peers; without it one is merely taken sooner.
        let _ = set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1);
        socket.bind(&SockAddr::from(SocketAddr::new(from, 0))).map_err(|error| {
            told(&error, format_args!("cannot connect from {from}: take an address of this host"))
        })?;
    }
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
            Err(told(&error, format_args!("no connection to {to}")))
        }
        _ => Ok(socket.into()),
    }
}

/// Turns delayed acknowledgements on, for a while (TCP_QUICKACK off).
///
/// Otherwise a connection that only receives acknowledges at each read, before the reader gets the
/// bytes.
///
/// # Errors
/// If the system refuses.
pub fn delay_acks(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_tcp_quickack(false)
}

/// Whether `stream` is connected; false while the connect is in progress.
///
/// # Errors
/// If the connect failed, or the connection has ended. The stream is then useless.
pub fn established(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    let state = get(stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO)? & 0xff;
    match state {
        SYN_SENT | SYN_RECEIVED => Ok(false),
        // The kernel reports an error only once.
        CLOSED => Err(io::ErrorKind::NotConnected.into()),
        _ => Ok(true),
    }
}

/// States of a connection, the first byte of `TCP_INFO`.
const SYN_SENT: i32 = 2;
const SYN_RECEIVED: i32 = 3;
const CLOSED: i32 = 7;

/// Makes a connected or accepted stream non-blocking, disables Nagle's algorithm, and sets
/// `options`.
///
/// # Errors
/// If the process may not poll busily, or the connection is gone.
pub fn tune(stream: &TcpStream, options: &TcpOptions) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    Direction::In.reserve(stream.as_fd(), options.receive_buffer_bytes)?;
    Direction::Out.reserve(stream.as_fd(), options.send_buffer_bytes)?;
    if let Some(time) = options.busy_poll {
        poll_busily(stream.as_fd(), time)?;
    }
    if let Some(time) = options.user_timeout {
        socket.set_tcp_user_timeout(Some(time))?;
    }
    if let Some(time) = options.keepalive {
        let time = time.max(Duration::from_secs(1));
        let asking = TcpKeepalive::new().with_time(time).with_interval(time).with_retries(3);
        socket.set_tcp_keepalive(&asking)?;
    }
    Ok(())
}

/// Has the connection end with a reset when it is closed, and unsent bytes thrown away: the other
/// side is told to try again, rather than that the stream has ended.
///
/// # Errors
/// If the system refuses.
pub fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))
        .map_err(|error| told(&error, format_args!("no TCP socket for {address}")))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::poll::PollBuffer;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Ipv4Addr, Ipv6Addr};

    const LONG: Duration = Duration::from_secs(20);

    fn wait_for(socket: &impl AsFd, want_write: bool) {
        let mut room = PollBuffer::default();
        let mut set = room.clear();
        set.add(socket.as_fd(), want_write);
        assert_eq!(set.wait(Some(LONG)), 1);
    }

    fn loopbacks() -> Vec<IpAddr> {
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        match listen((v6, 0).into(), 1) {
            Ok(_) => addresses.push(v6),
            Err(error) => eprintln!("left out: this machine has no IPv6 on loopback ({error})"),
        }
        addresses
    }

    fn pair(loopback: IpAddr) -> (TcpStream, TcpStream) {
        let listener = listen((loopback, 0).into(), 8).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        let to = listener.local_addr().unwrap();
        let near = connect(Some(loopback), to).unwrap();
        wait_for(&listener, false);
        let (far, _) = listener.accept().unwrap();
        while !established(&near).unwrap() {
            wait_for(&near, true);
        }
        (near, far)
    }

    #[test]
    fn bytes_go_there_and_back_and_nothing_blocks() {
        for loopback in loopbacks() {
            let (near, far) = pair(loopback);
            let options = TcpOptions {
                send_buffer_bytes: 100_000,
                receive_buffer_bytes: 100_000,
                user_timeout: Some(Duration::from_secs(2)),
                keepalive: Some(Duration::from_secs(3)),
                ..TcpOptions::default()
            };
            tune(&near, &options).unwrap();
            tune(&far, &TcpOptions::default()).unwrap();
            assert_eq!(Direction::Out.room(near.as_fd()).unwrap(), 100_000);
            let told = SockRef::from(&near);
            assert_eq!(told.tcp_user_timeout().unwrap(), Some(Duration::from_secs(2)));
            assert_eq!(told.tcp_keepalive_time().unwrap(), Duration::from_secs(3));
            assert!(near.nodelay().unwrap() && far.nodelay().unwrap());
            let mut buffer = [0; 16];
            assert_eq!((&far).read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
            (&near).write_all(b"there").unwrap();
            wait_for(&far, false);
            assert_eq!((&far).read(&mut buffer).unwrap(), 5);
            drop(far);
            wait_for(&near, false);
            assert_eq!((&near).read(&mut buffer).unwrap(), 0);
        }
    }

    #[test]
    fn a_reserved_port_is_free_for_its_listener_alone() {
        for loopback in loopbacks() {
            let port = ReservedPort::take(loopback).unwrap();
            let other = ReservedPort::take(loopback).unwrap();
            assert_ne!(port.address(), other.address());
            // As the system binds a socket that connects or takes any port.
            let plain = open(port.address()).unwrap();
            let taken = plain.bind(&port.address().into()).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AddrInUse);
            let refused = std::net::TcpStream::connect(port.address()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            let listener = listen(port.address(), 8).unwrap();
            let again = listen(port.address(), 8).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::AddrInUse);
            let near = connect(None, port.address()).unwrap();
            wait_for(&listener, false);
            drop((listener.accept().unwrap(), near));
            drop(listener);
            TcpListener::bind(other.address()).unwrap();
        }
    }

    #[test]
    fn a_connection_that_is_reset_throws_unsent_bytes_away() {
        let (near, far) = pair(Ipv4Addr::LOCALHOST.into());
        reset_on_close(&far).unwrap();
        drop(far);
        wait_for(&near, false);
        let reset = (&near).read(&mut [0; 16]).unwrap_err();
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn refused_connections_and_taken_ports_are_errors() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into(), 1).unwrap();
        let to = listener.local_addr().unwrap();
        let error = listen(to, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains("take a free port"), "{error}");
        drop(listener);
        let refused = connect(None, to).and_then(|stream| {
            wait_for(&stream, true);
            let first = established(&stream);
            assert_eq!(established(&stream).unwrap_err().kind(), ErrorKind::NotConnected);
            first
        });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let foreign = connect(Some("192.0.2.77".parse().unwrap()), to).unwrap_err();
        assert!(foreign.to_string().contains("address of this host"), "{foreign}");
    }
}
