//! TCP streams of a capture: segments put in order, as far as frames need that.
//!
//! A capture may begin in the middle of a connection and miss segments. The bytes of a stream count
//! from a segment that begins with a frame; a segment that is missing ends that, until the next one
//! that begins with a frame.

use super::packet::Segment;
use lanecast_wire::net::{FRAME_MAX, MAGIC, VERSION};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Most streams that are followed; the oldest gives way.
const STREAMS_MAX: usize = 4_096;
/// Most bytes of a stream, and of all, that wait for the rest of a frame.
const PENDING_MAX: usize = 2 * FRAME_MAX;
const PENDING_ALL_MAX: usize = 256 * PENDING_MAX;

/// Both ends of a stream in one direction.
type Ends = (SocketAddr, SocketAddr);

/// The followed streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: HashMap<Ends, Stream>,
    /// Pending bytes of all of them.
    pending: usize,
    /// Counts the segments.
    time: u64,
}

#[derive(Debug)]
struct Stream {
    /// Sequence of the next byte.
    next: u32,
    pending: Vec<u8>,
    last_used: u64,
}

impl Streams {
    /// Takes a segment; calls `each` with the whole frames that it completes, one after the other.
    /// `each` returns the bytes of the frame at the front, 0 if more are needed, `None` if there is
    /// none.
    pub(super) fn take(
        &mut self,
        ends: Ends,
        segment: Segment,
        payload: &[u8],
        mut each: impl FnMut(&[u8]) -> Option<usize>,
    ) {
        self.time += 1;
        if segment.is_start || segment.is_reset {
            self.forget(ends);
            return;
        }
        let next = self.streams.get(&ends).map(|stream| stream.next);
        let ahead = next.map(|next| segment.sequence.wrapping_sub(next).cast_signed());
        let payload = match ahead {
            // Sent again, perhaps with more behind it: the beginning was seen.
            Some(behind @ ..=0) => {
                payload.get(behind.unsigned_abs() as usize..).unwrap_or_default()
            }
            // A segment is missing, or the stream is new.
            _ if begins_frame(payload) => {
                self.begin(ends, segment.sequence);
                payload
            }
            _ if payload.is_empty() => return,
            _ => {
                self.forget(ends);
                return;
            }
        };
        if payload.is_empty() {
            return;
        }
        let Some(stream) = self.streams.get_mut(&ends) else { return };
        stream.last_used = self.time;
        stream.next = stream.next.wrapping_add(payload.len() as u32);
        let mut bytes = std::mem::take(&mut stream.pending);
        self.pending -= bytes.len();
        bytes.extend_from_slice(payload);
        let mut used = 0;
        let is_intact = loop {
            match each(&bytes[used..]) {
                None => break used == bytes.len(),
                Some(0) => break bytes.len() - used <= PENDING_MAX,
                Some(length) => used += length,
            }
        };
        if !is_intact || segment.is_end {
            self.forget(ends);
            return;
        }
        stream.pending = bytes[used..].to_vec();
        self.pending += stream.pending.len();
        while self.pending > PENDING_ALL_MAX {
            self.forget_oldest(|stream| !stream.pending.is_empty());
        }
    }

    fn forget(&mut self, ends: Ends) {
        self.pending -= self.streams.remove(&ends).map_or(0, |stream| stream.pending.len());
    }

    /// Forgets the stream of these that was not used for the longest time.
    fn forget_oldest(&mut self, is_one: impl Fn(&Stream) -> bool) {
        let those = self.streams.iter().filter(|(_, stream)| is_one(stream));
        let oldest = those.min_by_key(|(_, stream)| stream.last_used);
        if let Some(ends) = oldest.map(|(ends, _)| *ends) {
            self.forget(ends);
        }
    }

    /// Whether the stream is followed.
    pub(super) fn has(&self, ends: Ends) -> bool {
        self.streams.contains_key(&ends)
    }

    /// Begins to follow a stream, or follows it anew.
    fn begin(&mut self, ends: Ends, sequence: u32) {
        self.forget(ends);
        if self.streams.len() >= STREAMS_MAX {
            self.forget_oldest(|_| true);
        }
        let new = Stream { next: sequence, pending: Vec::new(), last_used: self.time };
        self.streams.insert(ends, new);
    }
}

/// Whether `bytes` begin with the header of a frame.
pub(super) fn begins_frame(bytes: &[u8]) -> bool {
    bytes.len() >= 3 && bytes[..2] == MAGIC.to_le_bytes() && bytes[2] == VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of frames, each of a magic, the version and its length.
    const LENGTH: usize = 8;

    fn ends(port: u16) -> Ends {
        let end = |port| SocketAddr::from(([10, 0, 0, 1], port));
        (end(port), end(1))
    }

    fn bytes(frames: u8) -> Vec<u8> {
        let frame = |number: u8| [b'L', b'C', VERSION, number, 0, 0, 0, 0];
        (0..frames).flat_map(frame).collect()
    }

    /// The frames that a segment completes, by their numbers.
    fn take(streams: &mut Streams, port: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut seen = Vec::new();
        let segment = Segment { sequence, is_start: false, is_end: false, is_reset: false };
        streams.take(ends(port), segment, payload, |bytes| {
            if bytes.len() >= LENGTH {
                seen.push(bytes[3]);
                return begins_frame(bytes).then_some(LENGTH);
            }
            (bytes.len() < 3 || begins_frame(bytes)).then_some(0)
        });
        seen
    }

    #[test]
    fn segments_that_are_sent_again_with_more_behind_them_are_read_from_there() {
        let (mut streams, bytes) = (Streams::default(), bytes(6));
        assert_eq!(MAGIC.to_le_bytes(), [b'L', b'C']);
        let start = u32::MAX - 11;
        let at = |offset: usize| start.wrapping_add(offset as u32);
        assert_eq!(take(&mut streams, 2, at(0), &bytes[..20]), [0, 1]);
        assert_eq!(take(&mut streams, 2, at(8), &bytes[8..20]), [0; 0], "all of it was seen");
        assert_eq!(take(&mut streams, 2, at(8), &bytes[8..36]), [2, 3]);
        assert_eq!(take(&mut streams, 2, at(36), &[]), [0; 0]);
        assert_eq!(take(&mut streams, 2, at(36), &bytes[36..]), [4, 5]);
        assert_eq!(streams.pending, 0);
    }

    #[test]
    fn bytes_that_wait_are_bounded_for_all_streams_together() {
        let mut streams = Streams::default();
        // A frame that never ends.
        let mut payload = bytes(1);
        payload.resize(PENDING_MAX, 0);
        let segment = Segment { sequence: 0, is_start: false, is_end: false, is_reset: false };
        for port in 0..1_000 {
            streams.take(ends(port), segment, &payload, |_| Some(0));
            let all: usize = streams.streams.values().map(|stream| stream.pending.len()).sum();
            assert!(all <= PENDING_ALL_MAX && all == streams.pending, "{port}: {all}");
        }
        assert!(streams.has(ends(999)) && !streams.has(ends(0)));
    }
}
