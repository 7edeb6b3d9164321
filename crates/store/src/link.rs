//! The way of frames to one receiver.

use lanecast_transport::{ClaimError, Publish};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Most bytes of frames that wait for a receiver to join, or for room.
pub(crate) const WAITING_MAX: usize = 256 << 10;

/// Time for which a receiver that was there counts as there: the transport asks the system about
/// each process. What is sent to one that died meanwhile is lost, and repeated.
const LOOK: Duration = Duration::from_millis(10);

/// Frames to a store, or to a client of one. Those that cannot be sent now wait; when too many do,
/// the oldest are dropped: the protocol repeats everything that matters.
#[derive(Debug)]
pub(crate) struct Link<P: Publish> {
    publisher: P,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// Empty buffers, used again.
    spare: Vec<Vec<u8>>,
    /// Time at which a receiver was last seen.
    seen: Option<Instant>,
}

impl<P: Publish> Link<P> {
    pub(crate) fn new(publisher: P) -> Self {
        let (waiting, spare) = (VecDeque::new(), Vec::new());
        Self { publisher, waiting, waiting_bytes: 0, spare, seen: None }
    }

    /// Longest frame, in bytes.
    pub(crate) fn longest_frame(&self) -> usize {
        self.publisher.longest_message()
    }

    /// Whether a receiver has joined, and was there lately.
    pub(crate) fn has_receiver(&mut self) -> bool {
        let now = Instant::now();
        if self.seen.is_some_and(|seen| now - seen < LOOK) {
            return true;
        }
        self.seen = (self.publisher.subscribers() > 0).then_some(now);
        self.seen.is_some()
    }

    /// Whether a receiver has joined: asked now, of the transport.
    pub(crate) fn is_joined(&self) -> bool {
        self.publisher.subscribers() > 0
    }

    /// Sends a frame, now or later; frames keep their order.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        self.send_within(frame, WAITING_MAX);
    }

    /// The same with another bound of the bytes that wait.
    pub(crate) fn send_within(&mut self, frame: &[u8], waiting_max: usize) {
        self.flush();
        if !self.waiting.is_empty() || !self.try_send(frame) {
            self.keep(frame, waiting_max);
        }
    }

    /// Bytes of frames that wait.
    pub(crate) const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    fn try_send(&mut self, frame: &[u8]) -> bool {
        // Without a receiver the transport would drop the frame.
        if !self.has_receiver() {
            return false;
        }
        match self.publisher.try_send(frame) {
            Err(ClaimError::BackPressured(_)) => false,
            // A frame that can never be sent does not hold up the others.
            Ok(()) | Err(_) => true,
        }
    }

    fn keep(&mut self, frame: &[u8], waiting_max: usize) {
        while self.waiting_bytes + frame.len() > waiting_max
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.waiting_bytes -= oldest.len();
            self.spare.push(oldest);
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.waiting_bytes += frame.len();
        self.waiting.push_back(buffer);
        self.spare.truncate(1);
    }

    /// Sends the frames that wait; returns their number.
    pub(crate) fn flush(&mut self) -> usize {
        let mut sent = 0;
        while let Some(frame) = self.waiting.pop_front() {
            if !self.try_send(&frame) {
                self.waiting.push_front(frame);
                break;
            }
            self.waiting_bytes -= frame.len();
            self.spare.push(frame);
            self.spare.truncate(1);
            sent += 1;
        }
        sent
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a receiver was there when this link last looked.
    pub(crate) const fn had_receiver(&self) -> bool {
        self.seen.is_some()
    }
}
