//! A SOW topic: keeps the last message of each key, and delivers changes to its subscribers.
//! Queries and deletions of many records run in steps.

use crate::command::error::CommandError;
use crate::delivery::fanout::MessageSender;
use crate::ids::{ClientId, SubscriptionId};
use crate::time::{Nanos, Now};
use crate::topic::durable_store::DurableStore;
use crate::topic::removal::{Removal, RemovalRequest};
use crate::topic::sow_context::SowContext;
use crate::topic::sow_subscribers::{PendingQuery, QueryProgress, SowSubscribers, Successor};
use crate::topic::views::Views;
use lanecast_filter::Filter;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::{Change, Key, Publication, Query, SubscriptionOptions, Topic};
use std::collections::VecDeque;
use std::sync::Arc;

/// Records deleted, and examined for that, before other clients get their turn.
const DELETE_STEP: usize = 256;
const EXAMINE_STEP: usize = 4_096;
/// Pause before expiring again when the journal accepts nothing.
const EXPIRE_RETRY_NS: u64 = 100_000_000;

/// The records that a command deletes.
#[derive(Debug)]
pub(crate) enum DeleteTarget<'a> {
    Query(Query),
    /// The record with the key of a message, or with the given key.
    Message(&'a [u8], Option<&'a str>),
}

/// A topic with records.
#[derive(Debug)]
pub(crate) struct SowTopic {
    pub(crate) name: Box<str>,
    records: RecordStore,
    /// Whether views use it as a source.
    pub(crate) has_views: bool,
    /// Earliest time of the next expiry.
    expire_not_before: Nanos,
    subscribers: SowSubscribers,
    /// Deletions in progress; the first one runs.
    removals: VecDeque<Removal>,
    /// Completed deletions, not acknowledged yet.
    completed: Vec<(Removal, Result<(), CommandError>)>,
}

impl SowTopic {
    /// A topic with its own records.
    pub(crate) fn new(topic: Topic) -> Self {
        let definition = topic.definition();
        let (name, subscribers) = (definition.name.clone(), SowSubscribers::new(definition.format));
        let is_durable = definition.durable;
        let topic = Box::new(topic);
        let records =
            if is_durable { RecordStore::Durable(topic) } else { RecordStore::Memory(topic) };
        Self::with_records(name, records, subscribers)
    }

    /// The topic that shows a view.
    pub(crate) fn of_view(topic: &Topic, view: usize) -> Self {
        let definition = topic.definition();
        let (name, subscribers) = (definition.name.clone(), SowSubscribers::new(definition.format));
        Self::with_records(name, RecordStore::View(view), subscribers)
    }

    fn with_records(name: Box<str>, records: RecordStore, subscribers: SowSubscribers) -> Self {
        Self {
            name,
            records,
            has_views: false,
            expire_not_before: 0,
            subscribers,
            removals: VecDeque::new(),
            completed: Vec::new(),
        }
    }

    pub(crate) fn kind(&self) -> MessageType {
        self.subscribers.kind()
    }

    /// The records, unless a view owns them.
    pub(crate) fn owned_topic(&self) -> Option<&Topic> {
        self.records.owned()
    }

    pub(crate) fn owned_topic_mut(&mut self) -> Option<&mut Topic> {
        self.records.owned_mut()
    }

    pub(crate) fn is_durable(&self) -> bool {
        matches!(self.records, RecordStore::Durable(_))
    }

    /// Stores a message, or merges it into its record, and delivers the change.
    pub(crate) fn publish(
        &mut self,
        publication: &Publication<'_>,
        is_delta: bool,
        now_ns: u64,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) -> Result<(), CommandError> {
        if !self.removals.is_empty() {
            // Commands take effect in order: the deletion came first, so its record must go before
            // this message.
            self.delete_covered(publication, now_ns, context, sender)?;
        }
        let store = context.store.as_mut();
        let change = self.records.publish(publication, is_delta, now_ns, store)?;
        if let Some(removal) = self.removals.front_mut() {
            // The running deletion must not remove a record that is newer than its command.
            removal.on_change(&change);
        }
        if self.has_views {
            context.views.on_change(&self.name, &change);
        }
        self.subscribers.on_change(&change, sender);
        Ok(())
    }

    /// Delivers a change that a view made.
    pub(crate) fn on_view_change(&mut self, change: &Change<'_>, sender: &mut MessageSender<'_>) {
        self.subscribers.on_change(change, sender);
    }

    pub(crate) fn subscribe(
        &mut self,
        id: SubscriptionId,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
        context: &mut SowContext,
    ) -> Result<(), CommandError> {
        self.follow_view(context);
        let topic = self.records.topic_mut(&mut context.views);
        self.subscribers.subscribe(topic, id, filter, options)
    }

    /// Brings a view up to date for its first subscriber, and keeps it so.
    fn follow_view(&self, context: &mut SowContext) {
        if let RecordStore::View(view) = self.records {
            context.views.set_followed(view, true);
        }
    }

    /// Stops keeping a view up to date that has no subscribers.
    fn unfollow_view(&self, context: &mut SowContext) {
        if let RecordStore::View(view) = self.records
            && self.subscribers.is_empty()
        {
            context.views.set_followed(view, false);
        }
    }

    #[cfg(test)]
    pub(crate) fn has_subscribers(&self) -> bool {
        !self.subscribers.is_empty() || self.subscribers.has_ids()
    }

    #[cfg(test)]
    pub(crate) fn subscribers(&self) -> &SowSubscribers {
        &self.subscribers
    }

    pub(crate) fn unsubscribe(&mut self, id: SubscriptionId, context: &mut SowContext) {
        let topic = self.records.topic_mut(&mut context.views);
        if self.subscribers.unsubscribe(topic, id) {
            self.unfollow_view(context);
        }
    }

    /// Removes a subscription whose place another one takes; whether both are here.
    pub(crate) fn replace(
        &mut self,
        ids: (SubscriptionId, SubscriptionId),
        successor: Successor,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) -> bool {
        let topic = self.records.topic_mut(&mut context.views);
        self.subscribers.replace((&self.name, topic), ids, successor, sender)
    }

    /// Removes a client's queries for which `has_ended`, given the query's subscription if any.
    pub(crate) fn remove_queries(
        &mut self,
        client: ClientId,
        has_ended: impl Fn(Option<SubscriptionId>) -> bool,
        context: &mut SowContext,
    ) {
        let topic = self.records.topic_mut(&mut context.views);
        self.subscribers.remove_queries(topic, client, has_ended);
        self.unfollow_view(context);
    }

    /// Starts a query; with `follow` it continues as that subscription.
    pub(crate) fn query(
        &mut self,
        pending: PendingQuery,
        query: &Query,
        follow: Option<(SubscriptionId, SubscriptionOptions)>,
        now_ns: u64,
        context: &mut SowContext,
    ) -> Result<(), CommandError> {
        self.follow_view(context);
        let topic = self.records.topic_mut(&mut context.views);
        self.subscribers.query(topic, pending, query, follow, now_ns)
    }

    /// Sends more of the queries' results.
    pub(crate) fn advance_queries(
        &mut self,
        now: Now,
        stall_max: Nanos,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) -> QueryProgress {
        let topic = self.records.topic_mut(&mut context.views);
        let progress = self.subscribers.advance(&self.name, topic, now, stall_max, sender);
        self.unfollow_view(context);
        progress
    }

    /// When a record expires or a conflated update is due.
    pub(crate) fn next_due(&self, now: Now) -> Option<Nanos> {
        let expiry = self.records.owned().and_then(Topic::next_expiry_ns);
        let expiry = expiry.map(|due_unix_ns| {
            // Records expire by the wall clock, which may be set; everything else must not notice.
            let due = now.monotonic_ns.saturating_add(due_unix_ns.saturating_sub(now.unix_ns));
            due.max(self.expire_not_before)
        });
        [expiry, self.subscribers.next_flush()].into_iter().flatten().min()
    }

    /// Deletes expired records and delivers conflated updates, some of each.
    pub(crate) fn expire_and_flush(
        &mut self,
        now_ns: u64,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) {
        self.expire(now_ns, context, sender);
        self.subscribers.flush(&self.name, sender);
    }

    fn expire(&mut self, now_ns: u64, context: &mut SowContext, sender: &mut MessageSender<'_>) {
        for _ in 0..DELETE_STEP {
            // Expiry can wait, publishers cannot: it must not take the journal's last bytes.
            let result = match self.is_congested(context) {
                true => Err(()),
                false => self.expire_one(now_ns, context, sender).map_err(drop),
            };
            match result {
                Ok(true) => {}
                Ok(false) => return,
                // The journal accepts nothing: expired records stay until it does.
                Err(()) => {
                    self.expire_not_before = sender.now.saturating_add(EXPIRE_RETRY_NS);
                    return;
                }
            }
        }
    }

    /// Removes an expired record; whether there was one.
    fn expire_one(
        &mut self,
        now_ns: u64,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) -> Result<bool, CommandError> {
        // The running deletion began before this: it removes and counts the records that it covers.
        if !self.removals.is_empty()
            && let Some(key) = self.records.owned().and_then(|topic| topic.next_expired(now_ns))
            && self.delete_if_covered(key, now_ns, context, sender)?
        {
            return Ok(true);
        }
        let Some(change) = self.records.expire(now_ns, context.store.as_mut())? else {
            return Ok(false);
        };
        if let Some(removal) = self.removals.front_mut() {
            // A later record in the same row must not be removed.
            removal.on_change(&change);
        }
        if self.has_views {
            context.views.on_change(&self.name, &change);
        }
        self.subscribers.on_change(&change, sender);
        Ok(true)
    }

    /// Whether deletions wait for the journal to catch up.
    fn is_congested(&self, context: &SowContext) -> bool {
        self.is_durable() && context.store.as_ref().is_some_and(DurableStore::is_congested)
    }

    /// Deletes records; returns the completed deletion, or `None` if it continues in later turns.
    pub(crate) fn delete(
        &mut self,
        target: DeleteTarget<'_>,
        mut removal: Removal,
        now_ns: u64,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) -> Result<Option<Removal>, CommandError> {
        let Some(topic) = self.records.owned() else {
            return Err(CommandError::IsView);
        };
        removal.records = topic.len();
        match target {
            DeleteTarget::Query(query) => {
                removal.query = query;
                let is_first = self.removals.is_empty();
                self.removals.push_back(removal);
                // One deletion at a time: the one in front knows which records are its own.
                if !is_first {
                    return Ok(None);
                }
                self.delete_step(now_ns, context, sender);
                let completed = self.completed.pop();
                completed.map(|(removal, result)| result.map(|()| removal)).transpose()
            }
            DeleteTarget::Message(bytes, key) => {
                let client = Arc::clone(&removal.client_name);
                let publication = Publication { key, client: &client, ..Publication::of(bytes) };
                if !self.removals.is_empty() {
                    self.delete_covered(&publication, now_ns, context, sender)?;
                }
                if let Some(key) = self.records.key_of(&publication)? {
                    let is_deleted = self.delete_key(key, &client, now_ns, context, sender)?;
                    removal.deleted += usize::from(is_deleted);
                }
                Ok(Some(removal))
            }
        }
    }

    /// Continues the first deletion.
    pub(crate) fn delete_step(
        &mut self,
        now_ns: u64,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) {
        let Some(mut removal) = self.removals.pop_front() else { return };
        let mut budget = EXAMINE_STEP;
        for _ in 0..DELETE_STEP {
            if self.is_congested(context) {
                break;
            }
            let Some(topic) = self.records.owned() else { break };
            let key = match removal.next(topic, now_ns, &mut budget) {
                Ok(Some(key)) => key,
                Ok(None) => break,
                Err(error) => return self.completed.push((removal, Err(error))),
            };
            match self.delete_key(key, &removal.client_name, now_ns, context, sender) {
                Ok(is_deleted) => removal.deleted += usize::from(is_deleted),
                Err(error) => return self.completed.push((removal, Err(error))),
            }
        }
        match removal.is_complete() {
            // Acknowledged by the engine, which alone knows the clients.
            true => self.completed.push((removal, Ok(()))),
            false => self.removals.push_front(removal),
        }
    }

    /// Takes a completed deletion.
    pub(crate) fn take_completed(&mut self) -> Option<(Removal, Result<(), CommandError>)> {
        self.completed.pop()
    }

    /// The command of a deletion in progress that has this sequence number.
    pub(crate) fn removal_request(
        &mut self,
        sequence_key: &str,
        sequence: u64,
    ) -> Option<&mut RemovalRequest> {
        let mut requests = self.removals.iter_mut().map(|removal| &mut removal.request);
        requests.find(|request| {
            let is_same_key = request.sequence_key.as_deref() == Some(sequence_key);
            is_same_key && request.sequence == Some(sequence)
        })
    }

    pub(crate) fn is_deleting(&self) -> bool {
        !self.removals.is_empty()
    }

    /// Deletes the record that a message is about to change, if the running deletion covers it.
    #[cold]
    fn delete_covered(
        &mut self,
        publication: &Publication<'_>,
        now_ns: u64,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) -> Result<(), CommandError> {
        if let Some(key) = self.records.key_of(publication)? {
            self.delete_if_covered(key, now_ns, context, sender)?;
        }
        Ok(())
    }

    /// Deletes a record if the running deletion covers it; whether it does.
    fn delete_if_covered(
        &mut self,
        key: Key,
        now_ns: u64,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) -> Result<bool, CommandError> {
        let Some(removal) = self.removals.front_mut() else { return Ok(false) };
        let Some(topic) = self.records.owned() else { return Ok(false) };
        if !removal.claims(topic, key) {
            return Ok(false);
        }
        // Cloned, since the deletion itself borrows the topic.
        let client = Arc::clone(&removal.client_name);
        let is_deleted = self.delete_key(key, &client, now_ns, context, sender)?;
        if let Some(removal) = self.removals.front_mut() {
            removal.deleted += usize::from(is_deleted);
        }
        Ok(is_deleted)
    }

    /// Deletes a record; whether there was one.
    fn delete_key(
        &mut self,
        key: Key,
        client: &str,
        now_ns: u64,
        context: &mut SowContext,
        sender: &mut MessageSender<'_>,
    ) -> Result<bool, CommandError> {
        let change = self.records.delete(key, client, now_ns, context.store.as_mut())?;
        let Some(change) = change else { return Ok(false) };
        if let Some(removal) = self.removals.front_mut() {
            removal.on_change(&change);
        }
        if self.has_views {
            context.views.on_change(&self.name, &change);
        }
        self.subscribers.on_change(&change, sender);
        Ok(true)
    }
}

/// The records of a SOW topic.
#[derive(Debug)]
enum RecordStore {
    /// In memory alone.
    Memory(Box<Topic>),
    /// In memory; changes go through the durable store.
    Durable(Box<Topic>),
    /// Owned by the view with that index, which alone changes them.
    View(usize),
}

impl RecordStore {
    /// The records, unless a view owns them.
    fn owned(&self) -> Option<&Topic> {
        match self {
            Self::Memory(topic) | Self::Durable(topic) => Some(topic),
            Self::View(_) => None,
        }
    }

    /// The same, mutable: to register fields to parse.
    fn owned_mut(&mut self) -> Option<&mut Topic> {
        match self {
            Self::Memory(topic) | Self::Durable(topic) => Some(topic),
            Self::View(_) => None,
        }
    }

    fn topic_mut<'a>(&'a mut self, views: &'a mut Views) -> &'a mut Topic {
        match self {
            Self::Memory(topic) | Self::Durable(topic) => topic,
            Self::View(view) => views.topic_mut(*view),
        }
    }

    /// Stores a message as its key's record, or is_delta it into that.
    fn publish<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        is_delta: bool,
        now_ns: u64,
        store: Option<&mut DurableStore>,
    ) -> Result<Change<'a>, CommandError> {
        match (self, store) {
            (Self::Memory(topic), _) => Ok(match is_delta {
                true => topic.publish_delta(publication, now_ns)?,
                false => topic.publish(publication, now_ns)?,
            }),
            (Self::Durable(topic), Some(store)) => {
                store.publish(topic, publication, is_delta, now_ns)
            }
            // Impossible after a successful start; an error is better than a record that is not
            // logged.
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            (Self::View(_), _) => Err(CommandError::IsView),
        }
    }

    /// The record with a message's key.
    fn key_of(&mut self, publication: &Publication<'_>) -> Result<Option<Key>, CommandError> {
        match self {
            Self::Memory(topic) | Self::Durable(topic) => Ok(topic.key_of(publication)?),
            Self::View(_) => Err(CommandError::IsView),
        }
    }

    fn delete<'a>(
        &'a mut self,
        key: Key,
        client: &'a str,
        now_ns: u64,
        store: Option<&mut DurableStore>,
    ) -> Result<Option<Change<'a>>, CommandError> {
        match (self, store) {
            (Self::Memory(topic), _) => Ok(topic.delete(key, client, now_ns)),
            (Self::Durable(topic), Some(store)) => store.delete(topic, key, client, now_ns),
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            (Self::View(_), _) => Err(CommandError::IsView),
        }
    }

    /// Deletes one expired record, if there is one.
    fn expire(
        &mut self,
        now_ns: u64,
        store: Option<&mut DurableStore>,
    ) -> Result<Option<Change<'_>>, CommandError> {
        match (self, store) {
            (Self::Memory(topic), _) => Ok(topic.expire(now_ns)),
            (Self::Durable(topic), Some(store)) => store.expire(topic, now_ns),
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            // Records of a view live as long as those of its source.
            (Self::View(_), _) => Ok(None),
        }
    }
}
