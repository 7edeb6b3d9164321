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
/// Most bytes of a stream that wait for the rest of a frame.
const PENDING_MAX: usize = 2 * FRAME_MAX;

/// Both ends of a stream in one direction.
type Ends = (SocketAddr, SocketAddr);

/// The followed streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: HashMap<Ends, Stream>,
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
            self.streams.remove(&ends);
            return;
        }
        if payload.is_empty() {
            return;
        }
        let next = self.streams.get(&ends).map(|stream| stream.next);
        let ahead = next.map(|next| segment.sequence.wrapping_sub(next).cast_signed());
        match ahead {
            Some(0) => {}
            // Sent again: what it has was seen.
            Some(..0) => return,
            // A segment is missing, or the stream is new.
            _ if begins_frame(payload) => self.begin(ends, segment.sequence),
            _ => {
                self.streams.remove(&ends);
                return;
            }
        }
        let Some(stream) = self.streams.get_mut(&ends) else { return };
        stream.last_used = self.time;
        stream.next = segment.sequence.wrapping_add(payload.len() as u32);
        stream.pending.extend_from_slice(payload);
        let mut used = 0;
        let is_intact = loop {
            match each(&stream.pending[used..]) {
                None => break used == stream.pending.len(),
                Some(0) => break stream.pending.len() - used <= PENDING_MAX,
                Some(length) => used += length,
            }
        };
        stream.pending.drain(..used);
        if !is_intact || segment.is_end {
            self.streams.remove(&ends);
        }
    }

    /// Whether the stream is followed.
    pub(super) fn has(&self, ends: Ends) -> bool {
        self.streams.contains_key(&ends)
    }

    /// Begins to follow a stream, or follows it anew.
    fn begin(&mut self, ends: Ends, sequence: u32) {
        if self.streams.len() >= STREAMS_MAX {
            let oldest = self.streams.iter().min_by_key(|(_, stream)| stream.last_used);
            if let Some(ends) = oldest.map(|(ends, _)| *ends) {
                self.streams.remove(&ends);
            }
        }
        let new = Stream { next: sequence, pending: Vec::new(), last_used: self.time };
        self.streams.insert(ends, new);
    }
}

/// Whether `bytes` begin with the header of a frame.
pub(super) fn begins_frame(bytes: &[u8]) -> bool {
    bytes.len() >= 3 && bytes[..2] == MAGIC.to_le_bytes() && bytes[2] == VERSION
}
