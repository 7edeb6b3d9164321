//! Batches of datagrams in one call: sendmmsg(2), each message segmented by the kernel (GSO:
//! udp(7),
//! `UDP_SEGMENT`).

use super::UdpSocket;
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
    fn is_one_datagram(&self) -> bool {
        self.bytes.len() <= self.segment
    }

    fn check(&self) {
        assert!(self.bytes.len() <= GSO_BYTES_MAX, "a batch has at most {GSO_BYTES_MAX} bytes");
        let room = self.segment.saturating_mul(GSO_SEGMENTS_MAX);
        assert!(self.bytes.len() <= room, "a batch has at most {GSO_SEGMENTS_MAX} datagrams");
    }
}

impl UdpSocket {
    /// Sends `batches`, in order, with one system call; returns the number sent, which can be
    /// fewer.
    ///
    /// A batch that the interface cannot segment (without checksum offload, say) is sent datagram
    /// by datagram; losses of it then count as losses on the network.
    ///
    /// # Errors
    /// Same as [`send`](Self::send), if not even the first was sent.
    ///
    /// # Panics
    /// If a batch exceeds [`GSO_BYTES_MAX`] or [`GSO_SEGMENTS_MAX`].
    #[inline]
    pub fn send_batches(&self, batches: &[GsoBatch<'_>]) -> io::Result<usize> {
        match batches {
            [] => Ok(0),
            [batch] if batch.is_one_datagram() => {
                self.send_datagram(batch.bytes, batch.to).map(|()| 1)
            }
            [first, ..] => match self.send_many(batches) {
                Err(error) if !first.is_one_datagram() && is_refused_cut(&error) => {
                    self.send_apart(first).map(|()| 1)
                }
                result => result,
            },
        }
    }

    #[inline]
    fn send_datagram(&self, bytes: &[u8], to: Option<SocketAddr>) -> io::Result<()> {
        match to {
            None => self.send(bytes),
            Some(to) => self.send_to(bytes, to),
        }
    }

    #[cold]
    fn send_apart(&self, batch: &GsoBatch<'_>) -> io::Result<()> {
        let mut datagrams = batch.bytes.chunks(batch.segment);
        datagrams.next().map_or(Ok(()), |first| self.send_datagram(first, batch.to))?;
        for datagram in datagrams {
            let _ = self.send_datagram(datagram, batch.to);
        }
        Ok(())
    }

    pub(super) fn send_many(&self, batches: &[GsoBatch<'_>]) -> io::Result<usize> {
        let mut names = [const { MaybeUninit::<Name>::uninit() }; BATCHES_MAX];
        let mut pieces = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCHES_MAX];
        let mut cuts = [const { MaybeUninit::<Cut>::uninit() }; BATCHES_MAX];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCHES_MAX];
        let count = batches.len().min(BATCHES_MAX);
        let places = names.iter_mut().zip(&mut pieces).zip(&mut cuts).zip(&mut messages);
        for (batch, (((name, piece), cut), message)) in batches.iter().zip(places) {
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
                header.msg_control = core::ptr::from_mut(cut.write(Cut::at(batch.segment))).cast();
                header.msg_controllen = size_of::<Cut>() as _;
            }
        }
        let first = messages.as_mut_ptr().cast();
        // SAFETY: the first `count` messages are written, and what they point to is as well and
        // outlives the call.
        let sent = unsafe { libc::sendmmsg(self.fd(), first, count as libc::c_uint, 0) };
        checked(sent).map(|sent| sent as usize)
    }
}

/// Whether the system may have refused to segment a batch, rather than to send.
fn is_refused_cut(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    matches!(code, Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// The control message with the segment size.
#[repr(C)]
struct Cut {
    header: libc::cmsghdr,
    segment: u16,
    _fill: [u8; 6],
}

const _: () = {
    // SAFETY: these only compute.
    assert!(size_of::<Cut>() == unsafe { libc::CMSG_SPACE(2) } as usize);
};

impl Cut {
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
