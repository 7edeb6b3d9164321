//! The control topics of a subscriber with a filter: where it requests the filter from publishers
//! that serve filters.
//!
//! Owned by the subscriber, on its thread. Beside the path of messages.

use crate::negotiation::Negotiations;
use crate::topics::control_topic;
use lanecast_transport::{Claim, Publish, TopicId, Transport};
use lanecast_wire::content::ContentFrame;
use std::collections::BTreeMap;
use std::fmt;

/// Publishers of filter requests, and the topics that each has.
pub(crate) struct ControlTopics<C: Transport> {
    /// Opens further publishers: of topics that a pattern brings. `None` if all are open.
    transport: Option<C>,
    publishers: Vec<C::Publisher>,
    /// Publisher and number of each topic.
    topics: BTreeMap<String, (usize, TopicId)>,
}

impl<C: Transport> ControlTopics<C> {
    /// The control topic of `topic`, and of no others.
    ///
    /// # Errors
    /// If the transport cannot open it.
    pub(crate) fn of_topic(transport: &C, topic: &str) -> Result<Self, C::Error> {
        let mut it = Self { transport: None, publishers: Vec::new(), topics: BTreeMap::new() };
        it.open(transport, topic)?;
        Ok(it)
    }

    /// No topics so far.
    pub(crate) const fn of_pattern(transport: C) -> Self {
        Self { transport: Some(transport), publishers: Vec::new(), topics: BTreeMap::new() }
    }

    /// Opens the control topic of `topic`: in the newest session, or in a new one if that is full.
    fn open(&mut self, transport: &C, topic: &str) -> Result<u64, C::Error> {
        let name = control_topic(topic);
        let newest = self.publishers.last_mut();
        let added = newest.and_then(|publisher| publisher.add_topic(&name).ok());
        let id = match added {
            Some(id) => id,
            None => {
                self.publishers.push(transport.publisher(&name)?);
                TopicId::FIRST
            }
        };
        let at = self.publishers.len() - 1;
        self.topics.insert(topic.to_owned(), (at, id));
        Ok(self.publishers[at].session().0)
    }

    /// Opens the control topics of publishers that have joined. A topic that cannot be opened now
    /// is tried again with the next request.
    pub(crate) fn open_for(&mut self, state: &mut Negotiations) {
        let topics: Vec<String> = state.topics_without_control().map(str::to_owned).collect();
        for topic in topics {
            let known = self.topics.get(&topic).map(|(at, _)| self.publishers[*at].session().0);
            let session = match (known, self.transport.take()) {
                (None, Some(transport)) => {
                    let opened = self.open(&transport, &topic);
                    self.transport = Some(transport);
                    opened.ok()
                }
                (known, transport) => {
                    self.transport = transport;
                    known
                }
            };
            session.into_iter().for_each(|session| state.set_control(&topic, session));
        }
    }

    /// Requests `filter` from the publishers that have not answered. Without room for a request it
    /// is sent with the next ones.
    pub(crate) fn request(&mut self, filter: &str, state: &Negotiations) {
        let frame = ContentFrame::Wanted { filter };
        for topic in state.requested_topics() {
            let Some((at, id)) = self.topics.get(topic) else { continue };
            if let Ok(mut claim) = self.publishers[*at].try_claim_on(*id, frame.len()) {
                frame.write(&mut claim);
                claim.commit();
            }
        }
    }
}

impl<C: Transport> fmt::Debug for ControlTopics<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlTopics").field("topics", &self.topics).finish_non_exhaustive()
    }
}
