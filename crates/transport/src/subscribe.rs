//! The reading side, and the transport that makes both.

use crate::event::Event;
use crate::publish::Publish;
use std::time::Duration;

/// A subscriber: one reader of every publisher of its topics, now and later.
pub trait Subscribe: Send + 'static {
    /// Hands what has come to `handler`, at most `limit` messages; returns how many events it
    /// handed over. Never blocks.
    ///
    /// Messages are read in place and are done with when the handler returns. A handler that
    /// panics has consumed its message.
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: F) -> usize;

    /// Waits by the subscriber's strategy after a poll that returned `work`: not at all if
    /// there was some. Returns after at most [`Self::longest_wait`], events or not.
    fn wait(&mut self, work: usize);

    /// The longest time that [`wait`](Self::wait) takes, so that a loop can look at other
    /// things (a stop flag) now and then.
    fn longest_wait(&self) -> Duration;

    /// How many streams are joined now.
    fn streams(&self) -> usize;
}

/// A way for messages to travel: makes both ends.
pub trait Transport {
    /// Its writing side.
    type Publisher: Publish;
    /// Its reading side.
    type Subscriber: Subscribe;
    /// Why an end cannot be made.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Its name on the command line: `shm`, `tcp`, ...
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
