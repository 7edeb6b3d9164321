//! Control frames that wait to be sent: few, or they are dropped, since all of them are repeated.

use super::member::Peer;
use lanecast_wire::net::{FrameWriter, Kind};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The most frames that wait.
const WAITING_MAX: usize = 1_024;
/// The most bytes that wait.
const BYTES_MAX: usize = 1 << 20;

/// Frames and where they go, oldest first.
#[derive(Debug, Default)]
pub(super) struct Answers {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    bytes: usize,
    pub(super) dropped: u64,
}

impl Answers {
    /// Adds a frame.
    pub(super) fn push(&mut self, to: SocketAddr, frame: Vec<u8>) {
        if self.waiting.len() >= WAITING_MAX || self.bytes + frame.len() > BYTES_MAX {
            self.dropped += 1;
            return;
        }
        self.bytes += frame.len();
        self.waiting.push_back((to, frame));
    }

    /// The oldest.
    pub(super) fn front(&self) -> Option<(SocketAddr, &[u8])> {
        self.waiting.front().map(|(to, frame)| (*to, frame.as_slice()))
    }

    /// The oldest is sent.
    pub(super) fn pop(&mut self) {
        if let Some((_, frame)) = self.waiting.pop_front() {
            self.bytes -= frame.len();
        }
    }
}

/// A frame that waits for its receiver or for the group.
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
    bytes.shrink_to_fit();
    bytes
}

impl super::Sender {
    /// Puts a frame on its way.
    pub(super) fn answer(&mut self, to: Peer, frame: Vec<u8>) {
        match to {
            Peer::Address(to) => {
                self.answers.push(to, frame);
                self.counters.answers_dropped = self.answers.dropped;
            }
            Peer::Link(link) => {
                if !self.links.push(link, &frame) {
                    self.counters.answers_dropped += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded() {
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut answers = Answers::default();
        (0..2 * WAITING_MAX).for_each(|_| answers.push(to, vec![0; 8]));
        assert_eq!(answers.dropped, WAITING_MAX as u64);
        (0..WAITING_MAX).for_each(|_| answers.pop());
        assert!(answers.front().is_none());
        (0..100).for_each(|_| answers.push(to, vec![0; 60_000]));
        assert_eq!(answers.dropped, WAITING_MAX as u64 + 83);
    }
}
