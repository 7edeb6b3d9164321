//! Sending a run of datagrams, with or without segmentation offload of the system.
//!
//! Used by a publisher's `SendSession`.

use lanecast_os::udp::{GsoBatch, UdpSocket};
use std::io;

/// Datagrams of one sendmmsg(2) call, where the system has no segmentation offload.
const SENDMMSG_MAX: usize = 64;

/// Sends a run of datagrams by one system call with segmentation offload, or a few without.
pub(crate) fn send_run(
    socket: &UdpSocket,
    run: GsoBatch<'_>,
    has_segmentation: bool,
) -> io::Result<()> {
    if has_segmentation {
        return socket.send_batches(&[run]).map(drop);
    }
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
