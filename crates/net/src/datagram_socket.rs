//! A session's socket for datagrams, over the back end that carries them.
//!
//! Owned by a publisher's `SendSession` or a subscriber's `ReceiveSockets`, and used by the thread
//! that drives those. An enum, because the back end is a setting of the program: one predictable
//! branch a call, where a type parameter would reach up to the application's types and a trait
//! object would hide the calls from the optimiser.

use crate::poller::Descriptor;
use lanecast_os::udp::{GsoBatch, UdpSocket, segmentation_works};
use lanecast_os::xdp::XdpSocket;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Datagrams of one sendmmsg(2) call, where the system has no segmentation offload.
const SENDMMSG_MAX: usize = 64;

/// Sends and receives datagrams at one address, or receives those of one group. Never blocks.
#[derive(Debug)]
pub(crate) enum DatagramSocket {
    /// A socket of the system.
    Udp {
        socket: Arc<UdpSocket>,
        /// The system segments runs of datagrams (UDP GSO).
        has_segmentation: bool,
    },
    /// Past the kernel's network stack.
    Xdp(Box<XdpSocket>),
}

impl DatagramSocket {
    pub(crate) fn udp(socket: UdpSocket) -> Self {
        Self::Udp { socket: Arc::new(socket), has_segmentation: segmentation_works() }
    }

    /// The local address.
    ///
    /// # Errors
    /// If the system call fails.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp { socket, .. } => socket.local_address(),
            Self::Xdp(socket) => Ok(socket.local_address().into()),
        }
    }

    /// Receives a datagram, or a run of them from one sender; `None` if there is none.
    ///
    /// # Errors
    /// As they come from the system.
    #[inline]
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        match self {
            Self::Udp { socket, .. } => socket.receive(into),
            Self::Xdp(socket) => socket.receive(into),
        }
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; others as they come from the system.
    #[inline]
    pub(crate) fn send_to(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        match self {
            Self::Udp { socket, .. } => socket.send_to(bytes, to),
            Self::Xdp(socket) => socket.send_to(bytes, to),
        }
    }

    /// Sends a run of datagrams.
    ///
    /// # Errors
    /// Same as [`send_to`](Self::send_to), if nothing was sent.
    pub(crate) fn send_run(&mut self, run: GsoBatch<'_>) -> io::Result<()> {
        match self {
            Self::Udp { socket, has_segmentation: true } => socket.send_batches(&[run]).map(drop),
            Self::Udp { socket, has_segmentation: false } => send_unsegmented(socket, run),
            Self::Xdp(socket) => socket.send_run(run),
        }
    }

    /// Sets whether this host's own members of groups receive what is sent to them.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn set_multicast_loopback(&mut self, on: bool) -> io::Result<()> {
        match self {
            Self::Udp { socket, .. } => socket.set_multicast_loopback(on),
            Self::Xdp(socket) => socket.set_multicast_loopback(on),
        }
    }

    /// Datagrams that were dropped because the receive buffer was full.
    pub(crate) fn dropped(&self) -> u64 {
        match self {
            Self::Udp { socket, .. } => socket.dropped().unwrap_or(0).into(),
            Self::Xdp(socket) => socket.dropped(),
        }
    }

    /// Adds the descriptors to sleep on.
    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        match self {
            Self::Udp { socket, .. } => into.push((Descriptor::Udp(Arc::clone(socket)), false)),
            Self::Xdp(socket) => {
                into.push((Descriptor::Udp(Arc::clone(socket.system())), false));
                into.extend(
                    socket.descriptors().map(|it| (Descriptor::Xdp(Arc::clone(it)), false)),
                );
            }
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
