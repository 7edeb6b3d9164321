//! Socket calls on the path of a message, by syscall(2) directly.
//!
//! The C library's wrappers are cancellation points: two locked instructions, some 30 ns a call, as
//! soon as the process has a second thread.

use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Sends `bytes`, to `to` if given: send(2), with its flags. Returns the number of bytes sent,
/// negative for an error.
#[inline(always)]
pub(crate) fn send<N>(
    fd: i32,
    bytes: &[u8],
    flags: i32,
    to: Option<(&N, libc::socklen_t)>,
) -> libc::c_long {
    let (name, name_length) = to.map_or((null(), 0), |(name, length)| (&raw const *name, length));
    debug_assert!(name_length as usize <= size_of::<N>(), "it is read that far");
    let (start, length) = (bytes.as_ptr(), bytes.len());
    // SAFETY: `bytes` and `name` are readable for the given length.
    unsafe { libc::syscall(libc::SYS_sendto, fd, start, length, flags, name, name_length) }
}

/// Receives into `bytes`. Returns the number of bytes received, negative for an error.
#[inline(always)]
pub(crate) fn receive(fd: i32, bytes: &mut [u8]) -> libc::c_long {
    receive_with(fd, bytes, 0)
}

/// The same with flags: recv(2).
#[inline(always)]
fn receive_with(fd: i32, bytes: &mut [u8], flags: i32) -> libc::c_long {
    let (start, length) = (bytes.as_mut_ptr(), bytes.len());
    let (name, name_length) = (null_mut::<u8>(), null_mut::<libc::socklen_t>());
    // SAFETY: `bytes` is writable for the given length; no name is asked for.
    unsafe { libc::syscall(libc::SYS_recvfrom, fd, start, length, flags, name, name_length) }
}

/// Receives nothing: lets the driver behind an AF_XDP socket go on.
pub(crate) fn receive_nothing(fd: i32) {
    let (none, no_length) = (null_mut::<u8>(), null_mut::<libc::socklen_t>());
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: no byte and no name is asked for.
    unsafe { libc::syscall(libc::SYS_recvfrom, fd, none, 0_usize, flags, none, no_length) };
}

/// Same as [`receive`], with the sender's address in `name`. The second number is its length.
#[inline(always)]
pub(crate) fn receive_from<N>(
    fd: i32,
    bytes: &mut [u8],
    name: &mut MaybeUninit<N>,
) -> (libc::c_long, libc::socklen_t) {
    let mut name_length = size_of::<N>() as libc::socklen_t;
    let (start, length) = (bytes.as_mut_ptr(), bytes.len());
    let name = name.as_mut_ptr();
    // SAFETY: `bytes` and `name` are writable for the given length.
    let got = unsafe {
        libc::syscall(libc::SYS_recvfrom, fd, start, length, 0, name, &raw mut name_length)
    };
    (got, name_length)
}

/// Same as [`receive_from`], and tells how datagrams were gathered. The third number is the length
/// of each of them but the last, or 0 if there is one datagram only.
#[inline]
pub(crate) fn receive_run<N>(
    fd: i32,
    bytes: &mut [u8],
    name: &mut MaybeUninit<N>,
) -> (libc::c_long, libc::socklen_t, usize) {
    // SAFETY: all bits zero is an empty control message.
    let mut control: Gathering = unsafe { core::mem::zeroed() };
    let mut slice = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all bits zero is a message without a name, slices or control data.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_name = name.as_mut_ptr().cast();
    message.msg_namelen = size_of::<N>() as libc::socklen_t;
    (message.msg_iov, message.msg_iovlen) = (&raw mut slice, 1);
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Gathering>() as _;
    // SAFETY: `bytes`, `name` and `control` are writable for the length given in `message`.
    let got = unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut message, 0) };
    (got, message.msg_namelen, control.segment())
}

/// The control message about datagrams that were gathered (UDP GRO).
#[repr(C)]
struct Gathering {
    header: libc::cmsghdr,
    segment: libc::c_int,
    _fill: libc::c_int,
}

const _: () = {
    // SAFETY: these only compute.
    assert!(size_of::<Gathering>() == unsafe { libc::CMSG_SPACE(4) } as usize);
};

impl Gathering {
    /// The length of each datagram but the last; 0 if the system has written nothing.
    #[inline]
    fn segment(&self) -> usize {
        let kind = (self.header.cmsg_level, self.header.cmsg_type);
        let is_written = kind == (libc::SOL_UDP, libc::UDP_GRO);
        if is_written { usize::try_from(self.segment).unwrap_or(0) } else { 0 }
    }
}

/// Reads from a connection; returns 0 if it has ended.
///
/// # Errors
/// Same as `read` of the standard library.
#[inline]
pub fn read(stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    outcome(receive(stream.as_raw_fd(), into))
}

/// Same as [`read`], but the bytes stay in the connection: they come again until they are
/// [discarded](discard).
///
/// # Errors
/// Same as `peek` of the standard library.
#[inline]
pub fn peek(stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    outcome(receive_with(stream.as_raw_fd(), into, libc::MSG_PEEK))
}

/// Takes up to `length` bytes off a connection, which go nowhere; returns their number, 0 if the
/// connection has ended.
///
/// # Errors
/// Same as [`read`].
#[inline]
pub fn discard(stream: &TcpStream, length: usize) -> io::Result<usize> {
    let (fd, flags) = (stream.as_raw_fd(), libc::MSG_TRUNC);
    let (none, name, name_length) = (null_mut::<u8>(), null_mut::<u8>(), null_mut::<u8>());
    // SAFETY: with this flag the system writes no byte of a connection: tcp(7). One that ignored it
    // would find no memory at null, and refuse.
    outcome(unsafe {
        libc::syscall(libc::SYS_recvfrom, fd, none, length, flags, name, name_length)
    })
}

/// Writes to a connection as much of `bytes` as it takes.
///
/// # Errors
/// Same as `write` of the standard library, without SIGPIPE.
#[inline]
pub fn write(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    outcome(send::<()>(stream.as_raw_fd(), bytes, libc::MSG_NOSIGNAL, None))
}

/// Writes to a connection as much of `slices`, one after the other, as it takes.
///
/// # Errors
/// Same as `write_vectored` of the standard library, without SIGPIPE.
#[inline]
pub fn write_vectored(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    if let [bytes] = slices {
        return write(stream, bytes);
    }
    // SAFETY: all bits zero is a message without a name, slices or control data.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    // The library promises that an `IoSlice` is an `iovec`; it is only read.
    message.msg_iov = slices.as_ptr().cast_mut().cast();
    message.msg_iovlen = slices.len() as _;
    let fd = stream.as_raw_fd();
    // SAFETY: `message` and the slices that it names are readable for the given length.
    let sent =
        unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const message, libc::MSG_NOSIGNAL) };
    outcome(sent)
}

fn outcome(count: libc::c_long) -> io::Result<usize> {
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn connections_carry_bytes_and_tell_their_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("a peer");
        let (far, _) = listener.accept().expect("it connects");
        assert_eq!(write(&near, b"bytes").expect("room"), 5);
        let mut buffer = [0; 8];
        assert_eq!(read(&far, &mut buffer).expect("they come"), 5);
        assert_eq!(&buffer[..5], b"bytes");
        assert_eq!(write(&near, b"peeked, and read").expect("room"), 16);
        let mut whole = [0; 16];
        while peek(&far, &mut whole).expect("they come") < 16 {}
        assert_eq!(&whole, b"peeked, and read");
        assert_eq!(discard(&far, 12).expect("they are there"), 12);
        assert_eq!(peek(&far, &mut buffer).expect("they stay"), 4);
        assert_eq!(discard(&far, 12).expect("no more than there is"), 4);
        let pieces = [&b"so"[..], b"", b"me"].map(IoSlice::new);
        assert_eq!(write_vectored(&near, &pieces).expect("room"), 4);
        assert_eq!(write_vectored(&near, &pieces[..1]).expect("room"), 2);
        let mut all = [0; 6];
        std::io::Read::read_exact(&mut &far, &mut all).expect("they come");
        assert_eq!(&all, b"someso");
        far.set_nonblocking(true).expect("a socket");
        let nothing = [read(&far, &mut buffer), peek(&far, &mut buffer), discard(&far, 1)];
        for nothing in nothing.map(|it| it.expect_err("nothing has come")) {
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        }
        drop(near);
        far.set_nonblocking(false).expect("a socket");
        let ends = [read(&far, &mut buffer), peek(&far, &mut buffer), discard(&far, 1)];
        assert_eq!(ends.map(|it| it.expect("the end")), [0; 3]);
        // The first write may be taken by the system; then the peer has said that it is gone.
        let refused = (0..1_000).find_map(|_| write(&far, b"more").err()).expect("it is full");
        assert_eq!(refused.kind(), io::ErrorKind::BrokenPipe);
    }
}
