//! Copies of the messages of one run: if the publisher evicts, only copies are sure to stay whole.

use crate::numbered_stream::RunNumbers;
use crate::ring_reader::{Next, RingReader, Walk};
use crate::segment::Segment;
use crate::stream_table::StreamTable;
use std::ops::Range;

/// Most messages of a run, and most bytes of several.
const MESSAGES_MAX: usize = 1024;
const BYTES_MAX: usize = 64 << 10;

/// Buffers for a run of messages, allocated by the first run and then reused.
#[derive(Debug, Default)]
pub(crate) struct CopiedRun {
    bytes: Vec<u8>,
    messages: Vec<CopiedMessage>,
}

/// A message of the run.
#[derive(Debug)]
struct CopiedMessage {
    range: Range<usize>,
    topic: u32,
    number: u64,
    /// The walk over the ring, after the message.
    after: Walk,
}

impl CopiedRun {
    /// Copies the next messages of `reader` that are on one of `streams`, at most `limit`; passes
    /// none. Returns whether all copies are whole: if not, the publisher has evicted the reader.
    ///
    /// The first message must be on one of `streams`. `longest` is the longest message's length.
    pub(crate) fn copy(
        &mut self,
        reader: &RingReader<Segment>,
        streams: &StreamTable,
        longest: u32,
        limit: usize,
    ) -> bool {
        let Self { bytes, messages } = self;
        bytes.clear();
        messages.clear();
        // No effect but in the first run.
        bytes.reserve(BYTES_MAX.max(longest as usize));
        messages.reserve(MESSAGES_MAX);
        let (mut walk, mut numbers) = (reader.walk(), RunNumbers::default());
        while messages.len() < limit.min(MESSAGES_MAX)
            && let Next::Frame(frame) = reader.peek_at(&walk)
            && let Some(stream) = streams.get(frame.topic.topic())
        {
            let (start, length) = (bytes.len(), frame.length as usize);
            reader.step(&mut walk, frame.length);
            if let Some(stream) = stream {
                // The run ends before a message whose number is not the next one.
                let Some(number) = numbers.step(stream, frame.topic) else { break };
                if start > 0 && start + length > BYTES_MAX {
                    break;
                }
                let body = reader.memory().byte(frame.body);
                // Reserved above.
                let Some(target) = bytes.spare_capacity_mut().get_mut(..length) else { break };
                // SAFETY: the source lies in the ring, which is mapped twice and whose window is
                // eight times the checked length; the target has `length` bytes. Bytes that the
                // publisher overwrites meanwhile are discarded: the eviction is visible before
                // them.
                unsafe {
                    core::ptr::copy_nonoverlapping(
                        body.as_ptr(),
                        target.as_mut_ptr().cast(),
                        length,
                    );
                }
                // SAFETY: the copy has written these bytes.
                unsafe { bytes.set_len(start + length) };
                let (range, topic) = (start..bytes.len(), frame.topic.topic());
                messages.push(CopiedMessage { range, topic, number, after: walk });
            } else if walk.at().since(reader.walk().at()) > BYTES_MAX as u64 {
                break;
            }
        }
        !reader.is_evicted()
    }

    /// The message of `index`: its bytes, its topic and number, and the walk over the ring after
    /// it.
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], (u32, u64), Walk)> {
        let message = self.messages.get(index)?;
        let bytes = &self.bytes[message.range.clone()];
        Some((bytes, (message.topic, message.number), message.after))
    }
}
