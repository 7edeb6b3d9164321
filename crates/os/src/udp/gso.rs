//! Many datagrams in one call: sendmmsg(2), each message cut into datagrams by the kernel
//! (udp(7), `UDP_SEGMENT`).

use super::UdpSocket;
use super::name::Name;
use crate::checked;
use core::mem::MaybeUninit;
use std::io;
use std::net::SocketAddr;

/// The most datagrams of one run.
pub const GSO_SEGMENTS_MAX: usize = 64;

/// The most bytes of one run: what fits in the largest datagram of IPv4.
pub const GSO_BYTES_MAX: usize = 65_507;

/// The most runs of one call; what is beyond waits for the next.
const RUNS_MAX: usize = 64;

/// Datagrams of equal length, one behind the other, of which the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct GsoBatch<'a> {
    /// All of them.
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
        assert!(self.bytes.len() <= GSO_BYTES_MAX, "a run has at most {GSO_BYTES_MAX} bytes");
        let room = self.segment.saturating_mul(GSO_SEGMENTS_MAX);
        assert!(self.bytes.len() <= room, "a run has at most {GSO_SEGMENTS_MAX} datagrams");
    }
}

impl UdpSocket {
    /// Sends `runs`, in order, with one system call; returns how many went, which can be fewer
    /// than there are.
    ///
    /// A run that the way out cannot cut into datagrams (an interface without checksums of its
    /// own, say) is sent datagram by datagram; what is lost of it then is lost as on any network.
    ///
    /// # Errors
    /// As [`send`](Self::send), if not even the first went.
    ///
    /// # Panics
    /// If a run exceeds [`GSO_BYTES_MAX`] or [`GSO_SEGMENTS_MAX`].
    #[inline]
    pub fn send_batches(&self, runs: &[GsoBatch<'_>]) -> io::Result<usize> {
        match runs {
            [] => Ok(0),
            [run] if run.is_one_datagram() => self.send_datagram(run.bytes, run.to).map(|()| 1),
            [first, ..] => match self.send_many(runs) {
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
    fn send_apart(&self, run: &GsoBatch<'_>) -> io::Result<()> {
        let mut datagrams = run.bytes.chunks(run.segment);
        datagrams.next().map_or(Ok(()), |first| self.send_datagram(first, run.to))?;
        for datagram in datagrams {
            let _ = self.send_datagram(datagram, run.to);
        }
        Ok(())
    }

    pub(super) fn send_many(&self, runs: &[GsoBatch<'_>]) -> io::Result<usize> {
        let mut names = [const { MaybeUninit::<Name>::uninit() }; RUNS_MAX];
        let mut pieces = [const { MaybeUninit::<libc::iovec>::uninit() }; RUNS_MAX];
        let mut cuts = [const { MaybeUninit::<Cut>::uninit() }; RUNS_MAX];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; RUNS_MAX];
        let count = runs.len().min(RUNS_MAX);
        let places = names.iter_mut().zip(&mut pieces).zip(&mut cuts).zip(&mut messages);
        for (run, (((name, piece), cut), message)) in runs.iter().zip(places) {
            run.check();
            // SAFETY: all bits zero is an empty message.
            let header = message.write(unsafe { core::mem::zeroed() });
            let header = &mut header.msg_hdr;
            header.msg_iov = piece.write(libc::iovec {
                iov_base: run.bytes.as_ptr().cast_mut().cast(),
                iov_len: run.bytes.len(),
            });
            header.msg_iovlen = 1;
            if let Some(to) = run.to {
                let (address, length) = Name::of(to);
                header.msg_name = core::ptr::from_mut(name.write(address)).cast();
                header.msg_namelen = length;
            }
            if !run.is_one_datagram() {
                header.msg_control = core::ptr::from_mut(cut.write(Cut::at(run.segment))).cast();
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

/// Whether the system may have refused to cut a run, rather than to send.
fn is_refused_cut(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    matches!(code, Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// The control message that tells the kernel where to cut.
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
        // The run is longer than the segment, and shorter than 64 KiB.
        Self { header, segment: segment as u16, _fill: [0; 6] }
    }
}
