//! Opening of a subscriber's sessions: the topics that it wants, and how they are delivered.
//!
//! Owned by `ReceiveSessions`.

use crate::context::NetContext;
use crate::receive_session::ReceiveSession;
use crate::settings::DeliverySettings;
use crate::source::Source;
use lanecast_protocol::Nanos;
use lanecast_transport::{SessionId, TopicSelection};
use std::io;

/// Topics named in a join. A publisher of several of them then starts when the subscriber is
/// joined for all; further topics are asked for when discovery finds them.
const NAMES_MAX: usize = 32;

/// Opens the sessions of a subscriber.
#[derive(Debug)]
pub(crate) struct SessionOpener {
    topics: TopicSelection,
    /// The session that is not joined.
    except: Option<SessionId>,
    delivery: DeliverySettings,
    /// Indices are unique in the subscriber: shares of it number their sessions in turn.
    next_index: u32,
    index_step: u32,
}

impl SessionOpener {
    pub(crate) const fn new(
        topics: TopicSelection,
        except: Option<SessionId>,
        delivery: DeliverySettings,
    ) -> Self {
        Self { topics, except, delivery, next_index: 0, index_step: 1 }
    }

    /// Numbers the sessions of share `index` of `count`.
    pub(crate) const fn set_share(&mut self, index: u32, count: u32) {
        (self.next_index, self.index_step) = (index, count);
    }

    /// The topics that the subscriber wants.
    pub(crate) const fn topics(&self) -> &TopicSelection {
        &self.topics
    }

    /// Whether the subscriber wants `topic` of the publisher.
    pub(crate) fn selects(&self, source: &Source, topic: &str) -> bool {
        self.except != Some(SessionId(source.session)) && self.topics.selects(topic)
    }

    /// Opens a session with `topic`: its receiver's number, which is a secret, and a seed.
    ///
    /// # Errors
    /// If the system has no connection for it.
    pub(crate) fn open(
        &mut self,
        context: &NetContext,
        source: &Source,
        topic: &str,
        random: (u64, u64),
        now: Nanos,
    ) -> io::Result<ReceiveSession> {
        // The found topic comes first: it is among the names even if there are too many.
        let others = self.topics.names().filter(|other| *other != topic);
        let topics: Vec<&str> = [topic].into_iter().chain(others).take(NAMES_MAX).collect();
        let wanted = (&topics[..], self.topics.admission(), self.delivery);
        let session = ReceiveSession::open(context, self.next_index, source, wanted, random, now)?;
        self.next_index = self.next_index.wrapping_add(self.index_step);
        Ok(session)
    }
}
