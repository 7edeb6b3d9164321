//! One publisher for many threads.

use crate::claim::ClaimError;
use crate::publish::Publish;
use crate::publisher_event::PublisherEvent;
use crate::stream::TopicId;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A publisher that any number of threads copy messages into.
///
/// A message is copied under a lock. The zero-copy calls stay with the one owner of a
/// publisher, so the two families cannot be mixed by mistake.
pub struct Shared<P> {
    publisher: Arc<Mutex<P>>,
}

impl<P> fmt::Debug for Shared<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl<P> Clone for Shared<P> {
    fn clone(&self) -> Self {
        Self { publisher: Arc::clone(&self.publisher) }
    }
}

impl<P: Publish> Shared<P> {
    /// Shares `publisher`.
    pub fn new(publisher: P) -> Self {
        Self { publisher: Arc::new(Mutex::new(publisher)) }
    }

    /// Copies `bytes` into a message and publishes it, if there is room now.
    ///
    /// # Errors
    /// See [`ClaimError`].
    pub fn try_send(&self, bytes: &[u8]) -> Result<(), ClaimError> {
        self.try_send_on(TopicId::FIRST, bytes)
    }

    /// As [`try_send`](Self::try_send), on `topic`.
    ///
    /// # Errors
    /// See [`ClaimError`].
    pub fn try_send_on(&self, topic: TopicId, bytes: &[u8]) -> Result<(), ClaimError> {
        self.lock().try_send_on(topic, bytes)
    }

    /// Copies `bytes` into a message and publishes it, waiting for room; others wait meanwhile.
    ///
    /// # Errors
    /// See [`ClaimError`]; never `BackPressured`.
    pub fn send(&self, bytes: &[u8]) -> Result<(), ClaimError> {
        self.send_on(TopicId::FIRST, bytes)
    }

    /// As [`send`](Self::send), on `topic`.
    ///
    /// # Errors
    /// See [`ClaimError`]; never `BackPressured`.
    pub fn send_on(&self, topic: TopicId, bytes: &[u8]) -> Result<(), ClaimError> {
        self.lock().send_on(topic, bytes)
    }

    /// As [`Publish::poll_events`]. The handler runs under the lock: it must not call this
    /// publisher.
    pub fn poll_events(&self, handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        self.lock().poll_events(handler)
    }

    /// The publisher, exclusively.
    pub fn lock(&self) -> MutexGuard<'_, P> {
        // A thread that panicked while it held the lock left no half message: a claim that was
        // not committed was never there.
        self.publisher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The publisher, if this is its last handle.
    ///
    /// # Errors
    /// Returns the handle while others exist.
    pub fn into_inner(self) -> Result<P, Self> {
        match Arc::try_unwrap(self.publisher) {
            Ok(publisher) => Ok(publisher.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(publisher) => Err(Self { publisher }),
        }
    }
}
