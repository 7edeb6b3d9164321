//! The system calls of an AF_XDP socket.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The result of a system call that tells errors by a negative number.
pub fn checked(result: i32) -> Result<i32> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// Makes a socket.
pub fn open() -> Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: it only makes a descriptor.
    let fd = checked(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
    // SAFETY: the descriptor is new, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an option of its level.
pub fn set_option<T>(socket: &OwnedFd, option: i32, value: &T) -> Result<()> {
    let (fd, length) = (socket.as_raw_fd(), size_of::<T>() as libc::socklen_t);
    let from = std::ptr::from_ref(value).cast();
    // SAFETY: `value` is readable for the given length.
    checked(unsafe { libc::setsockopt(fd, libc::SOL_XDP, option, from, length) }).map(drop)
}

/// Registers the memory of its frames.
pub fn register(socket: &OwnedFd, address: u64, bytes: usize, frame: usize) -> Result<()> {
    // SAFETY: all bits zero are valid numbers.
    let mut registration: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    registration.addr = address;
    registration.len = bytes as u64;
    registration.chunk_size = frame as u32;
    set_option(socket, libc::XDP_UMEM_REG, &registration)
}

/// Binds it to the first queue. Copies are asked for, so that no figure depends on the driver.
pub fn bind(socket: &OwnedFd, interface: u32) -> Result<()> {
    let name = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: interface,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    let (at, length) = ((&raw const name).cast(), size_of_val(&name) as libc::socklen_t);
    // SAFETY: `name` is readable for the given length.
    checked(unsafe { libc::bind(socket.as_raw_fd(), at, length) }).map(drop)
}
