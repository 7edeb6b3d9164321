//! Does the kernel cut runs into datagrams here?

use super::{GsoBatch, UdpOptions, UdpSocket};
use crate::event::wait_readable;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Loopback loses nothing: what has not come by then does not come.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether the kernel cuts a run into datagrams, as a trial on the loopback interface shows.
///
/// It is tried once; [`UdpSocket::send_batches`] sends runs either way, but where this is false it
/// is cheaper to give it datagrams one by one.
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
    socket.send_many(&[GsoBatch { bytes: &sent, segment: 1000, to: None }])?;
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
