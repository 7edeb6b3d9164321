//! A run of events, which stay valid until the run is dropped.

use crate::event::Event;

/// A run of events, returned by [`Subscribe::take`](crate::Subscribe::take).
///
/// The events borrow from the run, so that several can be held at once: sorted, written as one
/// batch, passed to a function that wants a slice. Only the drop of the run consumes them: it moves
/// the subscriber's cursor past the last event that an iterator yielded, also during a panic.
/// Events that were not yielded come again, with the next take or poll.
///
/// A held run gates the publisher as a handler that does not return: under back-pressure the
/// publisher waits for it, and a publisher that evicts stalled subscribers evicts its holder. The
/// held bytes stay whole even then; the next take or poll reports the loss.
///
/// [`mem::forget`](std::mem::forget) of a run consumes nothing: its events come again. An iterator
/// counts when it is dropped: one that is forgotten has yielded nothing.
///
/// # Examples
///
/// ```
/// use lanecast_transport::{Event, Message, Run, Subscribe};
///
/// /// Passes up to 1,000 messages at once to `insert`; returns their number.
/// fn insert_batch(feed: &mut impl Subscribe, insert: impl Fn(&[Message<'_>])) -> usize {
///     let run = feed.take(1_000);
///     let messages: Vec<_> = run
///         .iter()
///         .filter_map(|event| match event {
///             Event::Message(message) => Some(message),
///             _ => None,
///         })
///         .collect();
///     insert(&messages);
///     messages.len()
/// } // The run is dropped: the publisher may overwrite the messages.
/// ```
#[must_use = "a run that is dropped at once consumes nothing"]
pub trait Run {
    /// Iterator over the events.
    type Events<'r>: Iterator<Item = Event<'r>>
    where
        Self: 'r;

    /// The events, from the first one on.
    ///
    /// Each call starts again. The first iterator that finds no more events ends the run: later
    /// iterators find the same events.
    fn iter(&self) -> Self::Events<'_>;
}
