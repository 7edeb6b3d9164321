//! The envelope of a datagram under a shared key: a header, the datagram's frame encrypted, a tag.

use core::net::{IpAddr, SocketAddr};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// The first two bytes of every sealed datagram.
pub const SEALED_MAGIC: u16 = u16::from_le_bytes(*b"LS");
/// The version of sealed datagrams.
pub const SEALED_VERSION: u8 = 1;
/// Bytes of the tag behind the encrypted frame.
pub const SEALED_TAG_BYTES: usize = 16;
/// Bytes that sealing adds to a datagram.
pub const SEALED_OVERHEAD: usize = size_of::<SealedHeader>() + SEALED_TAG_BYTES;
/// Bytes that the tag covers beside the encrypted frame: header and destination.
pub const SEALED_COVERED_BYTES: usize = size_of::<SealedHeader>() + size_of::<SealedDestination>();

/// The first bytes of a sealed datagram.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct SealedHeader {
    /// [`SEALED_MAGIC`].
    pub magic: U16,
    /// [`SEALED_VERSION`].
    pub version: u8,
    /// Zero.
    pub reserved: u8,
    /// Id of the shared key: the first two bytes of its SHA-256.
    pub key: U16,
    /// The datagram's length, this header and the tag included.
    pub length: U16,
    /// Random number of the sending socket.
    pub sender: U64,
    /// Number of the datagram among those of the sender; the nonce.
    pub counter: U64,
}

/// The address that a sealed datagram is sent to; covered by the tag, not sent.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct SealedDestination {
    /// IPv6 address, or IPv4 address mapped into one.
    pub address: [u8; 16],
    /// Port.
    pub port: U16,
}

impl SealedHeader {
    /// The header of a datagram whose frame has `frame_bytes`.
    ///
    /// # Panics
    /// If the datagram would be longer than a datagram can be.
    pub fn new(key: u16, sender: u64, counter: u64, frame_bytes: usize) -> Self {
        let length = u16::try_from(frame_bytes + SEALED_OVERHEAD).expect("shorter than 64 KiB");
        Self {
            magic: SEALED_MAGIC.into(),
            version: SEALED_VERSION,
            reserved: 0,
            key: key.into(),
            length: length.into(),
            sender: sender.into(),
            counter: counter.into(),
        }
    }

    /// The sealed datagram that `bytes` begin with: its header, and its length.
    #[inline]
    pub fn split(bytes: &[u8]) -> Option<(Self, usize)> {
        let (header, _) = Self::read_from_prefix(bytes).ok()?;
        let length = usize::from(header.length.get());
        let is_whole = header.magic.get() == SEALED_MAGIC
            && header.version == SEALED_VERSION
            && (SEALED_OVERHEAD..=bytes.len()).contains(&length);
        is_whole.then_some((header, length))
    }

    /// The bytes that the tag covers beside the frame.
    #[inline]
    pub fn covered(&self, to: SealedDestination) -> [u8; SEALED_COVERED_BYTES] {
        let mut covered = [0; SEALED_COVERED_BYTES];
        let (header, destination) = covered.split_at_mut(size_of::<Self>());
        header.copy_from_slice(self.as_bytes());
        destination.copy_from_slice(to.as_bytes());
        covered
    }
}

impl From<SocketAddr> for SealedDestination {
    fn from(to: SocketAddr) -> Self {
        let address = match to.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Self { address: address.octets(), port: to.port().into() }
    }
}

/// Whether `bytes` begin as a sealed datagram of any version does.
#[inline]
pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(&SEALED_MAGIC.to_le_bytes())
}

const _: () = {
    assert!(size_of::<SealedHeader>() == 24);
    assert!(size_of::<SealedDestination>() == 18);
    assert!(SEALED_OVERHEAD == 40);
};
