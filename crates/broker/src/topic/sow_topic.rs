//! A topic whose last messages are kept by key: it can be asked for them.

use crate::Nanos;
use crate::client::ClientId;
use crate::command::delete::Removal;
use crate::command::error::CommandError;
use crate::delivery::message::{OutboundMessage, Payload, Post};
use crate::delivery::subscriptions::FieldSelection;
use crate::engine::Now;
use crate::queue::slow_consumers::SlowConsumerReason;
use crate::topic::catalog::Catalog;
use crate::topic::feed_subscriptions::{FeedSubscriptions, QueryProgress};
use crate::topic::record_store::RecordStore;
use lanecast_base::budget::Reservation;
use lanecast_filter::Filter;
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{
    Change, Event, OutOfFocusReason, Publication, Query, QueryStats, Record, SubscriptionOptions,
    SubscriptionSet, Topic,
};
use lanecast_wire::command::{Ack, Acks, Command, Field, HeaderWriter};
use std::collections::VecDeque;
use std::sync::Arc;

mod removing;

pub(crate) use removing::DeleteTarget;

/// Records of one query that are answered before others get their turn.
const STEP: usize = 64;
/// Events that were held back and are told before others get their turn.
const FLUSH_STEP: usize = 1_024;

/// A query, until it is answered.
#[derive(Debug)]
pub(crate) struct PendingQuery {
    pub(crate) client: ClientId,
    pub(crate) query_id: Box<str>,
    pub(crate) command_id: Option<Box<str>>,
    /// Those that follow the answer.
    pub(crate) acks: Acks,
    /// Records of a message at most.
    pub(crate) batch: usize,
    pub(crate) taste: FieldSelection,
    /// Its client sees some messages only: how many others there are is not for it.
    pub(crate) is_confined: bool,
    /// By these its client's queries are counted, and what their patterns take.
    pub(crate) _counted: (Arc<()>, Reservation),
}

/// The records, who follows them, and who has asked for them.
#[derive(Debug)]
pub(crate) struct SowTopic {
    pub(crate) name: Box<str>,
    holding: RecordStore,
    /// Whether views look at it.
    pub(crate) is_viewed: bool,
    /// Nothing expires before.
    expire_again_ns: u64,
    followers: SowSubscribers,
    /// Deletions that are being done, the first of them now.
    removals: VecDeque<Removal>,
    /// Those that are done.
    removed: Vec<(Removal, Result<(), CommandError>)>,
}

/// Who has asked for records, and who follows them.
#[derive(Debug)]
struct SowSubscribers {
    format: Format,
    feed: SubscriptionSet,
    ties: FeedSubscriptions,
}

impl SowTopic {
    pub(crate) fn new(topic: Topic) -> Self {
        let (name, format) = (topic.definition().name.clone(), topic.definition().format);
        let followers = SowSubscribers {
            format,
            feed: SubscriptionSet::new(),
            ties: FeedSubscriptions::default(),
        };
        let (removals, removed) = (VecDeque::new(), Vec::new());
        let topic = Box::new(topic);
        let holding = match topic.definition().durable {
            true => RecordStore::Durable(topic),
            false => RecordStore::Own(topic),
        };
        Self { name, holding, is_viewed: false, expire_again_ns: 0, followers, removals, removed }
    }

    /// What the view of that number shows.
    pub(crate) fn of_view(topic: &Topic, number: usize) -> Self {
        let (name, format) = (topic.definition().name.clone(), topic.definition().format);
        let followers = SowSubscribers {
            format,
            feed: SubscriptionSet::new(),
            ties: FeedSubscriptions::default(),
        };
        let (removals, removed) = (VecDeque::new(), Vec::new());
        let holding = RecordStore::View(number);
        Self { name, holding, is_viewed: false, expire_again_ns: 0, followers, removals, removed }
    }

    pub(crate) fn kind(&self) -> MessageType {
        self.followers.format.message_type()
    }

    /// The records, if they are not those of a view.
    pub(crate) fn own_topic(&self) -> Option<&Topic> {
        self.holding.own()
    }

    /// The same, to ask for fields.
    pub(crate) fn own_topic_mut(&mut self) -> Option<&mut Topic> {
        self.holding.own_mut()
    }

    pub(crate) fn is_durable(&self) -> bool {
        matches!(self.holding, RecordStore::Durable(_))
    }

    /// Publishes a message, or merges it into its record; tells those who follow.
    pub(crate) fn publish(
        &mut self,
        publication: &Publication<'_>,
        merges: bool,
        now_ns: u64,
        world: &mut Catalog,
        post: &mut Post<'_>,
    ) -> Result<(), CommandError> {
        if !self.removals.is_empty() {
            self.remove_before(publication, now_ns, world, post)?;
        }
        let change = self.holding.publish(publication, merges, now_ns, world.disk.as_mut())?;
        if let Some(removal) = self.removals.front_mut() {
            removal.note(&change);
        }
        if self.is_viewed {
            world.touch(&self.name, &change);
        }
        self.followers.hear(&change, post);
        Ok(())
    }

    /// Tells those who follow of a change.
    pub(crate) fn hear(&mut self, change: &Change<'_>, post: &mut Post<'_>) {
        self.followers.hear(change, post);
    }

    pub(crate) fn subscribe(
        &mut self,
        number: u32,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
        world: &mut Catalog,
    ) -> Result<(), CommandError> {
        self.begin_to_follow(world);
        let topic = self.holding.topic_mut(&mut world.cascade);
        let id = self.followers.feed.subscribe(topic, filter, options)?;
        self.followers.ties.name(id, number);
        Ok(())
    }

    /// Brings a view up to date before somebody looks at it.
    fn begin_to_follow(&self, world: &mut Catalog) {
        if let RecordStore::View(view) = self.holding {
            world.follow(view, true);
        }
    }

    /// Spares a view that nobody looks at any more the work of being up to date.
    fn end_following(&self, world: &mut Catalog) {
        if let RecordStore::View(view) = self.holding
            && self.followers.feed.is_empty()
        {
            world.follow(view, false);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_unfollowed(&self) -> bool {
        self.followers.feed.is_empty() && self.followers.ties.is_empty()
    }

    /// Ends what goes by the server's number.
    pub(crate) fn unsubscribe(&mut self, number: u32, world: &mut Catalog) {
        let SowSubscribers { feed, ties, .. } = &mut self.followers;
        let Some(id) = ties.unname(number) else { return };
        ties.drop_inquiry(id);
        feed.unsubscribe(self.holding.topic_mut(&mut world.cascade), id);
        self.end_following(world);
    }

    /// Ends a client's queries that are not answered yet: all, or those with a subscription that
    /// has ended.
    pub(crate) fn forget(
        &mut self,
        client: ClientId,
        has_ended: impl Fn(Option<u32>) -> bool,
        world: &mut Catalog,
    ) {
        let SowSubscribers { feed, ties, .. } = &mut self.followers;
        let inquiries = ties.inquiries.iter();
        let number = |id: &u32| ties.subscriptions.get(*id as usize).copied().flatten();
        let gone = inquiries.filter(|(id, one)| one.client == client && has_ended(number(id)));
        let gone: Vec<u32> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            ties.drop_inquiry(id);
            // One with a subscription ends with that.
            if ties.subscriptions.get(id as usize).copied().flatten().is_none() {
                feed.unsubscribe(self.holding.topic_mut(&mut world.cascade), id);
            }
        }
        self.end_following(world);
    }

    /// Begins to answer a query; it is also the beginning of the subscription of that number, if
    /// one is given.
    pub(crate) fn ask(
        &mut self,
        inquiry: PendingQuery,
        query: &Query,
        follow: Option<(u32, SubscriptionOptions)>,
        now_ns: u64,
        world: &mut Catalog,
    ) -> Result<(), CommandError> {
        self.begin_to_follow(world);
        // That the answer begins is told when it does: the command is acknowledged before.
        let mut quiet = |_: &[u32], _: Event<'_>| {};
        let topic = self.holding.topic_mut(&mut world.cascade);
        let SowSubscribers { feed, ties, .. } = &mut self.followers;
        let id = match follow {
            Some((number, options)) => {
                let id = feed.query_and_subscribe(topic, query, options, now_ns, &mut quiet)?;
                ties.name(id, number);
                id
            }
            None => feed.query(topic, query, inquiry.batch, now_ns, &mut quiet)?,
        };
        ties.inquiries.insert(id, inquiry);
        ties.fresh.push(id);
        Ok(())
    }

    /// Goes on answering queries, and telling what has waited for an answer's end: for those who
    /// have not enough to read.
    pub(crate) fn advance(
        &mut self,
        at: Now,
        still_max: Nanos,
        world: &mut Catalog,
        post: &mut Post<'_>,
    ) -> QueryProgress {
        let SowSubscribers { format, feed, ties } = &mut self.followers;
        for id in std::mem::take(&mut ties.fresh) {
            let Some(inquiry) = ties.inquiries.get(&id) else { continue };
            post.write(inquiry.client, |out| {
                let header = HeaderWriter::command(out, Command::GroupBegin);
                header.text(Field::QueryId, &inquiry.query_id).end();
            });
        }
        let topic = self.holding.topic_mut(&mut world.cascade);
        ties.begin_round();
        let mut is_going = false;
        for id in feed.catching_up().to_vec() {
            // Asked before each: several queries of one client fill one outbox.
            if ties.is_paused(id, at.now, still_max, post) {
                continue;
            }
            let mut sink = SowEventWriter { topic: &self.name, format: *format, ties, post };
            let mut write = |ids: &[u32], event: Event<'_>| sink.write(ids, event);
            feed.advance_one(topic, id, at.unix_ns, STEP, &mut write);
            is_going |= feed.catching_up().contains(&id);
        }
        let is_done = feed.catching_up().is_empty();
        self.end_following(world);
        match (is_going, is_done) {
            (true, _) => QueryProgress::Going,
            (false, true) => QueryProgress::CommandResult,
            (false, false) => QueryProgress::Waiting,
        }
    }

    /// Tells those who do not want to be told everything what is due by now, some at a time.
    pub(crate) fn flush(&mut self, now_ns: u64, post: &mut Post<'_>) {
        let SowSubscribers { format, feed, ties } = &mut self.followers;
        let mut sink = SowEventWriter { topic: &self.name, format: *format, ties, post };
        let mut write = |ids: &[u32], event: Event<'_>| sink.write(ids, event);
        feed.flush_up_to(now_ns, FLUSH_STEP, &mut write);
    }

    /// When something expires or is to be told, in nanoseconds since 1970.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        let expiry = self.holding.own().filter(|_| self.removals.is_empty());
        let expiry = expiry.and_then(Topic::next_expiry_ns);
        let expiry = expiry.map(|due| due.max(self.expire_again_ns));
        [expiry, self.followers.feed.next_flush_ns()].into_iter().flatten().min()
    }
}

impl SowSubscribers {
    fn hear(&mut self, change: &Change<'_>, post: &mut Post<'_>) {
        let Self { format, feed, ties } = self;
        let topic = change.environment.topic;
        let mut sink = SowEventWriter { topic, format: *format, ties, post };
        feed.on_change(change, &mut |ids: &[u32], event: Event<'_>| sink.write(ids, event));
    }
}

/// Writes events of one topic as frames.
struct SowEventWriter<'a, 'b> {
    topic: &'a str,
    format: Format,
    ties: &'a mut FeedSubscriptions,
    post: &'a mut Post<'b>,
}

impl SowEventWriter<'_, '_> {
    fn write(&mut self, ids: &[u32], event: Event<'_>) {
        match event {
            // Told when it is advanced.
            Event::Begin => {}
            Event::Records(records) => ids.iter().for_each(|id| self.records(*id, records)),
            Event::End(answer) => ids.iter().for_each(|id| self.end(*id, answer)),
            Event::Update { record, .. } => {
                self.fan_out(ids, Command::Publish, None, Payload::Record(record));
            }
            Event::Delta { record, base, changes, bytes } => {
                let subject = Payload::Delta { record, base, changes, bytes };
                self.fan_out(ids, Command::Publish, None, subject);
            }
            Event::OutOfFocus { record, reason, .. } => {
                let reason = match reason {
                    OutOfFocusReason::Match => "match",
                    OutOfFocusReason::Deleted => "deleted",
                    OutOfFocusReason::Expired => "expired",
                };
                self.fan_out(ids, Command::Oof, Some(reason), Payload::Record(record));
            }
            Event::SortMemoryExceeded(limit) => {
                ids.iter().for_each(|id| self.exhausted(*id, limit))
            }
            Event::Overrun => ids.iter().for_each(|id| self.overrun(*id)),
        }
    }

    fn fan_out(
        &mut self,
        ids: &[u32],
        command: Command,
        reason: Option<&str>,
        subject: Payload<'_>,
    ) {
        let known = &self.ties.subscriptions;
        let numbers = ids.iter().filter_map(|id| known.get(*id as usize).copied().flatten());
        let mut numbers: Vec<u32> = numbers.collect();
        let letter =
            OutboundMessage { command, topic: self.topic, format: self.format, reason, subject };
        self.post.send(&letter, &mut numbers);
    }

    fn records(&mut self, id: u32, records: &[Record]) {
        let Some(inquiry) = self.ties.inquiries.get(&id) else { return };
        self.post.write(inquiry.client, |out| {
            let header = HeaderWriter::command(out, Command::Sow).text(Field::Topic, self.topic);
            let header = header.text(Field::QueryId, &inquiry.query_id);
            header.number(Field::BatchSize, records.len() as u64).end();
            let mut parts = Vec::new();
            for record in records {
                let body = inquiry.taste.of(self.format, record.bytes(), &mut parts);
                let header = HeaderWriter::record(out).number(Field::SowKey, record.key().0);
                header.number(Field::Length, body.len() as u64).end();
                out.extend_from_slice(body);
            }
        });
    }

    fn end(&mut self, id: u32, answer: QueryStats) {
        let Some(inquiry) = self.ties.inquiries.remove(&id) else { return };
        self.post.write(inquiry.client, |out| {
            let header = HeaderWriter::command(out, Command::GroupEnd);
            header.text(Field::QueryId, &inquiry.query_id).end();
        });
        for ack in [Ack::Completed, Ack::Stats] {
            if !inquiry.acks.has(ack) {
                continue;
            }
            self.post.write(inquiry.client, |out| {
                let header = HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(ack));
                let header = header.text(Field::Status, "success");
                let header = header.text_if(Field::CommandId, inquiry.command_id.as_deref());
                let header = header.text(Field::QueryId, &inquiry.query_id);
                if ack == Ack::Completed {
                    return header.end();
                }
                let header = header.number(Field::Matches, answer.matches as u64);
                let records = if inquiry.is_confined { answer.matches } else { answer.records };
                let header = header.number(Field::TopicMatches, records as u64);
                header.number(Field::RecordsReturned, answer.returned as u64).end();
            });
        }
    }

    /// The answer cannot be sorted.
    fn exhausted(&mut self, id: u32, limit: usize) {
        let number = self.ties.subscriptions.get(id as usize).copied().flatten();
        number.and_then(|number| self.ties.unname(number));
        let Some(inquiry) = self.ties.inquiries.remove(&id) else { return };
        let reason = CommandError::Sorting(limit).to_string();
        self.post.write(inquiry.client, |out| {
            let header =
                HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(Ack::Completed));
            let header = header.text(Field::Status, "failure");
            let header = header.text_if(Field::CommandId, inquiry.command_id.as_deref());
            header.text(Field::QueryId, &inquiry.query_id).text(Field::Reason, &reason).end();
        });
        if number.is_some() {
            // What it would be told from now on has no beginning.
            self.post.mail.give_up(inquiry.client, SlowConsumerReason::Sorting(limit));
        }
    }

    /// More was published during the query than may wait for its end.
    fn overrun(&mut self, id: u32) {
        let number = self.ties.subscriptions.get(id as usize).copied().flatten();
        number.and_then(|number| self.ties.unname(number));
        if let Some(inquiry) = self.ties.inquiries.remove(&id) {
            self.post.mail.give_up(inquiry.client, SlowConsumerReason::Answer);
        }
    }
}
