//! The handler interface: called for each message, on the handler's own thread.

/// Position of a message in its stream and batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventInfo {
    /// Number of messages passed to this handler before: with one producer and without shared work,
    /// the message's number in the stream.
    pub sequence: u64,
    /// Whether no further message is available at present: time to flush a batch. With several
    /// producers, none of the same producer; always true for handlers that share work.
    pub end_of_batch: bool,
}

/// Callbacks for each message. Closures `FnMut(&T, EventInfo)` are handlers, too.
///
/// All calls come from one thread, the handler's own.
pub trait Handler<T>: Send {
    /// Handles one message, in place.
    fn on_event(&mut self, event: &T, place: EventInfo);

    /// Called before the first message.
    fn on_start(&mut self) {}

    /// Called after the last message, unless the handler was halted by a panic.
    fn on_end(&mut self) {}

    /// Called each time that the handler has run out of messages.
    fn on_idle(&mut self) {}
}

impl<T, F: FnMut(&T, EventInfo) + Send> Handler<T> for F {
    #[inline(always)]
    fn on_event(&mut self, event: &T, place: EventInfo) {
        self(event, place);
    }
}

/// A handler with a name for its thread and its panics; created by [`named`].
#[derive(Clone, Debug)]
pub struct Named<H> {
    pub(super) name: String,
    pub(super) handler: H,
}

/// Gives `handler` a name, of which the system shows the first 15 bytes.
pub fn named<H>(name: impl Into<String>, handler: H) -> Named<H> {
    Named { name: name.into(), handler }
}
