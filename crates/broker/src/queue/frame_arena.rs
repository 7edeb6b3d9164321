//! Frames of one round, written once and shared by the send queues of all their receivers.
//!
//! A round ends when every queue has sent its frames or copied the rest. The arena belongs to the
//! fan-out; send queues hold ranges of it.

/// Buffers that keep their memory between rounds, and the most memory that each keeps.
const BUFFERS_KEPT: usize = 64;
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// A range of the arena, valid until the round ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameRange {
    pub(crate) buffer: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl FrameRange {
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Buffers of encoded frames. Frames for one subscription name go into one buffer, so that the
/// frames of a client are adjacent, and leave in one slice.
#[derive(Debug, Default)]
pub(crate) struct FrameArena {
    buffers: Vec<Vec<u8>>,
    /// Buffers used in this round.
    used: usize,
    bytes: usize,
    round: u64,
}

impl FrameArena {
    /// The number of this round.
    #[inline]
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// Takes an empty buffer for this round.
    pub(crate) fn new_buffer(&mut self) -> usize {
        // Buffers of earlier rounds are empty but allocated: a busy server allocates nothing here.
        if self.used == self.buffers.len() {
            self.buffers.push(Vec::new());
        }
        self.used += 1;
        self.used - 1
    }

    /// Appends a frame to a buffer.
    #[inline]
    pub(crate) fn write(&mut self, buffer: usize, write: impl FnOnce(&mut Vec<u8>)) -> FrameRange {
        let bytes = &mut self.buffers[buffer];
        let start = bytes.len();
        write(bytes);
        let end = bytes.len();
        self.bytes += end - start;
        FrameRange { buffer, start, end }
    }

    #[inline]
    pub(crate) fn get(&self, range: FrameRange) -> &[u8] {
        &self.buffers[range.buffer][range.start..range.end]
    }

    /// Bytes in all buffers.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Starts the next round. All ranges become invalid: no send queue may hold one.
    pub(crate) fn end_round(&mut self) {
        // Nothing was encoded: no range exists that a new number would invalidate.
        if self.used == 0 {
            return;
        }
        // One round with many names must not hold memory forever.
        self.buffers.truncate(BUFFERS_KEPT);
        for buffer in self.buffers.iter_mut().take(self.used) {
            buffer.clear();
            buffer.shrink_to(BUFFER_KEPT_BYTES);
        }
        (self.used, self.bytes) = (0, 0);
        self.round += 1;
    }
}
