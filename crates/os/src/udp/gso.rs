//! Batches of datagrams in one call: sendmmsg(2), each message segmented by the kernel (GSO: see
//! `UDP_SEGMENT` in udp(7)).

use super::name::Name;
use crate::checked;
use core::mem::MaybeUninit;
use std::io;
use std::net::SocketAddr;

/// The most datagrams of one batch.
pub const GSO_SEGMENTS_MAX: usize = 64;

/// The most bytes of one batch: those of the largest datagram of IPv4.
pub const GSO_BYTES_MAX: usize = 65_507;

/// The most batches of one call.
const BATCHES_MAX: usize = 64;

/// Consecutive datagrams of equal length, of which the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct GsoBatch<'a> {
    /// The bytes of all datagrams.
    pub bytes: &'a [u8],
    /// The length of each but the last, in bytes.
    pub segment: usize,
    /// The receiver; `None` for the connected peer.
    pub to: Option<SocketAddr>,
}

impl GsoBatch<'_> {
    #[inline]
    pub(super) fn is_one_datagram(&self) -> bool {
        self.bytes.len() <= self.segment
    }

    fn check(&self) {
        assert!(self.bytes.len() <= GSO_BYTES_MAX, "a batch has at most {GSO_BYTES_MAX} bytes");
        let room = self.segment.saturating_mul(GSO_SEGMENTS_MAX);
        assert!(self.bytes.len() <= room, "a batch has at most {GSO_SEGMENTS_MAX} datagrams");
    }
}

/// Sends batches with one call on the socket `fd`; returns the number sent.
pub(super) fn send_many(fd: i32, batches: &[GsoBatch<'_>]) -> io::Result<usize> {
    let mut names = [const { MaybeUninit::<Name>::uninit() }; BATCHES_MAX];
    let mut pieces = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCHES_MAX];
    let mut controls = [const { MaybeUninit::<Segmentation>::uninit() }; BATCHES_MAX];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCHES_MAX];
    let count = batches.len().min(BATCHES_MAX);
    let places = names.iter_mut().zip(&mut pieces).zip(&mut controls).zip(&mut messages);
    for (batch, (((name, piece), control), message)) in batches.iter().zip(places) {
        batch.check();
        // SAFETY: all bits zero is an empty message.
        let header = message.write(unsafe { core::mem::zeroed() });
        let header = &mut header.msg_hdr;
        header.msg_iov = piece.write(libc::iovec {
            iov_base: batch.bytes.as_ptr().cast_mut().cast(),
            iov_len: batch.bytes.len(),
        });
        header.msg_iovlen = 1;
        if let Some(to) = batch.to {
            let (address, length) = Name::of(to);
            header.msg_name = core::ptr::from_mut(name.write(address)).cast();
            header.msg_namelen = length;
        }
        if !batch.is_one_datagram() {
            header.msg_control =
                core::ptr::from_mut(control.write(Segmentation::at(batch.segment))).cast();
            header.msg_controllen = size_of::<Segmentation>() as _;
        }
    }
    let first = messages.as_mut_ptr().cast();
    // SAFETY: the first `count` messages are written, and what they point to is as well and
    // outlives the call.
    let sent = unsafe { libc::sendmmsg(fd, first, count as libc::c_uint, 0) };
    checked(sent).map(|sent| sent as usize)
}

/// Whether the system may have refused to segment a batch, rather than to send.
pub(super) fn is_refused_segmentation(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    matches!(code, Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// The control message with the segment size.
#[repr(C)]
struct Segmentation {
    header: libc::cmsghdr,
    segment: u16,
    _fill: [u8; 6],
}

const _: () = {
    // SAFETY: these only compute.
    assert!(size_of::<Segmentation>() == unsafe { libc::CMSG_SPACE(2) } as usize);
};

impl Segmentation {
    #[inline]
    fn at(segment: usize) -> Self {
        // SAFETY: all bits zero is an empty header.
        let mut header: libc::cmsghdr = unsafe { core::mem::zeroed() };
        header.cmsg_level = libc::SOL_UDP;
        header.cmsg_type = libc::UDP_SEGMENT;
        // SAFETY: it only computes.
        header.cmsg_len = unsafe { libc::CMSG_LEN(2) } as _;
        // The batch is longer than the segment, and shorter than 64 KiB.
        Self { header, segment: segment as u16, _fill: [0; 6] }
    }
}
