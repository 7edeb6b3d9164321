//! Events of a member, as values that outlive the call that emitted them.

use lanecast_membership::{Departure, Event, MemberId, Order, View, ViewChange};

/// An event of a member, with its own copy of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedEvent {
    /// A view is installed.
    View(View, ViewChange),
    /// A message to all.
    Message {
        /// The sender.
        from: MemberId,
        /// The sender's count.
        sequence: u64,
        /// The order.
        order: Order,
        /// The payload.
        bytes: Vec<u8>,
    },
    /// A message to this member alone.
    Direct {
        /// The sender.
        from: MemberId,
        /// The payload.
        bytes: Vec<u8>,
    },
    /// A member is believed to be gone.
    Suspected(MemberId, Departure),
    /// The application is asked for the state.
    StateRequested {
        /// The new member.
        to: MemberId,
        /// Names the request.
        token: u64,
    },
    /// The group's state.
    State(Vec<u8>),
    /// No member has the state.
    StateLost,
    /// Sending is possible again.
    Writable,
    /// A member of another version.
    OtherVersion(u8),
    /// This member has left.
    Left,
}

impl OwnedEvent {
    /// Copies an event; `None` for one that this crate does not know.
    pub fn copy(event: &Event<'_>) -> Option<Self> {
        Some(match *event {
            Event::View(view, change) => Self::View(view.clone(), change.clone()),
            Event::Message { from, sequence, order, bytes } => {
                Self::Message { from, sequence, order, bytes: bytes.to_vec() }
            }
            Event::Direct { from, bytes } => Self::Direct { from, bytes: bytes.to_vec() },
            Event::Suspected(member, why) => Self::Suspected(member.id, why),
            Event::StateRequested { to, token } => Self::StateRequested { to, token },
            Event::State(bytes) => Self::State(bytes.to_vec()),
            Event::StateLost => Self::StateLost,
            Event::Writable => Self::Writable,
            Event::OtherVersion { version } => Self::OtherVersion(version),
            Event::Left => Self::Left,
            _ => return None,
        })
    }
}
