//! State of the reader as a flush finds it, and the two kinds of writers.

/// What a flush finds out about the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a reader that sleeps must be woken, by whatever signal it waits for"]
pub enum Peer {
    /// It is awake and will see what was flushed.
    Awake,
    /// It found nothing and waits: the caller owes it one signal. No other flush says so before
    /// it sleeps again.
    Asleep,
    /// It is no more: what is written from now on is only dropped with the pipe.
    Gone,
}

/// The kind of a [`Writer`] that never lacks room.
#[derive(Clone, Copy, Debug)]
pub enum Unbounded {}

/// The kind of a [`Writer`] that may lack room.
#[derive(Clone, Copy, Debug)]
pub enum Bounded {}
