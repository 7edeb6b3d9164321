//! What the experiments ask of a transport: one direction, with a writing and a reading end.

/// The writing end.
pub(super) trait Writes {
    /// Adds a message, which nobody sees yet.
    fn write(&mut self, message: u64);

    /// Shows what was written, and wakes the reader if it sleeps.
    fn flush(&mut self);

    /// Ends the messages. How often the reader had to be woken, where that is known.
    fn close(self) -> Option<u64>;
}

/// The reading end.
pub(super) trait Reads {
    /// Waits until there is something, and hands over all of it, in order; false at the end.
    fn read(&mut self, each: impl FnMut(u64)) -> bool;
}
