//! Trial of GSO: whether the kernel segments batches on this host.

use super::{GsoBatch, UdpOptions, UdpSocket};
use crate::event::wait_readable;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Limit of the trial: loopback loses nothing, and is faster.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether the kernel segments a batch into datagrams, by a trial on loopback, once per process.
///
/// [`UdpSocket::send_batches`] sends batches either way, but without segmentation it is cheaper to
/// pass datagrams one by one.
pub fn segmentation_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| try_segments().unwrap_or(false))
}

fn try_segments() -> io::Result<bool> {
    let options = UdpOptions {
        local: (Ipv4Addr::LOCALHOST, 0).into(),
        receive_buffer_bytes: 0,
        send_buffer_bytes: 0,
        ..UdpOptions::default()
    };
    let socket = UdpSocket::open(&options)?;
    socket.connect(socket.local_address()?)?;
    let sent = [1; 2500];
    super::gso::send_many(socket.fd(), &[GsoBatch { bytes: &sent, segment: 1000, to: None }])?;
    let (mut buffer, mut received) = ([0; 4096], 0);
    let start = Instant::now();
    while received < sent.len() {
        match socket.receive_connected(&mut buffer)? {
            Some(length) => received += length,
            None if start.elapsed() > PATIENCE => return Ok(false),
            None => {
                wait_readable([socket.as_fd()], Some(PATIENCE));
            }
        }
    }
    Ok(received == sent.len())
}
