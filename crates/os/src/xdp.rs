//! Datagrams past the kernel's network stack: AF_XDP.
//!
//! An [`XdpDevice`] is one interface of this process: a program attached to it (`program`), memory
//! for frames that it shares with the kernel (`packet_memory`), and the card's queues (`queue`,
//! `ring`), whose frames its sockets share (`received`). An [`XdpSocket`] on it sends and receives
//! the datagrams of one address and port, as Ethernet frames (`packet`) to hardware addresses that
//! the kernel resolves (`neighbour`). All other frames pass to the kernel's stack.
//!
//! The program is attached by a link, whose descriptor is all that holds it: it is gone with the
//! process, however that ends.

mod bpf;
mod device;
mod gathered_run;
mod neighbour;
pub mod packet;
mod packet_memory;
mod ports;
mod program;
mod queue;
mod received;
mod ring;
mod socket;

pub use self::device::{XdpDevice, XdpError, XdpMode, XdpOptions};
pub use self::socket::XdpSocket;

/// Entries of a socket's ring on one queue: the datagrams that it can hold unread.
pub const RING_FRAMES: u32 = 2_048;
/// Frames for receiving of one queue, shared by all sockets on it.
const FILL_FRAMES: u32 = 4_096;
/// Frames for sending of one queue, shared by all sockets that send by it.
const SEND_FRAMES: u32 = 2_048;
/// Frames of one queue.
const FRAMES_EACH: u32 = FILL_FRAMES + SEND_FRAMES;
/// Bytes of a frame, unless datagrams are longer than it.
const FRAME_BYTES: usize = 2_048;
/// Bytes of memory for the frames of one queue, which the kernel locks; twice as many with
/// datagrams that are longer than a common packet.
pub const QUEUE_BYTES: usize = FRAMES_EACH as usize * FRAME_BYTES;
/// The most sockets of a device.
const SOCKETS_MAX: u32 = 128;
/// The most queues of a card that are used; datagrams of others pass to the kernel's stack.
pub const QUEUES_MAX: u32 = 16;
