//! A socket connected to the one peer of a session, beside the session's own at the same address.
//!
//! Owned by a [`DatagramSocket`](crate::datagram_socket::DatagramSocket). The system finds the
//! route of a connected socket once, and needs no address with each datagram. That socket gets all
//! that comes from its peer, so both are read; what others send comes to the session's own. The
//! peer of a publisher to a group is the group, from which nothing comes.

use lanecast_os::interface::Interface;
use lanecast_os::udp::{GsoBatch, ReceivedRun, UdpOptions, UdpSocket, is_full};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Sends in a row to one address, and to no other, after which it is the peer.
const SENDS: u32 = 8;
/// Reads between two of the session's own socket while nothing is known to be there: each is a
/// system call in which a datagram of the peer may come.
const OWN_INTERVAL: u32 = 32;

/// The kind of address that a peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerKind {
    Host,
    Group,
}

impl PeerKind {
    fn includes(self, address: SocketAddr) -> bool {
        address.ip().is_multicast() == (self == Self::Group)
    }
}

/// Options of the connected socket: those of the session's own.
#[derive(Clone, Debug)]
pub(crate) struct PeerOptions {
    pub(crate) udp: UdpOptions,
    /// Interface and time to live of datagrams to groups.
    pub(crate) interface: Interface,
    pub(crate) hops: u32,
}

/// The connected socket, and who is to be its peer.
#[derive(Debug)]
pub(crate) struct PeerSocket {
    options: PeerOptions,
    connected: Option<(SocketAddr, Arc<UdpSocket>)>,
    /// A peer of this kind is looked for; not after the system has refused a socket.
    wanted: Option<PeerKind>,
    is_refused: bool,
    /// The connected socket may have datagrams of others, from before it was connected.
    has_strangers: bool,
    /// The address of the last sends by the session's own socket, and their number.
    last: Option<SocketAddr>,
    sends: u32,
    reads: u32,
    /// The session's own socket is read first until it is empty: what the peer has sent before the
    /// connection is there.
    own_first: bool,
    /// The session's own socket is read as soon as the connected one has nothing.
    own_is_due: bool,
    /// The last datagram came by the connected socket.
    was_peer: bool,
}

impl PeerSocket {
    pub(crate) const fn new(options: PeerOptions) -> Self {
        Self {
            options,
            connected: None,
            wanted: None,
            is_refused: false,
            has_strangers: false,
            last: None,
            sends: 0,
            reads: 0,
            own_first: false,
            own_is_due: false,
            was_peer: false,
        }
    }

    /// The connected socket, if there is one.
    pub(crate) const fn socket(&self) -> Option<&Arc<UdpSocket>> {
        match &self.connected {
            Some((_, socket)) => Some(socket),
            None => None,
        }
    }

    /// Has a peer of the kind be looked for, or none. A connected one stays.
    pub(crate) const fn seek(&mut self, wanted: Option<PeerKind>) {
        self.wanted = wanted;
    }

    /// Sets whether this host's own members of groups receive what is sent to them.
    pub(crate) fn set_multicast_loopback(&mut self, on: bool) {
        if let Some((peer, socket)) = &self.connected
            && peer.ip().is_multicast()
            && socket.set_multicast_loopback(on).is_err()
        {
            // The session's own socket does what was asked for.
            (self.connected, self.is_refused) = (None, true);
        }
    }

    /// Has the next read look into the session's own socket, too.
    pub(crate) const fn look_at_own(&mut self) {
        self.own_is_due = true;
    }

    /// Sends one datagram by the connected socket if `to` is its peer, or else by `own`.
    #[inline]
    pub(crate) fn send_to(
        &mut self,
        own: &UdpSocket,
        bytes: &[u8],
        to: SocketAddr,
    ) -> io::Result<()> {
        if let Some((peer, socket)) = &self.connected
            && *peer == to
        {
            self.sends = 0;
            match socket.send(bytes) {
                // Refused by the peer's host some time ago, or no route any more: as if it were
                // not connected.
                Err(error) if !is_full(&error) => {}
                sent => return sent,
            }
        } else if self.wanted.is_some_and(|kind| kind.includes(to)) {
            self.note(own, to);
        }
        own.send_to(bytes, to)
    }

    /// Sends a run of datagrams in the same way.
    pub(crate) fn send_run(&mut self, own: &UdpSocket, run: GsoBatch<'_>) -> io::Result<()> {
        if let (Some((peer, socket)), Some(to)) = (&self.connected, run.to)
            && *peer == to
        {
            self.sends = 0;
            match socket.send_batches(&[GsoBatch { to: None, ..run }]) {
                Err(error) if !is_full(&error) => {}
                sent => return sent.map(drop),
            }
        } else if let (Some(kind), Some(to)) = (self.wanted, run.to)
            && kind.includes(to)
        {
            self.note(own, to);
        }
        own.send_batches(&[run]).map(drop)
    }

    /// Counts sends to one address; connects to it after a number of them.
    #[inline]
    fn note(&mut self, own: &UdpSocket, to: SocketAddr) {
        if self.last != Some(to) {
            (self.last, self.sends) = (Some(to), 0);
        }
        self.sends = self.sends.saturating_add(1);
        if self.sends == SENDS && !self.is_refused {
            self.connect(own, to);
        }
    }

    #[cold]
    fn connect(&mut self, own: &UdpSocket, to: SocketAddr) {
        let connected = match self.connected.take() {
            // What the former peer has sent stays readable.
            Some((_, socket)) => socket.connect(to).map(|()| socket),
            None => self.open(own, to).map(Arc::new),
        };
        match connected {
            Ok(socket) => {
                self.connected = Some((to, socket));
                (self.own_first, self.has_strangers) = (true, true);
            }
            Err(_) => self.is_refused = true,
        }
    }

    fn open(&self, own: &UdpSocket, to: SocketAddr) -> io::Result<UdpSocket> {
        let socket = own.open_beside(&self.options.udp)?;
        if to.ip().is_multicast() {
            // Before it is connected: the route is found then.
            socket.send_multicast_by(&self.options.interface, self.options.hops)?;
            socket.set_multicast_loopback(own.multicast_loopback()?)?;
        }
        socket.connect(to)?;
        Ok(socket)
    }

    /// Receives from the connected socket, and now and then from `own`; `CUT` as in [`read`].
    #[inline]
    pub(crate) fn receive<const CUT: bool>(
        &mut self,
        own: &UdpSocket,
        into: &mut [u8],
    ) -> io::Result<Option<(ReceivedRun, SocketAddr)>> {
        let has_peer = self.connected.as_ref().is_some_and(|(peer, _)| !peer.ip().is_multicast());
        if !has_peer && !self.has_strangers {
            return read::<CUT>(own, into);
        }
        self.reads = self.reads.wrapping_add(1);
        // In turn while both have something: one that is never empty must not hide the other.
        let is_turn = self.own_is_due && self.was_peer;
        let own_first = self.own_first || is_turn || self.reads.is_multiple_of(OWN_INTERVAL);
        if own_first && let Some(received) = self.receive_own::<CUT>(own, into)? {
            return Ok(Some(received));
        }
        self.own_first = false;
        if let Some(received) = self.receive_connected::<CUT>(into) {
            self.was_peer = true;
            return Ok(Some(received));
        }
        if self.own_is_due { self.receive_own::<CUT>(own, into) } else { Ok(None) }
    }

    /// Receives from the connected socket. An error is word of the peer's host that it has refused
    /// a datagram: none has come.
    #[inline]
    fn receive_connected<const CUT: bool>(
        &mut self,
        into: &mut [u8],
    ) -> Option<(ReceivedRun, SocketAddr)> {
        let (peer, socket) = self.connected.as_ref()?;
        if !CUT && !self.has_strangers {
            // The sender is known: its address need not be copied.
            let bytes = socket.receive_connected(into).ok().flatten()?;
            return Some((ReceivedRun { bytes, segment: bytes }, *peer));
        }
        match read::<CUT>(socket, into) {
            Ok(Some(received)) => Some(received),
            Ok(None) => {
                self.has_strangers = false;
                None
            }
            Err(_) => None,
        }
    }

    #[inline]
    fn receive_own<const CUT: bool>(
        &mut self,
        own: &UdpSocket,
        into: &mut [u8],
    ) -> io::Result<Option<(ReceivedRun, SocketAddr)>> {
        self.was_peer = false;
        let received = read::<CUT>(own, into)?;
        self.own_is_due = received.is_some();
        Ok(received)
    }
}

/// Receives from a socket. Only with `CUT` the system is asked how long the datagrams of a run are;
/// without, the run counts as one.
#[inline]
pub(crate) fn read<const CUT: bool>(
    socket: &UdpSocket,
    into: &mut [u8],
) -> io::Result<Option<(ReceivedRun, SocketAddr)>> {
    if CUT {
        return socket.receive_run(into);
    }
    let received = socket.receive(into)?;
    Ok(received.map(|(bytes, from)| (ReceivedRun { bytes, segment: bytes }, from)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::interface::interfaces;
    use std::net::Ipv4Addr;
    use std::time::{Duration, Instant};

    /// Longest wait for a datagram within the host.
    const PATIENCE: Duration = Duration::from_secs(5);

    fn options() -> UdpOptions {
        UdpOptions { local: SocketAddr::from(([127, 0, 0, 1], 0)), ..UdpOptions::default() }
    }

    fn loopback() -> Interface {
        let found = interfaces().expect("known").into_iter().find(|it| it.is_loopback);
        found.expect("a loopback interface")
    }

    /// A session's socket, and its connected one.
    struct End {
        own: UdpSocket,
        peer: PeerSocket,
    }

    impl End {
        fn new() -> Self {
            Self::seeking(PeerKind::Host)
        }

        fn seeking(kind: PeerKind) -> Self {
            let (own, interface) = (UdpSocket::open(&options()).expect("a socket"), loopback());
            own.send_multicast_by(&interface, 0).expect("a multicast interface");
            let mut peer = PeerSocket::new(PeerOptions { udp: options(), interface, hops: 0 });
            peer.seek(Some(kind));
            Self { own, peer }
        }

        fn address(&self) -> SocketAddr {
            self.own.local_address().expect("bound")
        }

        fn send(&mut self, times: u32, to: SocketAddr) {
            for _ in 0..times {
                self.peer.send_to(&self.own, b"frame", to).expect("no error ends a session");
            }
        }

        fn peer(&self) -> Option<SocketAddr> {
            self.peer.connected.as_ref().map(|(peer, _)| *peer)
        }

        /// The next datagram, and its sender; the number of reads that it took is bounded.
        fn receive(&mut self) -> (Vec<u8>, SocketAddr) {
            let (mut buffer, began) = (vec![0; 1 << 16], Instant::now());
            loop {
                let received = self.peer.receive::<false>(&self.own, &mut buffer);
                if let Some((run, from)) = received.expect("no error") {
                    return (buffer[..run.bytes].to_vec(), from);
                }
                assert!(began.elapsed() < PATIENCE, "it does not come");
            }
        }
    }

    fn open() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::open(&options()).expect("a socket");
        let address = socket.local_address().expect("bound");
        (socket, address)
    }

    fn next(socket: &UdpSocket) -> SocketAddr {
        let (mut buffer, began) = (vec![0; 1 << 16], Instant::now());
        loop {
            if let Some((_, from)) = socket.receive(&mut buffer).expect("no error") {
                return from;
            }
            assert!(began.elapsed() < PATIENCE, "it does not come");
        }
    }

    #[test]
    fn the_only_peer_is_connected_to_and_others_are_heard() {
        let (mut end, (peer, there), (other, elsewhere)) = (End::new(), open(), open());
        end.send(SENDS - 1, there);
        assert_eq!(end.peer(), None);
        end.send(2, there);
        assert_eq!(end.peer(), Some(there));
        assert_eq!(next(&peer), end.address(), "one source address, by whatever socket");
        peer.send_to(b"of the peer", end.address()).expect("room");
        assert_eq!(end.receive(), (b"of the peer".to_vec(), there));
        other.send_to(b"of another", end.address()).expect("room");
        assert_eq!(end.receive(), (b"of another".to_vec(), elsewhere));
        end.send(1, elsewhere);
        assert_eq!((next(&other), end.peer()), (end.address(), Some(there)));
    }

    #[test]
    fn a_flood_of_the_peer_does_not_hide_another_for_long() {
        let (mut end, (peer, there), (other, elsewhere)) = (End::new(), open(), open());
        end.send(SENDS, there);
        other.send_to(b"of another", end.address()).expect("room");
        for _ in 0..2 * OWN_INTERVAL {
            peer.send_to(b"of the peer", end.address()).expect("room");
        }
        let heard = (0..2 * OWN_INTERVAL).any(|_| end.receive().1 == elsewhere);
        assert!(heard, "the session's own socket has its turn");
    }

    #[test]
    fn what_the_peer_has_sent_before_comes_first() {
        let (mut end, (peer, there)) = (End::new(), open());
        peer.send_to(b"first", end.address()).expect("room");
        end.send(SENDS, there);
        peer.send_to(b"second", end.address()).expect("room");
        assert_eq!([end.receive().0, end.receive().0], [b"first".to_vec(), b"second".to_vec()]);
    }

    #[test]
    fn a_peer_at_another_address_takes_the_place_of_the_former() {
        let (mut end, (peer, there), (moved, elsewhere)) = (End::new(), open(), open());
        end.send(SENDS, there);
        let descriptor = end.peer.socket().map(Arc::as_ptr);
        peer.send_to(b"the last", end.address()).expect("room");
        end.send(SENDS, elsewhere);
        assert_eq!(end.peer(), Some(elsewhere));
        assert_eq!(end.peer.socket().map(Arc::as_ptr), descriptor, "one descriptor");
        assert_eq!(end.receive(), (b"the last".to_vec(), there), "nothing is lost");
        moved.send_to(b"from there", end.address()).expect("room");
        assert_eq!(end.receive(), (b"from there".to_vec(), elsewhere));
    }

    #[test]
    fn two_receivers_in_turn_cost_no_connections() {
        let (mut end, (_peer, there), (_other, elsewhere)) = (End::new(), open(), open());
        for _ in 0..10 * SENDS {
            end.send(1, there);
            end.send(1, elsewhere);
        }
        assert_eq!(end.peer(), None);
    }

    /// A member of a group, and the group's address.
    fn member() -> (UdpSocket, SocketAddr) {
        let group = Ipv4Addr::new(239, 195, 11, 7);
        let local = SocketAddr::from((group, 0));
        let socket = UdpSocket::open(&UdpOptions { local, ..options() }).expect("a socket");
        socket.join(group.into(), &loopback()).expect("a member");
        let address = socket.local_address().expect("bound");
        (socket, address)
    }

    #[test]
    fn a_group_is_connected_to_and_receivers_are_heard() {
        let (mut end, (member, group)) = (End::seeking(PeerKind::Group), member());
        let (receiver, elsewhere) = open();
        // Repairs go to a receiver, which is not the peer for that.
        end.send(10 * SENDS, elsewhere);
        assert_eq!(end.peer(), None);
        end.send(SENDS, group);
        assert_eq!(end.peer(), Some(group));
        for _ in 0..SENDS {
            assert_eq!(next(&member), end.address());
        }
        end.send(1, group);
        assert_eq!(next(&member), end.address(), "one source address, by whatever socket");
        receiver.send_to(b"status", end.address()).expect("room");
        assert_eq!(end.receive(), (b"status".to_vec(), elsewhere));
        // Each is heard by the first read: nothing comes from a group.
        assert_eq!(end.peer.receive::<false>(&end.own, &mut [0; 64]).expect("no error"), None);
        receiver.send_to(b"status", end.address()).expect("room");
        assert!(end.peer.receive::<false>(&end.own, &mut [0; 64]).expect("no error").is_some());
    }

    #[test]
    fn datagrams_to_a_connected_group_are_looped_back_as_the_others_are() {
        let (mut end, (_member, group)) = (End::seeking(PeerKind::Group), member());
        for on in [false, true, false] {
            end.own.set_multicast_loopback(on).expect("an option");
            end.peer.set_multicast_loopback(on);
            // The first time it is connected, as the session's own socket was before.
            end.send(SENDS, group);
            let socket = end.peer.socket().expect("a connected socket");
            assert_eq!(socket.multicast_loopback().expect("an option"), on);
        }
    }

    #[test]
    fn a_peer_that_dies_and_comes_back_is_sent_to_and_heard() {
        let (mut end, (peer, there)) = (End::new(), open());
        end.send(SENDS, there);
        drop(peer);
        // Its host refuses them, which is no error of a session, neither at sends nor at reads.
        let mut buffer = [0; 64];
        for _ in 0..100 {
            end.send(1, there);
            assert_eq!(end.peer.receive::<false>(&end.own, &mut buffer).expect("no error"), None);
        }
        let back = UdpSocket::open(&UdpOptions { local: there, ..options() }).expect("its port");
        end.send(1, there);
        assert_eq!(next(&back), end.address());
        back.send_to(b"again", end.address()).expect("room");
        assert_eq!(end.receive(), (b"again".to_vec(), there));
    }
}
