//! A session's socket for datagrams, over the back end that carries them.
//!
//! Owned by a publisher's `SendSession` or a subscriber's `ReceiveSockets`, and used by the thread
//! that drives those. An enum, because the back end is a setting of the program: one predictable
//! branch a call, where a type parameter would reach up to the application's types and a trait
//! object would hide the calls from the optimiser.

use crate::peer_socket::{self, PeerKind, PeerOptions, PeerSocket};
use crate::poller::Descriptor;
use crate::sealed_socket::SocketSealing;
use lanecast_os::interface::Interface;
use lanecast_os::udp::{GsoBatch, ReceivedRun, UdpSocket, segmentation_works};
use lanecast_os::xdp::XdpSocket;
use lanecast_protocol::{MICROSECOND, Nanos};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Datagrams of one sendmmsg(2) call, where the system has no segmentation offload.
const SENDMMSG_MAX: usize = 64;

/// Pause between two tries to send what a card did not take.
pub(crate) const UNSENT_PAUSE: Nanos = 100 * MICROSECOND;

/// Sends and receives datagrams at one address, or receives those of one group. Never blocks.
///
/// With [keys](crate::NetSettings::key_file) all that leaves is sealed, and only what was sealed
/// comes in.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    back_end: BackEnd,
    sealing: Option<Box<SocketSealing>>,
    /// Turns in which the card takes no frame, in place of AF_XDP's.
    #[cfg(test)]
    pub(crate) stalled_turns: u32,
}

#[derive(Debug)]
enum BackEnd {
    /// A socket of the system.
    Udp {
        socket: Arc<UdpSocket>,
        /// The system segments runs of datagrams (UDP GSO).
        has_segmentation: bool,
        /// The socket connected to a session's only peer.
        peer: Option<Box<PeerSocket>>,
    },
    /// Past the kernel's network stack.
    Xdp(Box<XdpSocket>),
}

impl DatagramSocket {
    /// A socket of the system for the datagrams of sessions.
    pub(crate) fn udp(
        socket: UdpSocket,
        options: PeerOptions,
        sealing: Option<Box<SocketSealing>>,
    ) -> Self {
        let (socket, has_segmentation) = (Arc::new(socket), segmentation_works());
        let peer = Some(Box::new(PeerSocket::new(options)));
        Self::of(BackEnd::Udp { socket, has_segmentation, peer }, sealing)
    }

    /// Has sends to one address of the kind, and to no other, make it the peer that a further
    /// socket is connected to.
    pub(crate) fn seek_peer(&mut self, wanted: Option<PeerKind>) {
        if let BackEnd::Udp { peer: Some(peer), .. } = &mut self.back_end {
            peer.seek(wanted);
        }
    }

    /// Has the next read look for datagrams of all senders.
    #[inline]
    pub(crate) fn look_at_all(&mut self) {
        if let BackEnd::Udp { peer: Some(peer), .. } = &mut self.back_end {
            peer.look_at_own();
        }
    }

    /// A socket of the system for single datagrams.
    pub(crate) fn single(socket: UdpSocket, sealing: Option<Box<SocketSealing>>) -> Self {
        let socket = Arc::new(socket);
        Self::of(BackEnd::Udp { socket, has_segmentation: false, peer: None }, sealing)
    }

    /// A socket past the kernel's stack.
    pub(crate) fn xdp(socket: XdpSocket, sealing: Option<Box<SocketSealing>>) -> Self {
        Self::of(BackEnd::Xdp(Box::new(socket)), sealing)
    }

    fn of(back_end: BackEnd, sealing: Option<Box<SocketSealing>>) -> Self {
        Self {
            back_end,
            sealing,
            #[cfg(test)]
            stalled_turns: 0,
        }
    }

    /// Has frames sent that the card did not take so far. Returns the time by which to call again,
    /// whether or not there is anything new to send; `Nanos::MAX` if all have left.
    #[inline]
    pub(crate) fn send_rest(&mut self, now: Nanos) -> Nanos {
        if self.leaves_frames() { now.saturating_add(UNSENT_PAUSE) } else { Nanos::MAX }
    }

    #[inline]
    fn leaves_frames(&mut self) -> bool {
        #[cfg(test)]
        if self.stalled_turns > 0 {
            self.stalled_turns -= 1;
            return true;
        }
        let BackEnd::Xdp(socket) = &mut self.back_end else { return false };
        socket.send_rest();
        socket.has_unsent()
    }

    /// The local address.
    ///
    /// # Errors
    /// If the system call fails.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        match &self.back_end {
            BackEnd::Udp { socket, .. } => socket.local_address(),
            BackEnd::Xdp(socket) => Ok(socket.local_address().into()),
        }
    }

    /// Receives a datagram, or a run of them from one sender; `None` if there is none. The length
    /// is 0 if none of them was sealed as it has to be.
    ///
    /// # Errors
    /// As they come from the system.
    #[inline]
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        let Some(sealing) = &mut self.sealing else {
            let received = self.back_end.receive::<false>(into)?;
            return Ok(received.map(|(run, from)| (run.bytes, from)));
        };
        // The lengths that datagrams state are the sender's word: a forged one would take along
        // those behind it.
        let received = self.back_end.receive::<true>(into)?;
        Ok(received.map(|(run, from)| (sealing.open(into, run, from), from)))
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; others as they come from the system.
    #[inline]
    pub(crate) fn send_to(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        match &mut self.sealing {
            None => self.back_end.send_to(bytes, to),
            Some(sealing) => {
                let (sealed, _) = sealing.seal(bytes, bytes.len().max(1), to);
                self.back_end.send_to(sealed, to)
            }
        }
    }

    /// Sends a run of datagrams to its destination; of a run without one, nothing.
    ///
    /// # Errors
    /// Same as [`send_to`](Self::send_to), if nothing was sent.
    pub(crate) fn send_run(&mut self, run: GsoBatch<'_>) -> io::Result<()> {
        match (&mut self.sealing, run.to) {
            (None, _) => self.back_end.send_run(run),
            (Some(sealing), Some(to)) => {
                let (bytes, segment) = sealing.seal(run.bytes, run.segment, to);
                self.back_end.send_run(GsoBatch { bytes, segment, to: run.to })
            }
            (Some(_), None) => Ok(()),
        }
    }

    /// Sets whether this host's own members of groups receive what is sent to them.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn set_multicast_loopback(&mut self, on: bool) -> io::Result<()> {
        match &mut self.back_end {
            BackEnd::Udp { socket, peer, .. } => {
                socket.set_multicast_loopback(on)?;
                if let Some(peer) = peer {
                    peer.set_multicast_loopback(on);
                }
                Ok(())
            }
            BackEnd::Xdp(socket) => socket.set_multicast_loopback(on),
        }
    }

    /// Has a member of `group` not receive what `own`, this host's address, sends to it; returns
    /// whether the back end can.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn exclude_own(&self, group: IpAddr, own: IpAddr) -> io::Result<bool> {
        match (&self.back_end, group, own) {
            (BackEnd::Udp { socket, .. }, IpAddr::V4(group), IpAddr::V4(own)) => {
                socket.exclude_own(group, own).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    /// Undoes [`exclude_own`](Self::exclude_own).
    ///
    /// # Errors
    /// If the group cannot be joined any more.
    pub(crate) fn include_own(
        &self,
        group: IpAddr,
        own: IpAddr,
        interface: &Interface,
    ) -> io::Result<()> {
        match (&self.back_end, group, own) {
            (BackEnd::Udp { socket, .. }, IpAddr::V4(group), IpAddr::V4(own)) => {
                socket.include_own(group, own, interface)
            }
            _ => Ok(()),
        }
    }

    /// Datagrams that were dropped because the receive buffer was full.
    pub(crate) fn dropped(&self) -> u64 {
        match &self.back_end {
            BackEnd::Udp { socket, peer, .. } => {
                let peer = peer.as_ref().and_then(|peer| peer.socket());
                let sockets = [socket].into_iter().chain(peer);
                sockets.map(|socket| u64::from(socket.dropped().unwrap_or(0))).sum()
            }
            BackEnd::Xdp(socket) => socket.dropped(),
        }
    }

    /// Number of sockets that were opened beside the first: descriptors to sleep on.
    pub(crate) fn opened(&self) -> u64 {
        match &self.back_end {
            BackEnd::Udp { peer: Some(peer), .. } => u64::from(peer.socket().is_some()),
            _ => 0,
        }
    }

    /// Adds the descriptors to sleep on.
    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        match &self.back_end {
            BackEnd::Udp { socket, peer, .. } => {
                into.push((socket.clone() as Descriptor, false));
                let peer = peer.as_ref().and_then(|peer| peer.socket());
                into.extend(peer.map(|socket| (socket.clone() as Descriptor, false)));
            }
            BackEnd::Xdp(socket) => {
                into.push((socket.system().clone() as Descriptor, false));
                into.extend(socket.descriptors().map(|it| (it.clone() as Descriptor, false)));
            }
        }
    }
}

impl BackEnd {
    #[inline]
    fn receive<const CUT: bool>(
        &mut self,
        into: &mut [u8],
    ) -> io::Result<Option<(ReceivedRun, SocketAddr)>> {
        match self {
            Self::Udp { socket, peer: Some(peer), .. } => peer.receive::<CUT>(socket, into),
            Self::Udp { socket, .. } => peer_socket::read::<CUT>(socket, into),
            Self::Xdp(socket) => socket.receive(into),
        }
    }

    #[inline]
    fn send_to(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        match self {
            Self::Udp { socket, peer: Some(peer), .. } => peer.send_to(socket, bytes, to),
            Self::Udp { socket, .. } => socket.send_to(bytes, to),
            Self::Xdp(socket) => socket.send_to(bytes, to),
        }
    }

    fn send_run(&mut self, run: GsoBatch<'_>) -> io::Result<()> {
        match self {
            Self::Udp { socket, has_segmentation: true, peer: Some(peer) } => {
                peer.send_run(socket, run)
            }
            Self::Udp { socket, has_segmentation: true, .. } => {
                socket.send_batches(&[run]).map(drop)
            }
            Self::Udp { socket, .. } => send_unsegmented(socket, run),
            Self::Xdp(socket) => socket.send_run(run),
        }
    }
}

/// Sends a run of datagrams by as few system calls as there are without segmentation offload.
fn send_unsegmented(socket: &UdpSocket, run: GsoBatch<'_>) -> io::Result<()> {
    // On the stack: sending allocates nothing.
    let mut runs = [GsoBatch { bytes: &run.bytes[..0], ..run }; SENDMMSG_MAX];
    let mut chunks = run.bytes.chunks(run.segment);
    loop {
        let filled = runs.iter_mut().zip(&mut chunks).map(|(run, chunk)| run.bytes = chunk).count();
        if filled == 0 {
            return Ok(());
        }
        let mut sent = 0;
        // The system may take only the first datagrams of a call.
        while sent < filled {
            match socket.send_batches(&runs[sent..filled]) {
                Ok(count) => sent += count,
                // Part of the run has left: the rest counts as lost rather than go twice.
                Err(error) if sent > 0 && error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}
