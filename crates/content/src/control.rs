//! The control topics of a subscriber with a filter: where it requests the filter from publishers
//! that serve filters.
//!
//! Owned by the subscriber, on its thread. Beside the path of messages.

use crate::negotiation::Negotiations;
use crate::queued_event::QueuedEvent;
use crate::topics::control_topic;
use lanecast_transport::{Claim, ClaimError, Publish, TopicId, Transport};
use lanecast_wire::content::ContentFrame;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::Bound::{Excluded, Included, Unbounded};
use zerocopy::little_endian::U64;

/// Publishers of filter requests, and the topics that each has.
pub(crate) struct ControlTopics<C: Transport> {
    /// Opens further publishers: of topics that a pattern brings. `None` if all are open.
    transport: Option<C>,
    /// Publishers by session.
    publishers: BTreeMap<u64, C::Publisher>,
    /// Session of the publisher that was opened last: the others have no room for a topic.
    newest: u64,
    /// Session and number of each topic.
    topics: BTreeMap<String, (u64, TopicId)>,
    /// The first topic whose request found no room: the next requests begin with it, so that
    /// publishers that never answer do not keep the room from the others.
    resume: Option<String>,
}

impl<C: Transport> ControlTopics<C> {
    /// The control topic of `topic`, and of no others.
    ///
    /// # Errors
    /// If the transport cannot open it.
    pub(crate) fn of_topic(transport: &C, topic: &str) -> Result<Self, C::Error> {
        let mut it = Self::empty(None);
        it.open_session(transport, topic)?;
        Ok(it)
    }

    /// No topics so far.
    pub(crate) const fn of_pattern(transport: C) -> Self {
        Self::empty(Some(transport))
    }

    const fn empty(transport: Option<C>) -> Self {
        Self {
            transport,
            publishers: BTreeMap::new(),
            newest: 0,
            topics: BTreeMap::new(),
            resume: None,
        }
    }

    /// The sessions of the requests.
    pub(crate) fn sessions(&self) -> BTreeSet<u64> {
        self.publishers.keys().copied().collect()
    }

    /// Opens the control topic of `topic` in a new session.
    fn open_session(&mut self, transport: &C, topic: &str) -> Result<(), C::Error> {
        let publisher = transport.publisher(&control_topic(topic))?;
        self.newest = publisher.session().0;
        self.publishers.insert(self.newest, publisher);
        self.topics.insert(topic.to_owned(), (self.newest, TopicId::FIRST));
        Ok(())
    }

    /// Opens the control topic of `topic`: in the newest session, or in a new one if that is full.
    fn open(&mut self, transport: &C, topic: &str, state: &Negotiations) -> Result<(), C::Error> {
        let newest = self.publishers.get_mut(&self.newest);
        let added = newest.and_then(|newest| newest.add_topic(&control_topic(topic)).ok());
        if let Some(id) = added {
            self.topics.insert(topic.to_owned(), (self.newest, id));
            return Ok(());
        }
        self.close_unused(state);
        self.open_session(transport, topic)
    }

    /// Closes the sessions none of whose topics has a publisher any more: topics that come and go
    /// do not add up.
    fn close_unused(&mut self, state: &Negotiations) {
        let live = state.topics();
        let live = self.topics.iter().filter(|(topic, _)| live.contains(&***topic));
        let used: BTreeSet<u64> = live.map(|(_, (session, _))| *session).collect();
        self.publishers.retain(|session, _| used.contains(session));
        self.topics.retain(|_, (session, _)| used.contains(session));
    }

    /// Opens the control topics of publishers that have joined. A topic that cannot be opened now
    /// is tried again with the next request.
    fn open_for(&mut self, state: &mut Negotiations) {
        let Some(transport) = self.transport.take() else { return };
        let requests = state.requests();
        let without = requests.keys().filter(|topic| !self.topics.contains_key(**topic));
        let without: Vec<&str> = without.copied().collect();
        let has_new = !without.is_empty();
        for topic in without {
            let _ = self.open(&transport, topic, state);
        }
        if has_new {
            state.set_controls(self.sessions());
        }
        self.transport = Some(transport);
    }

    /// Requests `filter` from the publishers that have not answered. Without room for a request it
    /// is sent with the next ones.
    pub(crate) fn request(
        &mut self,
        filter: &str,
        state: &mut Negotiations,
        queue: &mut VecDeque<QueuedEvent>,
    ) {
        self.open_for(state);
        let requests = state.requests();
        let first = self.resume.take().unwrap_or_default();
        let from_first = requests.range::<str, _>((Included(&*first), Unbounded));
        let before_first = requests.range::<str, _>((Unbounded, Excluded(&*first)));
        let mut too_long = None;
        for (topic, sessions) in from_first.chain(before_first) {
            match self.request_topic(filter, topic, sessions) {
                Err(ClaimError::BackPressured(_)) if self.resume.is_none() => {
                    self.resume = Some((*topic).to_owned());
                }
                Err(ClaimError::TooLong { longest }) => too_long = Some(longest),
                _ => {}
            }
        }
        if let Some(longest) = too_long {
            let reason = format!(
                "the request of this filter is longer than the transport's longest message, \
                 {longest} bytes: shorten the filter, or configure longer messages"
            );
            state.refuse_requests(&reason, queue);
        }
    }

    fn request_topic(
        &mut self,
        filter: &str,
        topic: &str,
        sessions: &[U64],
    ) -> Result<(), ClaimError> {
        // Without a session the topic could not be opened yet.
        let Some((session, id)) = self.topics.get(topic) else { return Ok(()) };
        let Some(publisher) = self.publishers.get_mut(session) else { return Ok(()) };
        let longest = publisher.longest_message();
        let most = ContentFrame::sessions_max(longest, filter);
        if most == 0 {
            return Err(ClaimError::TooLong { longest });
        }
        for sessions in sessions.chunks(most) {
            let frame = ContentFrame::Wanted { sessions, filter };
            let mut claim = publisher.try_claim_on(*id, frame.len())?;
            frame.write(&mut claim);
            claim.commit();
        }
        Ok(())
    }
}

impl<C: Transport> fmt::Debug for ControlTopics<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlTopics").field("topics", &self.topics).finish_non_exhaustive()
    }
}
