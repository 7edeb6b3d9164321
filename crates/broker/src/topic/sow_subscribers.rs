//! Subscriptions and queries of one SOW topic: their ids in the topic's feed, and the frames that
//! its events become. The topic owns them, and lends its records to each call.

use crate::command::acknowledgement::ReplyTo;
use crate::command::error::CommandError;
use crate::delivery::fanout::{MessageSender, OutboundMessage, Payload};
use crate::delivery::field_selection::FieldSelection;
use crate::delivery::subscriptions::SubscriptionIds;
use crate::ids::{ClientId, FeedId, SubscriptionId};
use crate::queue::slow_consumer::SlowConsumerReason;
use crate::time::{Nanos, Now};
use foldhash::HashMap;
use lanecast_base::budget::Reservation;
use lanecast_filter::Filter;
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{
    Change, Event, OutOfFocusReason, Query, QueryStats, Record, SubscriptionOptions,
    SubscriptionSet, Topic,
};
use lanecast_wire::command::{Ack, Acks, Command, Field, HeaderWriter};
use std::sync::Arc;

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

    #[cfg(test)]
    pub(crate) fn is_catching_up(&self) -> bool {
        !self.feed.catching_up().is_empty()
    }

    /// Number of updates that wait for subscriptions whose queries are answered.
    #[cfg(test)]
    pub(crate) fn backlog(&self) -> usize {
        self.feed.catching_up().iter().map(|id| self.feed.backlog(*id)).sum()
    }

    /// Delivers a change to matching subscriptions.
    pub(crate) fn on_change(&mut self, change: &Change<'_>, sender: &mut MessageSender<'_>) {
        let Self { format, feed, ids } = self;
        let topic = change.environment.topic;
        let now = sender.now;
        let mut writer = SowEventWriter { topic, format: *format, ids, sender };
        feed.on_change(change, now, &mut |ids: &[u32], event: Event<'_>| writer.write(ids, event));
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

    /// Removes the subscription `old`, whose place `new` takes. What `old` still owes its client
    /// goes over to `new`: the rest of an answer, and updates that wait. If `new` begins with a
    /// query, its answer covers them, but for records that have left. Returns whether both are
    /// here.
    pub(crate) fn replace(
        &mut self,
        (name, topic): (&str, &mut Topic),
        (old, new): (SubscriptionId, SubscriptionId),
        successor: Successor,
        sender: &mut MessageSender<'_>,
    ) -> bool {
        let Self { format, feed, ids } = self;
        let old_id = ids.feed_ids.get(&old).copied();
        let Some((old_id, new_id)) = old_id.zip(ids.feed_ids.get(&new).copied()) else {
            return false;
        };
        match successor {
            Successor::Subscription => {
                feed.take_over(topic, new_id.0, old_id.0, sender.now);
                ids.move_query(old_id, new_id);
            }
            Successor::Query { out_of_focus: true } => {
                ids.remove_query(old_id);
                let mut writer = SowEventWriter { topic: name, format: *format, ids, sender };
                let mut write = |ids: &[u32], event: Event<'_>| writer.write(ids, event);
                feed.end_before_query(topic, old_id.0, &mut write);
            }
            Successor::Query { out_of_focus: false } => {
                ids.remove_query(old_id);
                feed.unsubscribe(topic, old_id.0);
            }
        }
        ids.remove(old);
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
            // A slice per query and turn: a large result neither fills a queue nor holds up others.
            // Twice as many updates as came since the last turn, paused or not: a subscription
            // beside a fast publisher catches up, at a cost in proportion to what is published.
            let mut left = 2 * feed.take_arrived(id);
            loop {
                // Checked before each step: several queries of one client fill the same send queue.
                if ids.is_paused(FeedId(id), now.monotonic_ns, stall_max, sender) {
                    break;
                }
                let mut writer = SowEventWriter { topic: name, format: *format, ids, sender };
                let mut write = |ids: &[u32], event: Event<'_>| writer.write(ids, event);
                let before = feed.backlog(id);
                feed.advance_one(topic, id, now.monotonic_ns, QUERY_STEP, &mut write);
                let backlog = feed.backlog(id);
                left = left.saturating_sub(before.saturating_sub(backlog));
                if left == 0 || backlog == 0 {
                    is_running |= feed.catching_up().contains(&id);
                    break;
                }
            }
        }
        match (is_running, feed.catching_up().is_empty()) {
            (true, _) => QueryProgress::Running,
            (false, true) => QueryProgress::Done,
            (false, false) => QueryProgress::Waiting,
        }
    }

    /// Delivers conflated updates that are due.
    pub(crate) fn flush(&mut self, name: &str, sender: &mut MessageSender<'_>) {
        let Self { format, feed, ids } = self;
        let now = sender.now;
        let mut writer = SowEventWriter { topic: name, format: *format, ids, sender };
        let mut write = |ids: &[u32], event: Event<'_>| writer.write(ids, event);
        feed.flush_up_to(now, FLUSH_STEP, &mut write);
    }

    /// When conflated updates are due.
    pub(crate) fn next_flush(&self) -> Option<Nanos> {
        self.feed.next_flush_ns()
    }
}

/// Beginning of a subscription that takes another's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    /// With the next change.
    Subscription,
    /// With the answer of a query.
    Query { out_of_focus: bool },
}

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
struct FeedSubscriptions {
    /// The server's subscriptions, by feed id.
    subscriptions: Vec<Option<SubscriptionId>>,
    /// The reverse mapping.
    feed_ids: HashMap<SubscriptionId, FeedId>,
    queries: HashMap<FeedId, PendingQuery>,
    /// Queries whose result has not begun.
    unstarted: Vec<FeedId>,
    /// Queries whose clients' send queues are half full, with the time since when.
    paused: HashMap<FeedId, Nanos>,
    /// The same in the previous round.
    paused_before: HashMap<FeedId, Nanos>,
}

impl FeedSubscriptions {
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.feed_ids.is_empty() && self.queries.is_empty()
    }

    /// Registers a subscription.
    fn insert(&mut self, feed_id: FeedId, id: SubscriptionId) {
        if self.subscriptions.len() <= feed_id.index() {
            self.subscriptions.resize(feed_id.index() + 1, None);
        }
        self.subscriptions[feed_id.index()] = Some(id);
        self.feed_ids.insert(id, feed_id);
    }

    /// Removes a subscription; returns its feed id.
    fn remove(&mut self, id: SubscriptionId) -> Option<FeedId> {
        let feed_id = self.feed_ids.remove(&id)?;
        // The feed reuses the id, so the vacant entry is filled again.
        self.subscriptions[feed_id.index()] = None;
        Some(feed_id)
    }

    /// Removes the subscription with that feed id; whether there was one.
    fn remove_feed_id(&mut self, feed_id: FeedId) -> bool {
        self.subscription(feed_id).is_some_and(|id| self.remove(id).is_some())
    }

    #[inline]
    fn subscription(&self, feed_id: FeedId) -> Option<SubscriptionId> {
        self.subscriptions.get(feed_id.index()).copied().flatten()
    }

    /// Registers a query.
    fn insert_query(&mut self, feed_id: FeedId, query: PendingQuery) {
        self.queries.insert(feed_id, query);
        self.unstarted.push(feed_id);
    }

    /// Removes a query that its client ended.
    fn remove_query(&mut self, feed_id: FeedId) {
        if self.queries.remove(&feed_id).is_some() {
            self.unstarted.retain(|other| *other != feed_id);
        }
    }

    /// A query goes on under the id of another subscription.
    fn move_query(&mut self, from: FeedId, to: FeedId) {
        if let Some(query) = self.queries.remove(&from) {
            self.queries.insert(to, query);
            self.unstarted.iter_mut().filter(|id| **id == from).for_each(|id| *id = to);
        }
        if let Some(since) = self.paused.remove(&from) {
            self.paused.insert(to, since);
        }
    }

    /// Takes the queries whose result has not begun.
    fn take_unstarted(&mut self) -> Vec<FeedId> {
        std::mem::take(&mut self.unstarted)
    }

    /// Starts a round of [`is_paused`](Self::is_paused): queries that are not paused in this round
    /// start anew.
    fn begin_round(&mut self) {
        self.paused_before = std::mem::take(&mut self.paused);
    }

    /// Whether a query or subscription waits for its client to read more. Disconnects the client if
    /// it has read too little for longer than `stall_max`: old versions of records are kept for it.
    fn is_paused(
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

/// Borrows what is needed to write a topic's events.
#[derive(Debug)]
struct SowEventWriter<'a, 'b> {
    topic: &'a str,
    format: Format,
    ids: &'a mut FeedSubscriptions,
    sender: &'a mut MessageSender<'b>,
}

impl SowEventWriter<'_, '_> {
    /// Writes an event for the subscriptions and queries with these feed ids.
    fn write(&mut self, feed_ids: &[u32], event: Event<'_>) {
        let each = feed_ids.iter().copied().map(FeedId);
        match event {
            // Written when the query advances first: after the command's acknowledgement.
            Event::Begin => {}
            Event::Records(records) => each.for_each(|id| self.write_records(id, records)),
            Event::End(answer) => each.for_each(|id| self.write_end(id, answer)),
            Event::Update { record, .. } => {
                self.send(feed_ids, Command::Publish, None, Payload::Record(record));
            }
            Event::Delta { record, base, changes, bytes } => {
                let payload = Payload::Delta { record, base, changes, bytes };
                self.send(feed_ids, Command::Publish, None, payload);
            }
            Event::OutOfFocus { record, reason, .. } => {
                let reason = match reason {
                    OutOfFocusReason::Match => "match",
                    OutOfFocusReason::Deleted => "deleted",
                    OutOfFocusReason::Expired => "expired",
                };
                self.send(feed_ids, Command::Oof, Some(reason), Payload::Record(record));
            }
            Event::SortMemoryExceeded(limit) => each.for_each(|id| self.fail_sorting(id, limit)),
            Event::Overrun => each.for_each(|id| self.fail_overrun(id)),
        }
    }

    fn send(
        &mut self,
        feed_ids: &[u32],
        command: Command,
        reason: Option<&str>,
        payload: Payload<'_>,
    ) {
        let ids = &self.ids;
        let subscriptions = feed_ids.iter().filter_map(|id| ids.subscription(FeedId(*id)));
        // The feed knows subscribers by its own ids.
        let mut subscriptions: SubscriptionIds = subscriptions.collect();
        let format = self.format;
        let message = OutboundMessage { command, topic: self.topic, format, reason, payload };
        self.sender.send(&message, &mut subscriptions);
    }

    /// Writes a batch of a query's result.
    fn write_records(&mut self, id: FeedId, records: &[Record]) {
        let Some(query) = self.ids.queries.get(&id) else { return };
        self.sender.write(query.client, |out| {
            let header = HeaderWriter::command(out, Command::Sow).text(Field::Topic, self.topic);
            let header = header.text(Field::QueryId, query.reply_to.effective_query_id());
            header.number(Field::BatchSize, records.len() as u64).end();
            // AMPS packs a batch into one frame: each record has its own header and length.
            let mut buffer = Vec::new();
            for record in records {
                let payload = query.fields.select(self.format, record.bytes(), &mut buffer);
                let header = HeaderWriter::record(out).number(Field::SowKey, record.key().0);
                header.number(Field::Length, payload.len() as u64).end();
                out.extend_from_slice(payload);
            }
        });
    }

    /// Writes the end of a query's result, and its last acknowledgements.
    fn write_end(&mut self, id: FeedId, answer: QueryStats) {
        let Some(query) = self.ids.queries.remove(&id) else { return };
        let reply_to = &query.reply_to;
        self.sender.write(query.client, |out| {
            let header = HeaderWriter::command(out, Command::GroupEnd);
            header.text(Field::QueryId, reply_to.effective_query_id()).end();
        });
        // AMPS sends both after group_end, in this order.
        for ack in [Ack::Completed, Ack::Stats] {
            if !reply_to.acks.has(ack) {
                continue;
            }
            self.sender.write(query.client, |out| {
                let header = HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(ack));
                let header = header.text(Field::Status, "success");
                let header = header.text_if(Field::CommandId, reply_to.command_id.as_deref());
                let header = header.text(Field::QueryId, reply_to.effective_query_id());
                if ack == Ack::Completed {
                    return header.end();
                }
                let header = header.number(Field::Matches, answer.matches as u64);
                // The true total would reveal records that the filter of the user hides.
                let records = if query.is_restricted { answer.matches } else { answer.records };
                let header = header.number(Field::TopicMatches, records as u64);
                header.number(Field::RecordsReturned, answer.returned as u64).end();
            });
        }
    }

    /// Fails a query whose result takes too much memory to sort, and ends the subscription that
    /// would follow it: updates without the records they begin with would leave the client with a
    /// wrong state.
    fn fail_sorting(&mut self, id: FeedId, limit: usize) {
        let subscription = self.ids.subscription(id);
        self.ids.remove_feed_id(id);
        let Some(query) = self.ids.queries.remove(&id) else { return };
        let reason = CommandError::Sorting(limit).to_string();
        let reply_to = &query.reply_to;
        self.sender.write(query.client, |out| {
            let header =
                HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(Ack::Completed));
            let header = header.text(Field::Status, "failure");
            let header = header.text_if(Field::CommandId, reply_to.command_id.as_deref());
            let header = header.text(Field::QueryId, reply_to.effective_query_id());
            header.text(Field::Reason, &reason).end();
        });
        if let Some(subscription) = subscription {
            self.sender.clients.fail_subscription(query.client, subscription);
        }
    }

    /// Fails a query or a subscription behind one: more was published than may wait for it.
    fn fail_overrun(&mut self, id: FeedId) {
        // Before the ids are removed, since they lead to the client.
        let client = self.ids.client(id, self.sender);
        self.ids.remove_feed_id(id);
        self.ids.remove_query(id);
        // A subscription with a gap is worse than none: the client must start anew.
        if let Some(client) = client {
            let reason = SlowConsumerReason::QueryOverrun;
            self.sender.clients.drop_slow_consumer(client, reason);
        }
    }
}
