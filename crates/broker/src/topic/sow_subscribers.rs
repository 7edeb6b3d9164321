//! Subscriptions and queries of one SOW topic. The topic owns them, and lends its records to each
//! call.

use crate::command::error::CommandError;
use crate::delivery::fanout::MessageSender;
use crate::ids::{ClientId, FeedId, SubscriptionId};
use crate::time::{Nanos, Now};
use crate::topic::feed_subscriptions::{FeedSubscriptions, PendingQuery, QueryProgress};
use crate::topic::sow_events::SowEventWriter;
use lanecast_filter::Filter;
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{Change, Event, Query, SubscriptionOptions, SubscriptionSet, Topic};
use lanecast_wire::command::{Command, Field, HeaderWriter};

/// Records of one query before other clients get their turn.
const QUERY_STEP: usize = 64;
/// Conflated updates before other clients get their turn.
const FLUSH_STEP: usize = 1_024;

/// The subscribers of a SOW topic.
#[derive(Debug)]
pub(crate) struct SowSubscribers {
    format: Format,
    feed: SubscriptionSet,
    ids: FeedSubscriptions,
}

impl SowSubscribers {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, feed: SubscriptionSet::new(), ids: FeedSubscriptions::default() }
    }

    pub(crate) fn kind(&self) -> MessageType {
        self.format.message_type()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.feed.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn has_ids(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Delivers a change to matching subscriptions.
    pub(crate) fn on_change(&mut self, change: &Change<'_>, sender: &mut MessageSender<'_>) {
        let Self { format, feed, ids } = self;
        let topic = change.environment.topic;
        let mut writer = SowEventWriter { topic, format: *format, ids, sender };
        feed.on_change(change, &mut |ids: &[u32], event: Event<'_>| writer.write(ids, event));
    }

    pub(crate) fn subscribe(
        &mut self,
        topic: &mut Topic,
        id: SubscriptionId,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
    ) -> Result<(), CommandError> {
        let feed_id = self.feed.subscribe(topic, filter, options)?;
        self.ids.insert(FeedId(feed_id), id);
        Ok(())
    }

    /// Removes a subscription; whether there was one.
    pub(crate) fn unsubscribe(&mut self, topic: &mut Topic, id: SubscriptionId) -> bool {
        let Some(feed_id) = self.ids.remove(id) else { return false };
        self.ids.remove_query(feed_id);
        // Also ends a query of this subscription that is still running.
        self.feed.unsubscribe(topic, feed_id.0);
        true
    }

    /// Removes a client's queries for which `has_ended`, given the query's subscription if any.
    pub(crate) fn remove_queries(
        &mut self,
        topic: &mut Topic,
        client: ClientId,
        has_ended: impl Fn(Option<SubscriptionId>) -> bool,
    ) {
        let ids = &self.ids;
        let own = ids.queries.iter().filter(|(_, query)| query.client == client);
        let ended = own.filter(|(id, _)| has_ended(ids.subscription(**id)));
        let ended: Vec<FeedId> = ended.map(|(id, _)| *id).collect();
        for id in ended {
            self.ids.remove_query(id);
            // The feed entry of a query with a subscription is removed with that.
            if self.ids.subscription(id).is_none() {
                self.feed.unsubscribe(topic, id.0);
            }
        }
    }

    /// Starts a query; with `follow` it continues as that subscription.
    pub(crate) fn query(
        &mut self,
        topic: &mut Topic,
        pending: PendingQuery,
        query: &Query,
        follow: Option<(SubscriptionId, SubscriptionOptions)>,
        now_ns: u64,
    ) -> Result<(), CommandError> {
        // The begin of the result is written on the first advance: the acknowledgement comes first.
        let mut ignore = |_: &[u32], _: Event<'_>| {};
        let feed_id = match follow {
            Some((id, options)) => {
                let feed_id =
                    self.feed.query_and_subscribe(topic, query, options, now_ns, &mut ignore)?;
                self.ids.insert(FeedId(feed_id), id);
                feed_id
            }
            None => self.feed.query(topic, query, pending.batch, now_ns, &mut ignore)?,
        };
        self.ids.insert_query(FeedId(feed_id), pending);
        Ok(())
    }

    /// Sends more of the queries' results to clients whose send queues have capacity.
    pub(crate) fn advance(
        &mut self,
        name: &str,
        topic: &mut Topic,
        now: Now,
        stall_max: Nanos,
        sender: &mut MessageSender<'_>,
    ) -> QueryProgress {
        let Self { format, feed, ids } = self;
        for id in ids.take_unstarted() {
            let Some(query) = ids.queries.get(&id) else { continue };
            sender.write(query.client, |out| {
                let header = HeaderWriter::command(out, Command::GroupBegin);
                header.text(Field::QueryId, query.reply_to.effective_query_id()).end();
            });
        }
        // Before the loop: each query is then seen once per round.
        ids.begin_round();
        let mut is_running = false;
        // Copied, since a step may take its query from the list.
        for id in feed.catching_up().to_vec() {
            // Checked before each step: several queries of one client fill the same send queue.
            if ids.is_paused(FeedId(id), now.monotonic_ns, stall_max, sender) {
                continue;
            }
            let mut writer = SowEventWriter { topic: name, format: *format, ids, sender };
            let mut write = |ids: &[u32], event: Event<'_>| writer.write(ids, event);
            // A slice per query and turn: a large result neither fills a queue nor holds up others.
            feed.advance_one(topic, id, now.unix_ns, QUERY_STEP, &mut write);
            is_running |= feed.catching_up().contains(&id);
        }
        match (is_running, feed.catching_up().is_empty()) {
            (true, _) => QueryProgress::Running,
            (false, true) => QueryProgress::Done,
            (false, false) => QueryProgress::Waiting,
        }
    }

    /// Delivers conflated updates that are due.
    pub(crate) fn flush(&mut self, name: &str, now_ns: u64, sender: &mut MessageSender<'_>) {
        let Self { format, feed, ids } = self;
        let mut writer = SowEventWriter { topic: name, format: *format, ids, sender };
        let mut write = |ids: &[u32], event: Event<'_>| writer.write(ids, event);
        feed.flush_up_to(now_ns, FLUSH_STEP, &mut write);
    }

    /// When conflated updates are due, in nanoseconds since 1970.
    pub(crate) fn next_flush_ns(&self) -> Option<u64> {
        self.feed.next_flush_ns()
    }
}
