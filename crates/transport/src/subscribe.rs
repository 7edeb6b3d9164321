//! The subscriber of any transport, and the transport itself.

use crate::event::Event;
use crate::publish::Publish;
use std::time::Duration;

/// A subscriber to all present and future publishers of its topics.
pub trait Subscribe: Send + 'static {
    /// Calls `handler` with pending events, at most `limit` messages; returns the number of events.
    /// Never blocks.
    ///
    /// Messages are read in place and count as read when the handler returns or panics.
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: F) -> usize;

    /// Waits by the subscriber's strategy after a poll that returned `work`; returns at once if
    /// that is not 0, and after [`Self::longest_wait`] at the latest.
    fn wait(&mut self, work: usize);

    /// The longest time of a [`wait`](Self::wait), so that a loop can check a stop flag in between.
    fn longest_wait(&self) -> Duration;

    /// Number of joined streams.
    fn streams(&self) -> usize;
}

/// A way to carry messages: makes publishers and subscribers.
pub trait Transport {
    /// The publisher of this transport.
    type Publisher: Publish;
    /// The subscriber of this transport.
    type Subscriber: Subscribe;
    /// Errors of making publishers and subscribers.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The name on the command line: `shm`, `tcp`, ...
    fn name(&self) -> &'static str;

    /// A publisher of `topic`.
    ///
    /// # Errors
    /// If the transport cannot set it up; the error says what to do.
    fn publisher(&self, topic: &str) -> Result<Self::Publisher, Self::Error>;

    /// A subscriber to all of `topics`.
    ///
    /// # Errors
    /// If the transport cannot set it up; the error says what to do.
    fn subscriber(&self, topics: &[&str]) -> Result<Self::Subscriber, Self::Error>;
}
