//! Maps the ids of a SOW topic's feed to the server's subscriptions and to running queries.

use crate::command::acknowledgement::ReplyTo;
use crate::delivery::fanout::MessageSender;
use crate::delivery::field_selection::FieldSelection;
use crate::ids::{ClientId, FeedId, SubscriptionId};
use crate::queue::slow_consumer::SlowConsumerReason;
use crate::time::Nanos;
use foldhash::HashMap;
use lanecast_base::budget::Reservation;
use std::sync::Arc;

/// A query whose result is not sent completely.
#[derive(Debug)]
pub(crate) struct PendingQuery {
    pub(crate) client: ClientId,
    /// Ids of the query and its command, and the acknowledgements that follow the result.
    pub(crate) reply_to: ReplyTo<'static>,
    /// The most records of a message.
    pub(crate) batch: usize,
    pub(crate) fields: FieldSelection,
    /// The user sees some messages only: statistics must not count the others.
    pub(crate) is_restricted: bool,
    /// Tokens that count the client's queries and its filters' memory.
    pub(crate) _counted: (Arc<()>, Reservation),
}

/// Progress of a topic's queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryProgress {
    /// All results are sent.
    Done,
    /// The remaining results wait until their clients have read more.
    Waiting,
    /// More results can be sent at once.
    Running,
}

/// The subscriptions and queries of a feed.
#[derive(Debug, Default)]
pub(crate) struct FeedSubscriptions {
    /// The server's subscriptions, by feed id.
    subscriptions: Vec<Option<SubscriptionId>>,
    /// The reverse mapping.
    feed_ids: HashMap<SubscriptionId, FeedId>,
    pub(crate) queries: HashMap<FeedId, PendingQuery>,
    /// Queries whose result has not begun.
    unstarted: Vec<FeedId>,
    /// Queries whose clients' send queues are half full, with the time since when.
    paused: HashMap<FeedId, Nanos>,
    /// The same in the previous round.
    paused_before: HashMap<FeedId, Nanos>,
}

impl FeedSubscriptions {
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.feed_ids.is_empty() && self.queries.is_empty()
    }

    /// Registers a subscription.
    pub(crate) fn insert(&mut self, feed_id: FeedId, id: SubscriptionId) {
        if self.subscriptions.len() <= feed_id.index() {
            self.subscriptions.resize(feed_id.index() + 1, None);
        }
        self.subscriptions[feed_id.index()] = Some(id);
        self.feed_ids.insert(id, feed_id);
    }

    /// Removes a subscription; returns its feed id.
    pub(crate) fn remove(&mut self, id: SubscriptionId) -> Option<FeedId> {
        let feed_id = self.feed_ids.remove(&id)?;
        // The feed reuses the id, so the vacant entry is filled again.
        self.subscriptions[feed_id.index()] = None;
        Some(feed_id)
    }

    /// Removes the subscription with that feed id; whether there was one.
    pub(crate) fn remove_feed_id(&mut self, feed_id: FeedId) -> bool {
        self.subscription(feed_id).is_some_and(|id| self.remove(id).is_some())
    }

    #[inline]
    pub(crate) fn subscription(&self, feed_id: FeedId) -> Option<SubscriptionId> {
        self.subscriptions.get(feed_id.index()).copied().flatten()
    }

    /// Registers a query.
    pub(crate) fn insert_query(&mut self, feed_id: FeedId, query: PendingQuery) {
        self.queries.insert(feed_id, query);
        self.unstarted.push(feed_id);
    }

    /// Removes a query that its client ended.
    pub(crate) fn remove_query(&mut self, feed_id: FeedId) {
        if self.queries.remove(&feed_id).is_some() {
            self.unstarted.retain(|other| *other != feed_id);
        }
    }

    /// Takes the queries whose result has not begun.
    pub(crate) fn take_unstarted(&mut self) -> Vec<FeedId> {
        std::mem::take(&mut self.unstarted)
    }

    /// Starts a round of [`is_paused`](Self::is_paused): queries that are not paused in this round
    /// start anew.
    pub(crate) fn begin_round(&mut self) {
        self.paused_before = std::mem::take(&mut self.paused);
    }

    /// Whether a query or subscription waits for its client to read more. Disconnects the client if
    /// it has read too little for longer than `stall_max`: old versions of records are kept for it.
    pub(crate) fn is_paused(
        &mut self,
        feed_id: FeedId,
        now: Nanos,
        stall_max: Nanos,
        sender: &mut MessageSender<'_>,
    ) -> bool {
        let client = self.client(feed_id, sender);
        // Half full rather than full: the other half is for messages published meanwhile.
        let client = client.filter(|client| sender.clients.is_queue_half_full(*client));
        let Some(client) = client else { return false };
        let since = self.paused_before.get(&feed_id).copied().unwrap_or(now);
        if now.saturating_sub(since) > stall_max {
            sender.clients.drop_slow_consumer(client, SlowConsumerReason::QueryStalled);
        }
        // Keeps the first time, so that pauses of many rounds add up.
        self.paused.insert(feed_id, since);
        true
    }

    fn client(&self, feed_id: FeedId, sender: &MessageSender<'_>) -> Option<ClientId> {
        let of_query = self.queries.get(&feed_id).map(|query| query.client);
        let id = || self.subscription(feed_id);
        of_query.or_else(|| sender.subscriptions.route(id()?).map(|route| route.client))
    }
}
