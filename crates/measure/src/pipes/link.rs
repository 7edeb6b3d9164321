//! One direction of a transport: a writing and a reading end.

/// The writing end.
pub(super) trait Writes {
    /// Adds a message, invisible until the next flush.
    fn write(&mut self, message: u64);

    /// Makes written messages visible and wakes a sleeping reader.
    fn flush(&mut self);

    /// Writes a message and makes it visible at once.
    #[inline(always)]
    fn write_and_flush(&mut self, message: u64) {
        self.write(message);
        self.flush();
    }

    /// Ends the stream; returns the number of wake-ups of the reader, if known.
    fn close(self) -> Option<u64>;
}

/// The reading end.
pub(super) trait Reads {
    /// Waits for messages and passes all of them to `each`, in order; false at the end.
    fn read(&mut self, each: impl FnMut(u64)) -> bool;
}
