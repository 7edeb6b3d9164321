//! Queue of control frames to send by UDP. The queue is bounded and drops what does not fit: every
//! control frame is repeated by its protocol.

use lanecast_wire::net::{FrameWriter, Kind};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Most queued frames.
const FRAMES_MAX: usize = 1_024;
/// Most queued bytes.
const BYTES_MAX: usize = 1 << 20;

/// Frames and their destinations, oldest first.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    frames: VecDeque<(SocketAddr, Vec<u8>)>,
    bytes: usize,
    pub(super) dropped: u64,
}

impl ControlQueue {
    /// Adds a frame, or counts it as dropped.
    pub(super) fn push(&mut self, to: SocketAddr, frame: Vec<u8>) {
        // Dropped rather than queued without limit: receivers repeat what they ask.
        if self.frames.len() >= FRAMES_MAX || self.bytes + frame.len() > BYTES_MAX {
            self.dropped += 1;
            return;
        }
        self.bytes += frame.len();
        self.frames.push_back((to, frame));
    }

    /// The oldest frame.
    pub(super) fn front(&self) -> Option<(SocketAddr, &[u8])> {
        // Only looked at: the socket may refuse it, and `pop` follows a success.
        self.frames.front().map(|(to, frame)| (*to, frame.as_slice()))
    }

    /// Removes the oldest frame after it was sent.
    pub(super) fn pop(&mut self) {
        if let Some((_, frame)) = self.frames.pop_front() {
            self.bytes -= frame.len();
        }
    }
}

/// Writes a control frame of at most `limit` bytes.
pub(super) fn compose(
    (kind, flags): (Kind, u16),
    (session, sequence): (u64, u64),
    limit: usize,
    fill: impl FnOnce(&mut FrameWriter<'_>),
) -> Vec<u8> {
    let mut bytes = vec![0; limit];
    let mut writer = FrameWriter::new(&mut bytes, kind, flags, session, sequence);
    fill(&mut writer);
    let length = writer.finish();
    bytes.truncate(length);
    // The frame may stay queued: keep no more memory than it has bytes.
    bytes.shrink_to_fit();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_bounded() {
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut queue = ControlQueue::default();
        (0..2 * FRAMES_MAX).for_each(|_| queue.push(to, vec![0; 8]));
        assert_eq!(queue.dropped, FRAMES_MAX as u64);
        (0..FRAMES_MAX).for_each(|_| queue.pop());
        assert!(queue.front().is_none());
        (0..100).for_each(|_| queue.push(to, vec![0; 60_000]));
        assert_eq!(queue.dropped, FRAMES_MAX as u64 + 83);
    }
}
