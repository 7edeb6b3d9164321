//! A socket that sends and receives the datagrams of one address past the kernel's stack.

use super::device::XdpDevice;
use super::gathered_run::GatheredRun;
use super::neighbour::Neighbour;
use super::packet::{self, HEADER_BYTES, IP_UDP_BYTES, Mac};
use super::packet_memory::FrameBuffer;
use super::queue::QueueSocket;
use super::received::{REFILL, RUN_MAX, Received};
use super::{SEND_FRAMES, SOCKETS_MAX};
use crate::udp::{GSO_SEGMENTS_MAX, GsoBatch, ReceivedRun, UdpSocket};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Free frames that are taken from a queue at a time, or as many as a run needs.
const TAKE: usize = 16;
/// Receives without a frame between two looks at the socket of the system.
const SYSTEM_INTERVAL: u32 = 64;
/// Looks without a result after which the socket of the system is looked at seldom again.
const SYSTEM_PATIENCE: u32 = 64;
/// Kicks of one send: the kernel sends up to 32 frames by each.
const KICKS_MAX: u32 = 16;
/// The most destinations that a socket remembers.
const DESTINATIONS_MAX: usize = 512;

const _: () = {
    // Sockets that send no more keep less than they took at a time.
    let kept = SOCKETS_MAX as usize * (TAKE - 1);
    assert!(kept + GSO_SEGMENTS_MAX <= SEND_FRAMES as usize, "a run finds its frames");
};

/// Sends and receives datagrams at one IPv4 address, or receives those of one group; belongs to
/// one thread at a time.
///
/// It stands beside a socket of the system with the same address. That one holds the port and the
/// membership of the group, and carries what cannot go past the stack: datagrams to this host, to
/// destinations behind other interfaces, and to those whose hardware address is not known yet.
#[derive(Debug)]
pub struct XdpSocket {
    system: Arc<UdpSocket>,
    device: Arc<XdpDevice>,
    address: SocketAddrV4,
    place: u32,
    queues: Vec<QueueSocket>,
    /// Datagrams that the queues' sockets had dropped before this owner took them.
    dropped_before: u64,
    /// Queue that datagrams leave by.
    out: usize,
    free: Vec<FrameBuffer>,
    /// The kernel has not taken all frames from the ring.
    is_pending: bool,
    destinations: Vec<(Ipv4Addr, Arc<Neighbour>)>,
    /// Index of the last destination.
    last: usize,
    hops: u8,
    /// Members of groups on this host receive what is sent to them.
    loops_back: bool,
    idle: u32,
    /// Looks at the socket of the system, each time, that are left.
    system_looks: u32,
}

impl XdpSocket {
    /// Opens a socket beside `system`, which is bound to an IPv4 address of the device, or to a
    /// group. Multicast has a time to live of `hops`.
    ///
    /// # Errors
    /// If the address is none of IPv4, or the device has no more sockets.
    pub fn open(
        device: &Arc<XdpDevice>,
        system: UdpSocket,
        hops: u32,
    ) -> Result<Self, (UdpSocket, io::Error)> {
        let address = match system.local_address() {
            Ok(SocketAddr::V4(address)) => address,
            Ok(_) => return Err((system, io::ErrorKind::AddrNotAvailable.into())),
            Err(error) => return Err((system, error)),
        };
        let (place, queues) = match device.take_sockets(address) {
            Ok(taken) => taken,
            Err(error) => return Err((system, error)),
        };
        Ok(Self {
            system: Arc::new(system),
            device: Arc::clone(device),
            address,
            place,
            out: out_queue(place, queues.len()),
            dropped_before: dropped(&queues),
            queues,
            free: Vec::with_capacity(GSO_SEGMENTS_MAX + TAKE),
            is_pending: false,
            destinations: Vec::new(),
            last: 0,
            hops: u8::try_from(hops).unwrap_or(u8::MAX),
            loops_back: true,
            idle: 0,
            system_looks: SYSTEM_PATIENCE,
        })
    }

    /// The local address, a group's for a socket that receives from one.
    pub const fn local_address(&self) -> SocketAddrV4 {
        self.address
    }

    /// The socket of the system beside it.
    pub const fn system(&self) -> &Arc<UdpSocket> {
        &self.system
    }

    /// Descriptors that become readable when a datagram arrives, beside that of
    /// [`system`](Self::system).
    pub fn descriptors(&self) -> impl Iterator<Item = &Arc<OwnedFd>> {
        self.queues.iter().map(|queue| &queue.fd)
    }

    /// Receives a datagram, or several from one sender, one behind the other, all but the last
    /// equally long; `None` if there is none. Bytes that are no datagram to this socket are
    /// dropped.
    ///
    /// `into` should have [`RECEIVE_BYTES_MAX`](crate::udp::RECEIVE_BYTES_MAX) bytes.
    ///
    /// # Errors
    /// As they come from the system.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<(ReceivedRun, SocketAddr)>> {
        // However much comes: what waits here may be what the other side waits for.
        self.send_rest();
        for index in 0..self.queues.len() {
            if let Some((run, from)) = self.receive_from_queue(index, into) {
                self.idle = 0;
                return Ok(Some((run, from.into())));
            }
        }
        self.receive_from_system(into)
    }

    #[inline]
    fn receive_from_queue(
        &mut self,
        index: usize,
        into: &mut [u8],
    ) -> Option<(ReceivedRun, SocketAddrV4)> {
        let memory = self.device.memory();
        let mut received = self.queues[index].receive.lock();
        let Received { ring, used } = &mut *received;
        let mut run = GatheredRun::default();
        let mut frames = 0;
        while frames < RUN_MAX && !run.is_complete() {
            let Some(entry) = ring.next() else { break };
            // SAFETY: the ring hands each frame over once.
            let frame = unsafe { memory.returned(entry.addr) };
            let bytes = memory.received(&frame, entry.addr, entry.len);
            let datagram = packet::read(bytes, self.device.mac(), self.address);
            if let Some(datagram) = datagram
                && !run.append(datagram.payload, datagram.from, into)
            {
                ring.put_back();
                break;
            }
            used.push(frame);
            frames += 1;
        }
        if frames > 0 {
            ring.release();
            if used.len() >= REFILL {
                self.device.queue(index).lock().refill(memory, used);
            }
        }
        run.finish()
    }

    /// Looks at the socket of the system, if that is due.
    fn receive_from_system(
        &mut self,
        into: &mut [u8],
    ) -> io::Result<Option<(ReceivedRun, SocketAddr)>> {
        self.idle = self.idle.wrapping_add(1);
        // Its reading is a system call, which hardly ever finds anything.
        let is_due = self.idle.is_multiple_of(SYSTEM_INTERVAL);
        if self.system_looks == 0 && !is_due {
            return Ok(None);
        }
        if is_due {
            self.look_after_queues();
        }
        let received = self.system.receive_run(into);
        let has_come = matches!(received, Ok(Some(_)));
        let looks = self.system_looks.saturating_sub(1);
        self.system_looks = if has_come { SYSTEM_PATIENCE } else { looks };
        received
    }

    /// Sees to it that the queues have empty frames: nothing may come because they have none.
    fn look_after_queues(&self) {
        // One at a time: others look at the rest.
        let index = (self.idle / SYSTEM_INTERVAL) as usize % self.queues.len().max(1);
        self.device.queue(index).lock().relieve(self.device.memory());
        if self.device.mode().zero_copy {
            self.queues.iter().for_each(QueueSocket::wake_receive);
        }
    }

    /// Sends one datagram to `to`.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; others as they come from the system.
    #[inline]
    pub fn send_to(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.send(bytes, bytes.len().max(1), to)
    }

    /// Sends a run of datagrams; of a run without a receiver, nothing.
    ///
    /// # Errors
    /// Same as [`send_to`](Self::send_to), if nothing was sent.
    pub fn send_run(&mut self, run: GsoBatch<'_>) -> io::Result<()> {
        run.to.map_or(Ok(()), |to| self.send(run.bytes, run.segment, to))
    }

    #[inline]
    fn send(&mut self, bytes: &[u8], segment: usize, to: SocketAddr) -> io::Result<()> {
        let fits = segment.min(bytes.len()) + IP_UDP_BYTES <= self.device.mtu();
        let way = match to {
            SocketAddr::V4(to) if fits => self.way_to(*to.ip()).map(|way| (way, to)),
            _ => None,
        };
        let Some((mac, to)) = way else {
            let batch = GsoBatch { bytes, segment, to: Some(to) };
            return self.system.send_batches(&[batch]).map(drop);
        };
        let count = bytes.len().div_ceil(segment).max(1);
        self.make_room(count)?;
        let memory = self.device.memory();
        let addresses = ((self.device.mac(), mac), (self.address, to));
        let hops = if to.ip().is_multicast() { self.hops } else { 64 };
        let ring = &mut self.queues[self.out].transmit;
        for number in 0..count {
            let start = number * segment;
            let payload = &bytes[start..(start + segment).min(bytes.len())];
            let Some(mut frame) = self.free.pop() else { break };
            debug_assert!(payload.len() + HEADER_BYTES <= memory.bytes_mut(&mut frame).len());
            let (macs, ends) = addresses;
            let length = packet::write(memory.bytes_mut(&mut frame), macs, ends, hops, payload);
            let (addr, len) = (frame.into_address(), length as u32);
            ring.push(libc::xdp_desc { addr, len, options: 0 });
        }
        ring.submit();
        self.kick();
        Ok(())
    }

    /// The hardware address on the way to `to`; `None` if that leads through the kernel's stack.
    #[inline]
    fn way_to(&mut self, to: Ipv4Addr) -> Option<Mac> {
        if to.is_multicast() {
            // The card does not loop frames back: the stack sends them, and copies them.
            return (!self.loops_back).then(|| packet::multicast_mac(to));
        }
        match self.destinations.get(self.last) {
            Some((known, neighbour)) if *known == to => neighbour.mac(),
            _ => self.find(to),
        }
    }

    #[cold]
    fn find(&mut self, to: Ipv4Addr) -> Option<Mac> {
        if let Some(at) = self.destinations.iter().position(|(known, _)| *known == to) {
            self.last = at;
        } else {
            let neighbour = self.device.neighbour(to)?;
            // Bounded: addresses come from frames.
            if self.destinations.len() >= DESTINATIONS_MAX {
                self.destinations.clear();
            }
            self.last = self.destinations.len();
            self.destinations.push((to, neighbour));
        }
        self.destinations[self.last].1.mac()
    }

    /// Whether the kernel has left frames in the ring, which go out by the next send or receive, or
    /// by [`send_rest`](Self::send_rest).
    pub const fn has_unsent(&self) -> bool {
        self.is_pending
    }

    /// Has the kernel send what it left in the ring.
    #[inline]
    pub fn send_rest(&mut self) {
        if self.is_pending {
            self.kick();
        }
    }

    /// Makes room for `count` frames in the ring, and takes as many.
    #[inline]
    fn make_room(&mut self, count: usize) -> io::Result<()> {
        self.send_rest();
        if self.free.len() < count {
            let queue = self.device.queue(self.out);
            queue.lock().take_free(self.device.memory(), TAKE.max(count), &mut self.free);
        }
        let has_room = self.queues[self.out].transmit.has_room(count as u32);
        if self.free.len() < count || !has_room {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    /// Has the kernel send what is in the ring.
    #[inline]
    fn kick(&mut self) {
        let socket = &self.queues[self.out];
        for _ in 0..KICKS_MAX {
            // The kernel may be busy, or the card's queue full: the next call tries again.
            let _ = socket.kick();
            self.is_pending = !socket.transmit.is_empty();
            if !self.is_pending {
                break;
            }
        }
    }

    /// Sets whether this host's own members of groups receive what the socket sends.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_multicast_loopback(&mut self, on: bool) -> io::Result<()> {
        self.system.set_multicast_loopback(on)?;
        self.loops_back = on;
        Ok(())
    }

    /// Datagrams that were dropped since the socket was opened, for lack of room, or as they were
    /// not read for too long.
    pub fn dropped(&self) -> u64 {
        let own = dropped(&self.queues).saturating_sub(self.dropped_before);
        own + u64::from(self.system.dropped().unwrap_or(0))
    }
}

/// Datagrams that were dropped at sockets of queues, for all their owners.
fn dropped(queues: &[QueueSocket]) -> u64 {
    queues.iter().map(QueueSocket::dropped).sum()
}

/// The queue by which the socket with this first place sends. Sockets spread over the queues, so
/// that they do not wait for one another; each has a place on every queue.
const fn out_queue(place: u32, queues: usize) -> usize {
    let queues = if queues == 0 { 1 } else { queues };
    place as usize / queues % queues
}

impl Drop for XdpSocket {
    fn drop(&mut self) {
        // Before the rings are emptied: hardly anything comes behind that.
        self.device.stop(self.address, self.place);
        let memory = self.device.memory();
        for (index, socket) in self.queues.iter_mut().enumerate() {
            // The rings are kept for another owner, who may never come: frames that stayed in them
            // would be missing to all sockets on the queue.
            let mut received = socket.receive.lock();
            let Received { ring, used } = &mut *received;
            while let Some(entry) = ring.next() {
                // SAFETY: the ring hands each frame over once.
                used.push(unsafe { memory.returned(entry.addr) });
            }
            ring.release();
            let mut frames = self.device.queue(index).lock();
            frames.refill(memory, used);
            if index == self.out {
                frames.put_back(&mut self.free);
            }
        }
        self.device.put_back(self.place, std::mem::take(&mut self.queues));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_send_by_all_queues_in_turn() {
        let queues =
            |count: u32| (0..6).map(move |socket| out_queue(socket * count, count as usize));
        assert!(queues(4).eq([0, 1, 2, 3, 0, 1]));
        assert!(queues(1).eq([0; 6]));
        assert_eq!(out_queue(0, 0), 0);
    }
}
