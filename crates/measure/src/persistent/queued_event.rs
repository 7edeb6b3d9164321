//! An event that waits for its program, with bytes of its own.

use lanecast_transport::{CloseReason, Event, Gap, Lease, LossReason, Message, Stream};

/// An event of a stream, owned.
#[derive(Clone, Debug)]
pub(super) struct QueuedEvent {
    stream: Stream,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Joined,
    Message(u64, Vec<u8>),
    Lost(u64, u64, LossReason),
    Left(CloseReason),
}

impl QueuedEvent {
    /// A copy of `event`; `None` for events that only subscribers with filters have.
    pub(super) fn of(event: &Event<'_>) -> Option<Self> {
        let (stream, kind) = match event {
            Event::Joined(stream) => (*stream, Kind::Joined),
            Event::Message(it) => (it.stream(), Kind::Message(it.number(), it.bytes().to_vec())),
            Event::Lost(gap) => (gap.stream, Kind::Lost(gap.first, gap.count, gap.why)),
            Event::Left(stream, why) => (*stream, Kind::Left(*why)),
            _ => return None,
        };
        Some(Self { stream: stream.clone(), kind })
    }

    pub(super) fn event(&self) -> Event<'_> {
        let stream = &self.stream;
        match &self.kind {
            Kind::Joined => Event::Joined(stream),
            Kind::Message(number, bytes) => {
                Event::Message(Message::new(bytes, stream, *number, Lease::FOR_GOOD))
            }
            Kind::Lost(first, count, why) => {
                Event::Lost(Gap { stream, first: *first, count: *count, why: *why })
            }
            Kind::Left(why) => Event::Left(stream, *why),
        }
    }
}
