//! Several messages that are published together.

use super::outgoing::OutgoingStreams;
use lanecast_transport::{Batch, ClaimError, TopicId, Transport};
use std::fmt;

/// Several messages, published one after the other: each takes its place in flight first.
pub struct StoreBackedBatch<'a, C: Transport> {
    streams: &'a mut OutgoingStreams<C>,
    messages: Vec<(TopicId, Vec<u8>)>,
}

impl<'a, C: Transport> StoreBackedBatch<'a, C> {
    pub(super) const fn new(streams: &'a mut OutgoingStreams<C>) -> Self {
        Self { streams, messages: Vec::new() }
    }
}

impl<C: Transport> Batch for StoreBackedBatch<'_, C> {
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        self.streams.reserve(topic, len)?;
        self.messages.push((topic, vec![0; len]));
        Ok(self.last())
    }

    fn last(&mut self) -> &mut [u8] {
        self.messages.last_mut().map_or(&mut [], |(_, bytes)| bytes)
    }

    fn len(&self) -> usize {
        self.messages.len()
    }

    fn publish(self) -> usize {
        let Self { streams, messages } = self;
        let mut sent = 0;
        for (topic, bytes) in &messages {
            if streams.wait_for_room(*topic, bytes.len()).is_err() {
                break;
            }
            streams.buffer[..bytes.len()].copy_from_slice(bytes);
            streams.commit(*topic, bytes.len());
            sent += 1;
        }
        sent
    }
}

impl<C: Transport> fmt::Debug for StoreBackedBatch<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBackedBatch")
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}
