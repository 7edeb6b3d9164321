//! `sendmmsg` and `recvmmsg`: several datagrams with one system call.

use std::io::{Error, Result};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Datagrams of one call, sent or received.
const MOST: usize = 64;
/// Room for a received datagram.
const ROOM: usize = 2048;

/// Headers and room, made once.
pub struct Batch {
    headers: Vec<libc::mmsghdr>,
    slices: Vec<libc::iovec>,
    room: Vec<u8>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Batch")
    }
}

impl Default for Batch {
    fn default() -> Self {
        // SAFETY: a header of zeros has no name, no slices and no control data.
        let empty: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let slice = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self { headers: vec![empty; MOST], slices: vec![slice; MOST], room: vec![0; MOST * ROOM] }
    }
}

impl Batch {
    /// Sends `bytes` in datagrams of that size; returns how many the kernel took.
    ///
    /// # Errors
    ///
    /// What the kernel reports about the first of them.
    pub fn send(&mut self, socket: &UdpSocket, bytes: &[u8], size: usize) -> Result<usize> {
        let mut count = 0;
        for datagram in bytes.chunks(size).take(MOST) {
            let start = datagram.as_ptr().cast_mut().cast();
            self.point(count, libc::iovec { iov_base: start, iov_len: datagram.len() });
            count += 1;
        }
        let headers = self.headers.as_mut_ptr();
        // SAFETY: that many headers point at slices of `bytes`, which the call only reads.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers, count as u32, 0) };
        usize::try_from(sent).map_err(|_| Error::last_os_error())
    }

    /// Hands over the datagrams that are there; returns how many.
    ///
    /// # Errors
    ///
    /// What the kernel reports; also that nothing is there.
    pub fn receive(&mut self, socket: &UdpSocket, mut each: impl FnMut(&[u8])) -> Result<usize> {
        for at in 0..MOST {
            let start = self.room[at * ROOM..].as_mut_ptr().cast();
            self.point(at, libc::iovec { iov_base: start, iov_len: ROOM });
        }
        let (headers, flags) = (self.headers.as_mut_ptr(), libc::MSG_WAITFORONE);
        let (fd, timeout) = (socket.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: every header points at its own part of the buffer, which has no other user.
        let count = unsafe { libc::recvmmsg(fd, headers, MOST as u32, flags, timeout) };
        let count = usize::try_from(count).map_err(|_| Error::last_os_error())?;
        for (header, room) in self.headers[..count].iter().zip(self.room.chunks(ROOM)) {
            each(&room[..header.msg_len as usize]);
        }
        Ok(count)
    }

    fn point(&mut self, at: usize, slice: libc::iovec) {
        self.slices[at] = slice;
        self.headers[at].msg_hdr.msg_iov = &raw mut self.slices[at];
        self.headers[at].msg_hdr.msg_iovlen = 1;
    }
}
