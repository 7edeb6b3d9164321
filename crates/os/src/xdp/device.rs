//! An interface whose datagrams AF_XDP sockets of this process send and receive.

use super::bpf::{self, Attachment};
use super::neighbour::{Neighbour, Neighbours};
use super::packet::{IP_UDP_BYTES, Mac};
use super::packet_memory::PacketMemory;
use super::ports::Ports;
use super::program::{PortKey, assemble};
use super::queue::{self, Queue, QueueSocket};
use super::{FRAME_BYTES, FRAMES_EACH, QUEUES_MAX, SOCKETS_MAX};
use crate::interface::Interface;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Bytes of a frame that the kernel keeps free before a received datagram.
const HEADROOM: usize = 256;
/// The longest frame: a page.
const FRAME_BYTES_MAX: usize = 4_096;
/// The longest Ethernet header: with a VLAN tag.
const ETHERNET_MAX: usize = 18;
/// Longest wait for a program that is attached to be detached.
const DETACH_MAX: Duration = Duration::from_secs(1);
/// Longest time in which the kernel releases the queues of a process that has ended; on a busy
/// machine its worker has been seen to take more than a second.
const RELEASE_MAX: Duration = Duration::from_secs(10);
/// Time between two attempts to take queues that are in use.
const RELEASE_INTERVAL: Duration = Duration::from_millis(10);

/// Options of an [`XdpDevice`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpOptions {
    /// SO_BUSY_POLL of the sockets: the kernel polls the card's queue when a socket calls it. A
    /// send does, and with zero-copy one in 64 receives that find nothing. Other receives read the
    /// ring in memory and call nothing, so in copy mode an empty receive never polls.
    pub busy_poll: Option<Duration>,
    /// Send buffer of a socket, in bytes; 0 leaves the system's default.
    pub send_buffer_bytes: usize,
}

/// The way by which frames come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpMode {
    /// The driver runs the program; otherwise the kernel's stack does, before all else.
    pub in_driver: bool,
    /// The card reads and writes frames itself; otherwise the kernel copies them.
    pub zero_copy: bool,
    /// Queues of the card that are used.
    pub queues: u32,
}

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_driver { "in the driver" } else { "before the stack (generic)" };
        let copy = if self.zero_copy { "zero-copy" } else { "copying" };
        let plural = if self.queues == 1 { "" } else { "s" };
        write!(f, "{place}, {copy}, {} queue{plural}", self.queues)
    }
}

/// The reason why an interface cannot be used past the kernel's stack.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum XdpError {
    /// The interface is a loopback.
    #[error("{0} is a loopback, which has no card to bypass the kernel to")]
    Loopback(String),
    /// The process has not the rights.
    #[error(
        "the process may not load a program into the kernel ({0}): give it CAP_NET_ADMIN, \
         CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK, for instance by `setcap`, or run it as root"
    )]
    Rights(io::Error),
    /// The kernel locks the memory for frames, and the process may not lock as much.
    #[error(
        "the process may not lock the {bytes} bytes of memory that frames of {interface} need: \
         give it CAP_IPC_LOCK, for instance by `setcap`, or a limit beyond that by \
         `ulimit -l {}` or more", .bytes.div_ceil(1024)
    )]
    LockedMemory {
        /// Name of the interface.
        interface: String,
        /// Bytes of memory for the frames of all its queues.
        bytes: usize,
    },
    /// Another program is attached, or another process has the queues.
    #[error(
        "{0} has a program attached already ({1}): one process can have an interface; look at \
         `ip link show {0}`"
    )]
    Busy(String, io::Error),
    /// Datagrams are longer than a frame's memory.
    #[error("datagrams of {0} bytes do not fit into a frame's memory: set net.datagram to 3500")]
    TooLong(usize),
    /// The driver, or the kernel, has no AF_XDP.
    #[error("the driver of {0}, or this kernel, has no AF_XDP for it ({1})")]
    Driver(String, io::Error),
}

/// An interface of this process, shared by its sockets. The program is detached with the last one.
#[derive(Debug)]
pub struct XdpDevice {
    interface: Interface,
    /// Network namespace: interfaces of several may have one number.
    namespace: u64,
    mac: Mac,
    options: XdpOptions,
    mode: XdpMode,
    neighbours: Neighbours,
    ports: Mutex<Ports>,
    sockets: Mutex<SocketTable>,
    queues: Vec<Queue>,
    memory: PacketMemory,
    /// The program stays attached for as long as this is open.
    _link: OwnedFd,
}

/// The map of sockets, and its places that no socket of this process has.
#[derive(Debug)]
struct SocketTable {
    map: OwnedFd,
    /// Sockets of earlier owners, by their first place. They are kept: frames that were on their
    /// way to one would be lost to the queue with it.
    idle: Vec<(u32, Vec<QueueSocket>)>,
    next: u32,
}

static DEVICES: Mutex<Vec<Weak<XdpDevice>>> = Mutex::new(Vec::new());

impl XdpDevice {
    /// Opens `interface` for datagrams of up to `datagram_bytes`, or takes the device that this
    /// process has open. Waits up to a second while the queues are in use.
    ///
    /// # Errors
    /// See [`XdpError`]: it says what to do.
    pub fn open(
        interface: &Interface,
        datagram_bytes: usize,
        options: XdpOptions,
    ) -> Result<Arc<Self>, XdpError> {
        if interface.is_loopback {
            return Err(XdpError::Loopback(interface.name.clone()));
        }
        let namespace = namespace();
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        devices.retain(|device| device.strong_count() > 0);
        let mut known = devices.iter().filter_map(Weak::upgrade);
        let is_it =
            |it: &Arc<Self>| it.interface.index == interface.index && it.namespace == namespace;
        if let Some(device) = known.find(is_it)
            && device.fits(datagram_bytes)
        {
            return Ok(device);
        }
        let frame_bytes = match datagram_bytes + IP_UDP_BYTES + ETHERNET_MAX + HEADROOM {
            0..=FRAME_BYTES => FRAME_BYTES,
            bytes if bytes <= FRAME_BYTES_MAX => FRAME_BYTES_MAX,
            _ => return Err(XdpError::TooLong(datagram_bytes)),
        };
        // The kernel releases the queues of a process that ended in the background, without a sign,
        // so a successor finds them in use for a moment.
        let begin = Instant::now();
        let device = loop {
            match Self::create(interface, namespace, frame_bytes, options) {
                Ok(device) => break Arc::new(device),
                Err(failure) if begin.elapsed() < failure.patience() => {
                    std::thread::sleep(RELEASE_INTERVAL);
                }
                Err(failure) => return Err(classify(interface, failure)),
            }
        };
        devices.push(Arc::downgrade(&device));
        Ok(device)
    }

    fn create(
        interface: &Interface,
        namespace: u64,
        frame_bytes: usize,
        options: XdpOptions,
    ) -> Result<Self, Failure> {
        let mac = hardware_address(&interface.name)?;
        let count = receive_queues(&interface.name).clamp(1, QUEUES_MAX);
        let sizes = (size_of::<PortKey>() as u32, size_of::<u32>() as u32);
        let ports = bpf::create_map(bpf::MAP_HASH, sizes, SOCKETS_MAX)?;
        let word = size_of::<u32>() as u32;
        let sockets = bpf::create_map(bpf::MAP_XSK, (word, word), SOCKETS_MAX * count)?;
        let code = assemble(ports.as_fd(), sockets.as_fd(), count);
        let program = bpf::load_program(&code)?;
        let (link, attachment) =
            match bpf::attach(program.as_fd(), interface.index, Attachment::Driver) {
                Ok(link) => (link, Attachment::Driver),
                Err(error) if is_busy(&error) => return Err(error.into()),
                Err(_) => {
                    let kind = Attachment::Generic;
                    (bpf::attach(program.as_fd(), interface.index, kind)?, kind)
                }
            };
        let memory = PacketMemory::new((count * FRAMES_EACH) as usize, frame_bytes)?;
        // Without a flag the driver's zero-copy mode is taken if it has one.
        let copy = if attachment == Attachment::Driver { 0 } else { libc::XDP_COPY };
        let flags = libc::XDP_USE_NEED_WAKEUP | copy;
        let mut queues = Vec::new();
        for index in 0..count {
            let holder = queue::socket()?;
            if index == 0 {
                let refused = |error| Failure::Memory(memory.bytes(), error);
                memory.register(holder.as_fd()).map_err(refused)?;
            }
            let at = (interface.index, index);
            let queue = Queue::open(holder, &memory, at, flags, queues.first());
            queues.push(queue.map_err(Failure::Queue)?);
        }
        let mode = XdpMode {
            in_driver: attachment == Attachment::Driver,
            zero_copy: queues.first().is_some_and(Queue::is_zero_copy),
            queues: count,
        };
        Ok(Self {
            interface: interface.clone(),
            namespace,
            mac,
            options,
            mode,
            neighbours: Neighbours::open(interface.index)?,
            ports: Mutex::new(Ports::new(ports)),
            sockets: Mutex::new(SocketTable { map: sockets, idle: Vec::new(), next: 0 }),
            queues,
            memory,
            _link: link,
        })
    }

    fn fits(&self, datagram_bytes: usize) -> bool {
        let frame_bytes = self.memory.registration().chunk_size as usize;
        datagram_bytes + IP_UDP_BYTES + ETHERNET_MAX + HEADROOM <= frame_bytes
    }

    /// The way by which frames come and go.
    pub const fn mode(&self) -> XdpMode {
        self.mode
    }

    /// Looks next hops up again, whether other programs have joined the groups, and whether sockets
    /// whose owners read nothing keep too many frames. Called a few times a second, off the path of
    /// messages.
    pub fn refresh(&self) {
        self.neighbours.refresh();
        self.ports().refresh();
        self.queues.iter().for_each(|queue| queue.lock().relieve(&self.memory));
    }

    pub(super) const fn mac(&self) -> Mac {
        self.mac
    }

    /// The longest IP packet, in bytes.
    pub(super) const fn mtu(&self) -> usize {
        self.interface.mtu as usize
    }

    pub(super) const fn memory(&self) -> &PacketMemory {
        &self.memory
    }

    pub(super) fn queue(&self, index: usize) -> &Queue {
        &self.queues[index]
    }

    pub(super) fn neighbour(&self, destination: Ipv4Addr) -> Option<Arc<Neighbour>> {
        self.neighbours.find(destination)
    }

    /// Takes one socket for each queue, and has them receive what comes to `address`; returns
    /// their first place in the map of sockets.
    pub(super) fn take_sockets(
        &self,
        address: SocketAddrV4,
    ) -> io::Result<(u32, Vec<QueueSocket>)> {
        let mut table = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = if let Some(idle) = table.idle.pop() {
            idle
        } else {
            let place = table.next;
            if place >= SOCKETS_MAX * self.mode.queues {
                return Err(io::Error::other("all AF_XDP sockets of the interface are in use"));
            }
            let (mut sockets, mut shares) = (Vec::new(), Vec::new());
            for (number, queue) in (place..).zip(&self.queues) {
                let (socket, share) = queue.open_socket(self.interface.index)?;
                self.configure(&socket)?;
                bpf::update(table.map.as_fd(), &number, &socket.fd.as_raw_fd())?;
                sockets.push(socket);
                shares.push(share);
            }
            // Only now: a share keeps its socket's rings mapped, and sockets of an attempt that
            // failed have no owner who would read them.
            for (queue, share) in self.queues.iter().zip(shares) {
                queue.lock().add_share(share);
            }
            table.next += self.mode.queues;
            (place, sockets)
        };
        drop(table);
        self.ports().add(address, taken.0);
        Ok(taken)
    }

    /// Ends what [`take_sockets`](Self::take_sockets) began: what comes to `address` passes to the
    /// kernel's stack again.
    pub(super) fn stop(&self, address: SocketAddrV4, place: u32) {
        self.ports().remove(address, place);
    }

    /// Takes sockets back, for another owner.
    pub(super) fn put_back(&self, place: u32, sockets: Vec<QueueSocket>) {
        let mut table = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        table.idle.push((place, sockets));
    }

    fn configure(&self, socket: &QueueSocket) -> io::Result<()> {
        let fd = (*socket.fd).as_fd();
        crate::socket::Direction::Out.reserve(fd, self.options.send_buffer_bytes)?;
        if let Some(time) = self.options.busy_poll {
            crate::socket::poll_busily(fd, time)?;
        }
        Ok(())
    }

    fn ports(&self) -> MutexGuard<'_, Ports> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Failure of an attempt to take an interface.
enum Failure {
    /// A queue, after the program was attached: no other process has the interface any more.
    Queue(io::Error),
    /// Registration of so many bytes of memory for frames.
    Memory(usize, io::Error),
    Other(io::Error),
}

impl Failure {
    /// Time since the first attempt within which another one may succeed.
    fn patience(&self) -> Duration {
        match self {
            Self::Queue(error) if is_busy(error) => RELEASE_MAX,
            Self::Other(error) if is_busy(error) => DETACH_MAX,
            _ => Duration::ZERO,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(error)
    }
}

/// Finds the reason of a failure, for its reader.
fn classify(interface: &Interface, failure: Failure) -> XdpError {
    let name = interface.name.clone();
    let error = match failure {
        // The limit of locked memory; the kernel has no other use of this number here.
        Failure::Memory(bytes, error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
            return XdpError::LockedMemory { interface: name, bytes };
        }
        Failure::Queue(error) | Failure::Memory(_, error) | Failure::Other(error) => error,
    };
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => XdpError::Rights(error),
        Some(libc::EBUSY | libc::EEXIST) => XdpError::Busy(name, error),
        _ => XdpError::Driver(name, error),
    }
}

fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// The number of this thread's network namespace; 0 if unknown.
fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |metadata| metadata.ino())
}

/// The hardware address of an interface, by the kernel's ioctl, as /sys may show another
/// namespace's interfaces.
fn hardware_address(name: &str) -> io::Result<Mac> {
    let mut all = nix::ifaddrs::getifaddrs()?.filter(|entry| entry.interface_name == name);
    let address = all.find_map(|entry| {
        let link = *entry.address.as_ref()?.as_link_addr()?;
        // Tunnels have an address of zeroes.
        (link.hatype() == libc::ARPHRD_ETHER).then(|| link.addr())?
    });
    address.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "it has no Ethernet address"))
}

/// The number of receive queues of an interface: its ethtool channels, or 1 if it has none.
fn receive_queues(name: &str) -> u32 {
    crate::interface::receive_queues(name).unwrap_or(1)
}
