//! Sends messages that a closure writes: in place, or by copying.

use lanecast_transport::{Claim, ClaimError, Publish, Shared};
use std::time::Duration;

/// A publisher, used in place or by copying.
#[derive(Debug)]
pub(super) enum MessageSender<P> {
    /// Writes messages in place.
    InPlace(P),
    /// Writes messages to a buffer and copies them by the thread-safe call.
    Copying(Shared<P>, Vec<u8>),
}

impl<P: Publish> MessageSender<P> {
    /// A sender of messages of up to `longest` bytes.
    pub(super) fn new(publisher: P, generic: bool, longest: usize) -> Self {
        if generic {
            Self::Copying(Shared::new(publisher), vec![0; longest])
        } else {
            Self::InPlace(publisher)
        }
    }

    /// Sends a message of `size` bytes that `write` writes, if there is room.
    #[inline(always)]
    pub(super) fn try_send<T>(
        &mut self,
        size: usize,
        write: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, ClaimError> {
        match self {
            Self::InPlace(publisher) => {
                let mut claim = publisher.try_claim(size)?;
                let written = write(&mut claim);
                claim.commit();
                Ok(written)
            }
            Self::Copying(publisher, buffer) => {
                if buffer.len() < size {
                    buffer.resize(size, 0);
                }
                let bytes = &mut buffer[..size];
                let written = write(bytes);
                publisher.try_send(bytes)?;
                Ok(written)
            }
        }
    }

    /// Handles the publisher's pending events.
    pub(super) fn poll_events(&mut self) {
        match self {
            Self::InPlace(publisher) => publisher.poll_events(|_| {}),
            Self::Copying(publisher, _) => publisher.lock().poll_events(|_| {}),
        };
    }

    /// Whether there is a subscriber.
    pub(super) fn has_subscriber(&self) -> bool {
        match self {
            Self::InPlace(publisher) => publisher.subscribers() > 0,
            Self::Copying(publisher, _) => publisher.lock().subscribers() > 0,
        }
    }

    /// Waits for a subscriber; false at the timeout.
    pub(super) fn wait_for_subscriber(&mut self, timeout: Duration) -> bool {
        match self {
            Self::InPlace(publisher) => publisher.wait_for_subscribers(1, timeout),
            Self::Copying(publisher, _) => publisher.lock().wait_for_subscribers(1, timeout),
        }
    }

    /// Lingers and closes; true if subscribers have read everything.
    pub(super) fn close(self, linger: Duration) -> bool {
        match self {
            Self::InPlace(publisher) => publisher.close(linger).is_complete(),
            // This is the only handle, so `into_inner` succeeds at once.
            Self::Copying(publisher, _) => {
                publisher.into_inner().is_ok_and(|publisher| publisher.close(linger).is_complete())
            }
        }
    }
}
