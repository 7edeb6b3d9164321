//! Hot failover: several publishers send the same numbered stream, and the first copy of each
//! message counts.
//!
//! A [`Failover`] stands in front of a subscriber, in its owner's thread. It needs nothing of the
//! publishers but equal numbers, so it works over every transport, and across transports.

mod merge;
#[cfg(test)]
mod tests;

pub use merge::{FailoverCounters, FailoverSettings, JoinsAtEnd};

use lanecast_transport::{
    CloseReason, Event, Gap, Lease, LossReason, Message, SessionId, Stream, Subscribe, TopicId,
};
use merge::{Admission, Merge, Ready, key};
use std::fmt;
use std::time::Instant;

/// A subscriber to one stream that several publishers send, each message with the same number.
///
/// The stream has one `Joined`, with the first source, and one `Left`, with the last: `Closed` if a
/// source that has sent all of it closed it, otherwise for the reason of the last. In between each
/// number is delivered once and in order, from the source that brings it first. The end of a
/// source is no event: while another one brings the messages, nothing is missing. A message that no
/// source has brought is reported by `Lost`, when every source has sent a later one, has lost it or
/// has left, or when [`FailoverSettings`] allow no longer wait. The numbers of the next stream,
/// after `Left`, may begin anew; [`JoinsAtEnd`] says which publishers begin one.
///
/// The number is that of the publisher, if all of them publish the same messages from the first on;
/// or what the function finds in the message: then a restarted publisher goes on with its numbers.
/// The subscriber has to deliver in the order of publication.
///
/// ```
/// use lanecast::failover::{Failover, FailoverSettings};
/// use lanecast::prelude::*;
/// # let context = Context::builder().set("shm.visibility", "process")?.build()?;
///
/// let subscriber = context.subscriber("orders")?;
/// let mut feed = Failover::new(subscriber, FailoverSettings::default(), |it| it.number());
/// let mut first = context.publisher("orders")?;
/// let mut second = context.publisher("orders")?;
/// for publisher in [&mut first, &mut second] {
///     publisher.send(b"buy")?;
/// }
/// drop(first);
/// second.send(b"sell")?;
///
/// let mut orders = Vec::new();
/// while orders.len() < 2 {
///     feed.poll(8, |event| {
///         if let Event::Message(message) = event {
///             orders.push((message.number(), message.bytes().to_vec()));
///         }
///     });
///     feed.wait();
/// }
/// assert_eq!(orders, [(0, b"buy".to_vec()), (1, b"sell".to_vec())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Failover<S, N> {
    subscriber: S,
    number: N,
    merged: Merged,
    /// Events of the subscriber in the last poll.
    work: usize,
}

/// The merged stream.
#[derive(Debug)]
struct Merged {
    merge: Merge,
    /// Description of the merged stream, from its `Joined` to its `Left`.
    stream: Option<Stream>,
    /// The last source has left, for this reason; it is told after the messages that are held.
    left: Option<CloseReason>,
}

impl<S: Subscribe, N: FnMut(&Message<'_>) -> u64> Failover<S, N> {
    /// Merges the streams of `subscriber`, whose messages have the numbers that `number` gives.
    pub fn new(subscriber: S, settings: FailoverSettings, number: N) -> Self {
        let merged = Merged { merge: Merge::new(settings), stream: None, left: None };
        Self { subscriber, number, merged, work: 0 }
    }

    /// Calls `handler` with at most `limit` events of the merged stream; returns their number.
    /// Never blocks.
    ///
    /// There are more events only where messages that were held exceed [`FailoverSettings`], or
    /// where a stream begins behind another one ([`JoinsAtEnd::NewStream`]): then what ends the
    /// former comes at once.
    pub fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let Self { subscriber, number, merged, work } = self;
        let mut events = merged.release(limit, &mut handler);
        *work = events;
        if events < limit {
            let asked = limit - events;
            let found = subscriber.poll(asked, |event| {
                events += merged.take(event, number, &mut handler);
            });
            *work += found;
            events += merged.release(limit.saturating_sub(events), &mut handler);
            // Otherwise a source may have joined beside the last one, and come with the next poll.
            if found < asked && events < limit {
                events += merged.end(&mut handler);
            }
        }
        events
    }

    /// Waits for the next event by the subscriber's strategy, unless the last poll found something.
    pub fn wait(&mut self) {
        let longest = self.subscriber.longest_wait();
        let left = self.merged.merge.patience_left(Instant::now()).unwrap_or(longest);
        self.subscriber.wait_at_most(self.work, left.min(longest));
    }

    /// Number of publishers that send the stream now.
    pub const fn sources(&self) -> usize {
        self.merged.merge.sources()
    }

    /// Counts so far.
    pub const fn counters(&self) -> FailoverCounters {
        self.merged.merge.counters()
    }
}

impl Merged {
    /// Delivers messages that were held and losses, as far as their turn has come.
    fn release(&mut self, limit: usize, handler: &mut impl FnMut(Event<'_>)) -> usize {
        let mut events = 0;
        while events < limit && self.release_one(handler) {
            events += 1;
        }
        events
    }

    /// Tells the end, after all that was held, if the last source has left.
    fn end(&mut self, handler: &mut impl FnMut(Event<'_>)) -> usize {
        if self.merge.sources() == 0
            && let Some(why) = self.left.take()
            && let Some(stream) = self.stream.take()
        {
            let why = self.merge.end_reason(why);
            // The next stream has numbers of its own. Before the call: the handler may panic.
            self.merge.reset();
            handler(Event::Left(&stream, why));
            return 1;
        }
        0
    }

    /// Delivers a held message or a loss, if its turn has come.
    fn release_one(&mut self, handler: &mut impl FnMut(Event<'_>)) -> bool {
        let Some(stream) = &self.stream else { return false };
        match self.merge.take_ready(Instant::now()) {
            Some(Ready::Message(number, bytes)) => {
                handler(Event::Message(Message::new(&bytes, stream, number, Lease::FOR_GOOD)));
            }
            Some(Ready::Lost(first, count)) => {
                handler(Event::Lost(Gap { stream, first, count, why: LossReason::GaveUp }));
            }
            None => return false,
        }
        true
    }

    /// Handles an event of the subscriber; returns the number of events of the merged stream.
    fn take(
        &mut self,
        event: Event<'_>,
        number: &mut impl FnMut(&Message<'_>) -> u64,
        handler: &mut impl FnMut(Event<'_>),
    ) -> usize {
        match event {
            Event::Message(message) => self.admit(&message, number(&message), handler),
            Event::Joined(source) => self.join(source, handler),
            Event::Left(source, why) => {
                self.merge.leave(key(source), why);
                if self.merge.sources() == 0 {
                    self.left = Some(why);
                }
                0
            }
            // Told when no other source brings the messages.
            Event::Lost(gap) => {
                self.merge.lose(key(gap.stream), gap.first, gap.count);
                0
            }
            _ => 0,
        }
    }

    fn admit(
        &mut self,
        message: &Message<'_>,
        number: u64,
        handler: &mut impl FnMut(Event<'_>),
    ) -> usize {
        let Some(stream) = &self.stream else { return 0 };
        match self.merge.admit(key(message.stream()), message.number(), number) {
            Admission::Next => {
                handler(Event::Message(message.presented(message.bytes(), stream, number)));
                return 1;
            }
            Admission::Ahead => {
                let mut bytes = Vec::new();
                // One that is overwritten meanwhile may come from another source.
                if message.copy_into(&mut bytes).is_ok() {
                    self.merge.hold(number, bytes.into());
                }
            }
            Admission::Duplicate => {}
        }
        let mut events = 0;
        // At once: the poll of the subscriber may bring any number of messages.
        while self.merge.is_full() && self.release_one(handler) {
            events += 1;
        }
        events
    }

    fn join(&mut self, source: &Stream, handler: &mut impl FnMut(Event<'_>)) -> usize {
        let mut events = 0;
        if self.left.is_some() && self.merge.begins_anew() {
            events += self.release(usize::MAX, handler);
            events += self.end(handler);
        }
        // The others may have left before the same poll came to this one, which sent beside them.
        self.left = None;
        self.merge.join(key(source));
        if self.stream.is_some() {
            return events;
        }
        let topic = source.topic.clone();
        let (session, topic_id, source) = (SessionId(0), TopicId::FIRST, "failover".to_owned());
        let merged = Stream { session, topic, topic_id, pid: 0, source };
        handler(Event::Joined(self.stream.insert(merged)));
        events + 1
    }
}

impl<S, N> fmt::Debug for Failover<S, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failover").field("merged", &self.merged).finish_non_exhaustive()
    }
}
