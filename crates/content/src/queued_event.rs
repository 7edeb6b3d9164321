//! Events that a run of a subscriber with a filter found, kept until they are yielded.

use lanecast_transport::{CloseReason, Event, Gap, LossReason, Stream};

/// An event without a message, with its own copy of the stream.
#[derive(Debug)]
pub(crate) struct QueuedEvent {
    stream: Stream,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Joined,
    Lost { first: u64, count: u64, why: LossReason },
    Left(CloseReason),
    FilterActive,
    FilterRefused(String),
    FilterInactive,
}

impl QueuedEvent {
    /// A copy of `event`; `None` if it is a message.
    pub(crate) fn new(event: Event<'_>) -> Option<Self> {
        let (stream, kind) = match event {
            Event::Joined(stream) => (stream, Kind::Joined),
            Event::Lost(Gap { stream, first, count, why }) => {
                (stream, Kind::Lost { first, count, why })
            }
            Event::Left(stream, why) => (stream, Kind::Left(why)),
            Event::FilterActive(stream) => (stream, Kind::FilterActive),
            Event::FilterRefused(stream, reason) => {
                (stream, Kind::FilterRefused(reason.to_owned()))
            }
            Event::FilterInactive(stream) => (stream, Kind::FilterInactive),
            _ => return None,
        };
        Some(Self { stream: stream.clone(), kind })
    }

    pub(crate) fn get(&self) -> Event<'_> {
        let stream = &self.stream;
        match &self.kind {
            Kind::Joined => Event::Joined(stream),
            &Kind::Lost { first, count, why } => Event::Lost(Gap { stream, first, count, why }),
            &Kind::Left(why) => Event::Left(stream, why),
            Kind::FilterActive => Event::FilterActive(stream),
            Kind::FilterRefused(reason) => Event::FilterRefused(stream, reason),
            Kind::FilterInactive => Event::FilterInactive(stream),
        }
    }

    /// Whether this is the end of a stream.
    pub(crate) const fn is_left(&self) -> bool {
        matches!(self.kind, Kind::Left(_))
    }
}
