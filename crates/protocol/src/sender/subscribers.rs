//! Subscribers of a session, for its publisher: events, and the report on what they have read.
//!
//! A receiver is a subscriber from its first subscribed topic on.

use super::receiver_state::Peer;
use super::session::Session;
use lanecast_transport::{
    Completion, IncompleteReason, PublisherEvent, SubscriberId, SubscriberInfo,
};

/// The subscribers of a [`Sender`](super::Sender), for its publisher.
#[derive(Debug)]
pub struct Subscribers<'a> {
    session: &'a mut Session,
}

impl<'a> Subscribers<'a> {
    pub(super) const fn new(session: &'a mut Session) -> Self {
        Self { session }
    }

    /// Gives pending events to `handler`: subscribers that joined and left, and room after a
    /// refused message; returns their number.
    pub fn poll_events(self, mut handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        let session = self.session;
        let mut events = session.membership.poll(&mut handler);
        if let Some((topic, len)) = session.refused {
            let retain_from = session.retain_from();
            let packetizer = &mut session.packetizer;
            // Staged and discarded: the batch of a caller that has one open stays whole.
            if packetizer.staged == 0 && packetizer.stage(topic, len, retain_from).is_ok() {
                packetizer.unstage();
                session.refused = None;
                events += 1;
                handler(PublisherEvent::Writable);
            }
        }
        events
    }

    /// Whether a message was refused for want of room, and no event has told of room since.
    pub const fn was_refused(&self) -> bool {
        self.session.refused.is_some()
    }

    /// Forgets a refusal: the caller has waited for the room, and got it.
    pub const fn forget_refusal(self) {
        self.session.refused = None;
    }

    /// The subscribers that have read everything published, and those that have not.
    pub fn completion(&self) -> Completion {
        let session = &*self.session;
        let mut completion =
            session.membership.completion(|read| read == session.counted_messages());
        for known in &session.receivers {
            let info = known.subscriber.and_then(|id| session.membership.get(id));
            let Some(info) = info else { continue };
            if known.has_lost {
                completion.add_incomplete(info.clone(), IncompleteReason::LostMessages);
            } else if session.has_read_all(known) {
                completion.add_complete(1);
            } else {
                let bytes = session.packetizer.window.bytes_since(known.consumed);
                let reason = IncompleteReason::Behind { messages: None, bytes };
                completion.add_incomplete(info.clone(), reason);
            }
        }
        completion
    }
}

/// Notes that the receiver is a subscriber, once it is subscribed to a topic.
pub(super) fn note(session: &mut Session, at: usize) {
    let known = &session.receivers[at];
    if known.subscriber.is_some() || !known.counts() {
        return;
    }
    session.subscribers += 1;
    let id = SubscriberId(session.subscribers);
    let address = match known.peer {
        Peer::Address(address) => Some(address),
        Peer::Connection(number) => session.connections.get(number).map(|known| known.from),
    };
    let address = address.map_or_else(String::new, |address| address.to_string());
    session.membership.join(SubscriberInfo { id, address, pid: None, name: None });
    session.receivers[at].subscriber = Some(id);
}

/// A receiver joins: returns whether it has lost messages in an earlier membership, or since.
///
/// `resumes`: the stream continues where the receiver left off. Messages without subscribers are
/// never retained, so a change of their count means a loss even then.
pub(super) fn has_lost_before(session: &mut Session, receiver: u64, resumes: bool) -> bool {
    // Unknown here is new, and a new receiver has lost nothing.
    let Some(known) = session.departed.take(receiver) else { return false };
    // The new membership reports what the former one had not read.
    session.membership.forget(known.subscriber);
    let is_whole = resumes && known.unsubscribed == session.counters.unsubscribed;
    known.has_lost || !is_whole
}
