//! Hot failover: several publishers send the same numbered stream, and the first copy of each
//! message counts.
//!
//! A [`Failover`] stands in front of a subscriber, in its owner's thread. It needs nothing of the
//! publishers but equal numbers, so it works over every transport, and across transports.

mod merge;

pub use merge::{FailoverCounters, FailoverSettings};

use lanecast_transport::{
    CloseReason, Event, Gap, Lease, LossReason, Message, SessionId, Stream, Subscribe, TopicId,
};
use merge::{Admission, Merge, Ready, key};
use std::fmt;
use std::time::Instant;

/// A subscriber to one stream that several publishers send, each message with the same number.
///
/// The stream has one `Joined`, with the first source, and one `Left`, with the last. In between
/// each number is delivered once and in order, from the source that brings it first. The end of a
/// source is no event: while another one brings the messages, nothing is missing. A message that no
/// source has brought is reported by `Lost`, when every source has sent a later one, or when
/// [`FailoverSettings`] allow no longer wait.
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
    merge: Merge,
    /// The merged stream, once a source has joined.
    stream: Option<Stream>,
    /// The last source has left, for this reason; it is told after the messages that are held.
    left: Option<CloseReason>,
    /// Events of the subscriber in the last poll.
    work: usize,
}

impl<S: Subscribe, N: FnMut(&Message<'_>) -> u64> Failover<S, N> {
    /// Merges the streams of `subscriber`, whose messages have the numbers that `number` gives.
    pub fn new(subscriber: S, settings: FailoverSettings, number: N) -> Self {
        let merge = Merge::new(settings);
        Self { subscriber, number, merge, stream: None, left: None, work: 0 }
    }

    /// Calls `handler` with at most `limit` events of the merged stream; returns their number.
    /// Never blocks.
    pub fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let mut events = self.release(limit, &mut handler);
        self.work = events;
        if events < limit {
            let Self { subscriber, number, merge, stream, left, .. } = self;
            self.work += subscriber.poll(limit - events, |event| {
                let merged = (&mut *stream, &mut *left);
                events += take(event, number, merge, merged, &mut handler);
            });
            events += self.release(limit - events, &mut handler);
        }
        events
    }

    /// Delivers messages that were held, losses, and the end, as far as their turn has come.
    fn release(&mut self, limit: usize, handler: &mut impl FnMut(Event<'_>)) -> usize {
        let Some(stream) = &self.stream else { return 0 };
        let mut events = 0;
        while events < limit
            && let Some(ready) = self.merge.take_ready(Instant::now())
        {
            events += 1;
            match ready {
                Ready::Message(number, bytes) => {
                    let message = Message::new(&bytes, stream, number, Lease::FOR_GOOD);
                    handler(Event::Message(message));
                }
                Ready::Lost(first, count) => {
                    handler(Event::Lost(Gap { stream, first, count, why: LossReason::GaveUp }));
                }
            }
        }
        if events < limit
            && self.merge.sources() == 0
            && let Some(why) = self.left.take()
            && let Some(stream) = self.stream.take()
        {
            events += 1;
            handler(Event::Left(&stream, why));
        }
        events
    }

    /// Waits for the next event by the subscriber's strategy, unless the last poll found something.
    pub fn wait(&mut self) {
        let longest = self.subscriber.longest_wait();
        let left = self.merge.patience_left(Instant::now()).unwrap_or(longest);
        self.subscriber.wait_at_most(self.work, left.min(longest));
    }

    /// Number of publishers that send the stream now.
    pub const fn sources(&self) -> usize {
        self.merge.sources()
    }

    /// Counts so far.
    pub const fn counters(&self) -> FailoverCounters {
        self.merge.counters()
    }
}

/// Handles an event of the subscriber; returns the number of events of the merged stream.
fn take(
    event: Event<'_>,
    number: &mut impl FnMut(&Message<'_>) -> u64,
    merge: &mut Merge,
    (stream, left): (&mut Option<Stream>, &mut Option<CloseReason>),
    handler: &mut impl FnMut(Event<'_>),
) -> usize {
    match event {
        Event::Message(message) => {
            let Some(stream) = stream.as_ref() else { return 0 };
            let number = number(&message);
            match merge.admit(key(message.stream()), number) {
                Admission::Next => {
                    handler(Event::Message(message.presented(message.bytes(), stream, number)));
                    return 1;
                }
                Admission::Ahead => {
                    let mut bytes = Vec::new();
                    // One that is overwritten meanwhile may come from another source.
                    if message.copy_into(&mut bytes).is_ok() {
                        merge.hold(number, bytes.into());
                    }
                }
                Admission::Duplicate => {}
            }
            0
        }
        Event::Joined(source) => {
            merge.join(key(source));
            // The stream goes on if its end was not told yet.
            *left = None;
            if stream.is_some() {
                return 0;
            }
            let topic = source.topic.clone();
            let (session, topic_id, source) = (SessionId(0), TopicId::FIRST, "failover".to_owned());
            let merged = stream.insert(Stream { session, topic, topic_id, pid: 0, source });
            handler(Event::Joined(merged));
            1
        }
        Event::Left(source, why) => {
            merge.leave(key(source));
            if merge.sources() == 0 {
                *left = Some(why);
            }
            0
        }
        // Losses of one source are missing numbers here.
        _ => 0,
    }
}

impl<S, N> fmt::Debug for Failover<S, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failover").field("merge", &self.merge).finish_non_exhaustive()
    }
}
