//! Packing of messages for system calls.

use super::case::Way;
use super::settings::Settings;
use lanecast_base::WaitStrategy;
use lanecast_os::udp::{GSO_BYTES_MAX, GSO_SEGMENTS_MAX};

/// Packing of messages for system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) way: Way,
    /// Whether a receive sleeps until something is there.
    pub(super) sleeps: bool,
    /// The length of a message.
    pub(super) size: usize,
    /// The length of a datagram: whole messages.
    pub(super) segment: usize,
    /// Most datagrams (or pieces of a stream) in one call.
    pub(super) together: usize,
}

/// Bytes gathered before a write to a stream.
const GATHERED_BYTES: usize = 1 << 16;

impl Load {
    pub(super) fn of(settings: &Settings) -> Self {
        let Settings { case, size, datagram_bytes, .. } = *settings;
        let packed = size * (datagram_bytes.min(GSO_BYTES_MAX) / size).max(1);
        let (segment, together) = match case.way {
            Way::Singly => (size, 1),
            Way::Several => (packed, GSO_SEGMENTS_MAX),
            Way::Segments => (packed, GSO_SEGMENTS_MAX.min(GSO_BYTES_MAX / packed)),
            Way::Gathered => (size, (GATHERED_BYTES / size).max(1)),
        };
        Self { way: case.way, sleeps: case.wait != WaitStrategy::BusySpin, size, segment, together }
    }

    /// Bytes of one call.
    pub(super) const fn piece_bytes(&self) -> usize {
        self.segment * self.together
    }
}
