//! Socket options of UDP and TCP sockets, and errors with advice.

use crate::checked;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// A direction, with the options that size its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    In,
    Out,
}

impl Direction {
    /// The buffer's size, in bytes.
    pub(crate) fn room(self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let option = match self {
            Self::In => libc::SO_RCVBUF,
            Self::Out => libc::SO_SNDBUF,
        };
        // The kernel doubles the requested size, to have room for its own records.
        get(socket, libc::SOL_SOCKET, option).map(|bytes| usize::try_from(bytes).unwrap_or(0) / 2)
    }

    /// Sets the buffer's size, beyond the system's limit if the process may; 0 leaves it.
    pub(crate) fn reserve(self, socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        let (ask, insist) = match self {
            Self::In => (libc::SO_RCVBUF, libc::SO_RCVBUFFORCE),
            Self::Out => (libc::SO_SNDBUF, libc::SO_SNDBUFFORCE),
        };
        set(socket, libc::SOL_SOCKET, ask, &value)?;
        if self.room(socket)? < bytes {
            // Only privileged processes may; others read back the size that they got.
            let _ = set(socket, libc::SOL_SOCKET, insist, &value);
        }
        Ok(())
    }
}

/// Lets an empty receive poll the network card's queue for `time` (SO_BUSY_POLL).
pub(crate) fn poll_busily(socket: BorrowedFd<'_>, time: Duration) -> io::Result<()> {
    let micros = i32::try_from(time.as_micros()).unwrap_or(i32::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &micros).map_err(|error| {
        let what = "is refused: give the process CAP_NET_ADMIN, or set \
                    `sysctl net.core.busy_read` instead, or poll no card";
        told(&error, format_args!("busy polling for {micros} us {what}"))
    })
}

/// Sets an option; `T` must have the kernel's layout.
pub(crate) fn set<T: Copy>(
    socket: BorrowedFd<'_>,
    level: i32,
    option: i32,
    value: &T,
) -> io::Result<()> {
    let (value, length) = (core::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` is readable for the given length.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) })?;
    Ok(())
}

/// Reads an integer option.
pub(crate) fn get(socket: BorrowedFd<'_>, level: i32, option: i32) -> io::Result<i32> {
    let (mut value, mut length) = (0_i32, size_of::<i32>() as libc::socklen_t);
    let (to, fd) = ((&raw mut value).cast(), socket.as_raw_fd());
    // SAFETY: `value` is writable for the given length.
    checked(unsafe { libc::getsockopt(fd, level, option, to, &mut length) })?;
    Ok(value)
}

/// Packets that the kernel dropped because the socket's buffer was full.
pub(crate) fn dropped(socket: BorrowedFd<'_>) -> io::Result<u32> {
    // The kernel's `SK_MEMINFO_DROPS`, the last of nine numbers.
    const DROPS: usize = 8;
    let mut numbers = [0_u32; DROPS + 1];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    let (to, fd) = ((&raw mut numbers).cast(), socket.as_raw_fd());
    // SAFETY: `numbers` is writable for the given length.
    checked(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, to, &mut length) })?;
    Ok(numbers[DROPS])
}

/// Adds the attempted action and advice to `error`.
pub(crate) fn told(error: &io::Error, what: fmt::Arguments<'_>) -> io::Error {
    io::Error::new(error.kind(), format!("{what} ({error})"))
}
