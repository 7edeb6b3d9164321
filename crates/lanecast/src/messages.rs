//! A subscription as a blocking iterator over owned messages.

use lanecast_transport::{CloseReason, Event, LossReason, Stream, Subscribe};
use std::collections::VecDeque;

/// Iterator over the messages of a subscriber, made by
/// [`Subscriber::messages`](crate::Subscriber::messages).
///
/// [`next`](Iterator::next) waits by the subscriber's strategy, without a limit, and copies each
/// message. The iterator ends when every publisher that joined has closed its stream; before the
/// first publisher joins it waits. Losses and streams that end otherwise are
/// [`Interruption`]s, after which the iteration may go on.
#[derive(Debug)]
pub struct Messages<S> {
    subscriber: S,
    /// Items of the latest poll that were not returned yet: at most one message.
    pending: VecDeque<Result<Vec<u8>, Interruption>>,
    /// Joined streams; `None` before the first.
    open: Option<usize>,
}

/// A break in the messages of one stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Interruption {
    /// Messages were lost; later ones follow.
    #[error("{count} messages of {stream} were lost: {}", why.describe())]
    Lost {
        /// The stream.
        stream: Stream,
        /// The first lost message, numbered as in [`Gap::first`](crate::Gap::first).
        first: u64,
        /// Number of lost messages; they follow each other.
        count: u64,
        /// The reason.
        why: LossReason,
    },
    /// The stream ended, and its publisher had not closed it.
    #[error("the stream {stream} ended: {why}")]
    Left {
        /// The stream.
        stream: Stream,
        /// The reason; never [`CloseReason::Closed`].
        why: CloseReason,
    },
}

impl<S: Subscribe> Messages<S> {
    pub(crate) const fn new(subscriber: S) -> Self {
        Self { subscriber, pending: VecDeque::new(), open: None }
    }
}

impl<S: Subscribe> Iterator for Messages<S> {
    type Item = Result<Vec<u8>, Interruption>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { subscriber, pending, open } = self;
        loop {
            if let Some(item) = pending.pop_front() {
                return Some(item);
            }
            if *open == Some(0) {
                return None;
            }
            // One message a poll: a loop that ends early leaves the others unread.
            let work = subscriber.poll(1, |event| match event {
                Event::Joined(_) => *open = Some(open.unwrap_or(0) + 1),
                // An overwritten message is reported as lost by the next event.
                Event::Message(message) => pending.extend(message.to_vec().ok().map(Ok)),
                Event::Lost(gap) => {
                    let stream = gap.stream.clone();
                    let (first, count, why) = (gap.first, gap.count, gap.why);
                    pending.push_back(Err(Interruption::Lost { stream, first, count, why }));
                }
                Event::Left(stream, why) => {
                    *open = Some(open.unwrap_or(0).saturating_sub(1));
                    if why != CloseReason::Closed {
                        pending.push_back(Err(Interruption::Left { stream: stream.clone(), why }));
                    }
                }
                // No other event reports a loss or an end.
                _ => {}
            });
            subscriber.wait(work);
        }
    }
}
