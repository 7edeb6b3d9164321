//! CRC-32C, the checksum of everything that lies on a disk.
//!
//! Polynomial 0x1EDC6F41, as of RFC 3720 (iSCSI).

use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

/// Checksum of `bytes`.
///
/// # Examples
///
/// ```
/// assert_eq!(lanecast_wire::checksum::crc32c(b"123456789"), 0xe306_9283);
/// ```
#[must_use]
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32_iscsi(bytes)
}

/// Checksum of bytes whose checksum is `before`, with `parts` behind them.
///
/// # Examples
///
/// ```
/// use lanecast_wire::checksum::{crc32c, crc32c_append};
///
/// assert_eq!(crc32c_append(crc32c(b"1234"), &[b"56", b"789"]), crc32c(b"123456789"));
/// ```
#[must_use]
#[inline]
pub fn crc32c_append(before: u32, parts: &[&[u8]]) -> u32 {
    // A checksum is the inverted state.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!before));
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize() as u32
}
