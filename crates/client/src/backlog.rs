//! Published messages without an acknowledgement.

use crate::error::ClientError;
use std::collections::VecDeque;

/// An unacknowledged message.
#[derive(Debug)]
struct Entry {
    /// Command id.
    command: u64,
    /// Sequence number, if the client has a name.
    sequence: u64,
    /// Bytes of its frame.
    length: usize,
    /// Acknowledged, but an earlier one is not: it stays until all before it are.
    is_done: bool,
}

/// Frames of unacknowledged messages, contiguous, in the order of publication.
#[derive(Debug)]
pub(crate) struct Backlog {
    entries: VecDeque<Entry>,
    frames: VecDeque<u8>,
    bytes_max: usize,
}

impl Backlog {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { entries: VecDeque::new(), frames: VecDeque::new(), bytes_max }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Checks whether a frame of this length fits.
    pub(crate) fn check(&self, bytes: usize) -> Result<(), ClientError> {
        let limit = self.bytes_max;
        if bytes > limit {
            Err(ClientError::TooLong { bytes, limit })
        } else if self.frames.len() + bytes > limit {
            Err(ClientError::Full { bytes: limit })
        } else {
            Ok(())
        }
    }

    pub(crate) fn push(&mut self, command: u64, sequence: u64, frame: &[u8]) {
        self.entries.push_back(Entry { command, sequence, length: frame.len(), is_done: false });
        self.frames.extend(frame);
    }

    /// Acknowledges a command; returns how many messages were published after it, or `None` if it
    /// is not in the backlog.
    pub(crate) fn acknowledge(&mut self, command: u64) -> Option<usize> {
        let found = self.entries.binary_search_by_key(&command, |entry| entry.command);
        let at = found.ok()?;
        let later = self.entries.len() - at - 1;
        self.entries[at].is_done = true;
        self.drop_while(|entry| entry.is_done);
        Some(later)
    }

    /// Acknowledges all messages up to a sequence number.
    pub(crate) fn acknowledge_sequence(&mut self, sequence: u64) {
        self.drop_while(|entry| entry.is_done || entry.sequence <= sequence);
    }

    fn drop_while(&mut self, is_done: impl Fn(&Entry) -> bool) {
        let done = self.entries.iter().take_while(|entry| is_done(entry)).count();
        let bytes: usize = self.entries.drain(..done).map(|entry| entry.length).sum();
        self.frames.drain(..bytes);
    }

    /// Drops all messages.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.frames.clear();
    }

    /// Appends all frames to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let (front, back) = self.frames.as_slices();
        out.extend_from_slice(front);
        out.extend_from_slice(back);
    }
}
