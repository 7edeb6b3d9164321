//! State of the reader as a flush finds it, and the two kinds of writers.

/// State of the reader at a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a reader that sleeps must be woken, by whatever signal it waits for"]
pub enum Peer {
    /// Awake: it will see the flushed values.
    Awake,
    /// Asleep: the caller must signal it once. No other flush returns this before the next sleep.
    Asleep,
    /// Dropped: further values are dropped with the pipe.
    Gone,
}

/// Kind of a [`Writer`](super::Writer) that always has space.
#[derive(Clone, Copy, Debug)]
pub enum Unbounded {}

/// Kind of a [`Writer`](super::Writer) whose pipe can be full.
#[derive(Clone, Copy, Debug)]
pub enum Bounded {}
