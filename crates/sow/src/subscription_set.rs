//! The subscriptions of a topic: matches changes against filters and delivers events.
//!
//! A query with a subscription starts at a fence, the topic's sequence at that moment. The answer
//! holds every change up to the fence, updates every change behind it: each change is delivered
//! once, while publishing continues.

use crate::change::{Cause, Change};
use crate::delivery_mode::DeliveryMode;
use crate::deltas::Deltas;
use crate::error::TopicError;
use crate::pending_update::PendingUpdate;
use crate::query::Query;
use crate::query_cursor::QueryCursor;
use crate::sink::{Event, OutOfFocusReason, Sink};
use crate::subscription::{Progress, Subscription, SubscriptionOptions};
use crate::topic::Topic;
use lanecast_filter::index::InsertError;
use lanecast_filter::{Filter, Index};

/// Subscriptions and running queries of one topic.
///
/// [`on_change`](Self::on_change) must be called after each change of the topic. Ids are reused
/// after the end of a subscription or query.
#[derive(Debug)]
pub struct SubscriptionSet {
    index: Index,
    all: Filter,
    subscriptions: Vec<Option<Subscription>>,
    /// Delivery mode of each.
    modes: Vec<DeliveryMode>,
    free: Vec<u32>,
    /// Subscriptions that have not caught up with the topic.
    catching_up: Vec<u32>,
    /// Subscriptions with conflation.
    conflated: Vec<u32>,
    /// Index of the next one to flush, for fairness.
    flush_position: usize,
    /// Number of subscriptions that need the previous focus of a record.
    focus_watchers: usize,
    deltas: Deltas,
    in_focus: Vec<u32>,
    was_in_focus: Vec<u32>,
    /// Recipients of a delta: they have the previous version.
    delta_recipients: Vec<u32>,
}

impl Default for SubscriptionSet {
    fn default() -> Self {
        Self::new()
    }
}

impl SubscriptionSet {
    /// An empty set.
    pub fn new() -> Self {
        Self {
            index: Index::new(),
            all: Filter::parse("TRUE").expect("a filter"),
            subscriptions: Vec::new(),
            modes: Vec::new(),
            free: Vec::new(),
            catching_up: Vec::new(),
            conflated: Vec::new(),
            flush_position: 0,
            focus_watchers: 0,
            deltas: Deltas::default(),
            delta_recipients: Vec::new(),
            in_focus: Vec::new(),
            was_in_focus: Vec::new(),
        }
    }

    /// Subscribes to messages that match `filter`; returns the subscription's id.
    ///
    /// # Errors
    /// If the filter names more fields than there is room for.
    pub fn subscribe(
        &mut self,
        topic: &mut Topic,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
    ) -> Result<u32, TopicError> {
        let id = self.free_id();
        self.index_filter(topic, id, filter)?;
        self.deltas.of(topic.definition());
        self.insert(id, Subscription::new(options, true, None));
        Ok(id)
    }

    /// Starts a query; returns its id, which is free again after the end of the answer.
    ///
    /// # Errors
    /// If the query names more fields than there is room for.
    pub fn query(
        &mut self,
        topic: &Topic,
        query: &Query,
        batch: usize,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<u32, TopicError> {
        let scan = QueryCursor::new(topic, query, now_ns)?;
        let id = self.free_id();
        let options = SubscriptionOptions { batch, ..SubscriptionOptions::default() };
        self.insert(id, Subscription::new(options, false, Some(scan)));
        sink.deliver(&[id], Event::Begin);
        Ok(id)
    }

    /// Starts a query and subscribes to its filter, without a gap and without duplicates (AMPS:
    /// `sow_and_subscribe`).
    ///
    /// # Errors
    /// If the query has a list of keys, or names more fields than there is room for.
    pub fn query_and_subscribe(
        &mut self,
        topic: &mut Topic,
        query: &Query,
        options: SubscriptionOptions,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<u32, TopicError> {
        let id = self.free_id();
        self.begin(topic, id, query, options, now_ns, sink)?;
        Ok(id)
    }

    /// Replaces a subscription's query and options, and answers the new query. Updates that waited
    /// are covered by the answer.
    ///
    /// # Errors
    /// As [`query_and_subscribe`](Self::query_and_subscribe); then the subscription has ended.
    pub fn replace(
        &mut self,
        topic: &mut Topic,
        id: u32,
        query: &Query,
        options: SubscriptionOptions,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<(), TopicError> {
        if !self.unsubscribe(topic, id) {
            return Err(TopicError::NoSubscription(id));
        }
        self.free.pop();
        let result = self.begin(topic, id, query, options, now_ns, sink);
        if result.is_err() {
            self.free.push(id);
        }
        result
    }

    /// Ends a subscription or query; returns whether it existed.
    pub fn unsubscribe(&mut self, topic: &mut Topic, id: u32) -> bool {
        let Some(subscription) = self.subscriptions.get_mut(id as usize).and_then(Option::take)
        else {
            return false;
        };
        if subscription.is_live {
            topic.with_fields(|fields| self.index.remove(id, fields));
        }
        let mode = std::mem::take(&mut self.modes[id as usize]);
        self.focus_watchers -= usize::from(mode.needs_previous());
        if mode.is_catching_up {
            self.catching_up.retain(|other| *other != id);
        }
        if mode.is_conflated {
            self.conflated.retain(|other| *other != id);
        }
        self.free.push(id);
        true
    }

    /// Number of subscriptions and running queries.
    pub fn len(&self) -> usize {
        self.subscriptions.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Delivers a change to its subscribers.
    pub fn on_change(&mut self, change: &Change<'_>, sink: &mut impl Sink) {
        for id in &self.catching_up {
            if let Some(subscription) = &mut self.subscriptions[*id as usize] {
                subscription.on_change(change);
            }
        }
        self.in_focus.clear();
        if let Some(after) = change.after {
            self.index.matches(&after.message(&change.environment), &mut self.in_focus);
        }
        if self.focus_watchers > 0
            && let Some(before) = change.before
        {
            self.index.matches(&before.message(&change.environment), &mut self.was_in_focus);
            self.split_delta_recipients();
            self.deliver_out_of_focus(change, sink);
            let still = &self.delta_recipients;
            self.in_focus.retain(|id| still.binary_search(id).is_err());
        }
        if let (Some(before), Some(after)) = (change.before, change.after) {
            let (base, record) = (before.record(), after.record());
            let update = || PendingUpdate::Delta(base.clone(), record.clone(), change.cause);
            // The buffers are taken and put back, so that a change allocates nothing.
            let ids = std::mem::take(&mut self.delta_recipients);
            self.delta_recipients = self.deliver(ids, update, change.environment.unix_ns, sink);
        }
        if let Some(after) = change.after {
            let update = || PendingUpdate::Update(after.record().clone(), change.cause);
            let ids = std::mem::take(&mut self.in_focus);
            self.in_focus = self.deliver(ids, update, change.environment.unix_ns, sink);
        }
    }

    /// Ids of running queries, and of subscriptions that have not caught up.
    pub fn catching_up(&self) -> &[u32] {
        &self.catching_up
    }

    /// Continues all queries by up to `limit` records each; returns whether more is left.
    ///
    /// A smaller limit delays publishers less.
    pub fn advance(
        &mut self,
        topic: &mut Topic,
        now_ns: u64,
        limit: usize,
        sink: &mut impl Sink,
    ) -> bool {
        self.advance_except(topic, now_ns, limit, &[], sink)
    }

    /// As [`advance`](Self::advance), without the `paused` ones, whose clients accept no more data.
    /// A paused query holds on to previous records, so it costs memory. Returns whether more is
    /// left for the others.
    pub fn advance_except(
        &mut self,
        topic: &mut Topic,
        now_ns: u64,
        limit: usize,
        paused: &[u32],
        sink: &mut impl Sink,
    ) -> bool {
        for id in self.catching_up.clone() {
            if !paused.contains(&id) {
                self.advance_one(topic, id, now_ns, limit, sink);
            }
        }
        self.catching_up.iter().any(|id| !paused.contains(id))
    }

    /// Continues one query by up to `limit` records, or fewer if they are long.
    pub fn advance_one(
        &mut self,
        topic: &mut Topic,
        id: u32,
        now_ns: u64,
        limit: usize,
        sink: &mut impl Sink,
    ) {
        let subscription = self.subscriptions.get_mut(id as usize).and_then(Option::as_mut);
        let Some(subscription) = subscription else { return };
        match subscription.advance(id, topic, &mut self.deltas, now_ns, limit, sink) {
            Progress::Busy => {}
            Progress::Durability if subscription.is_live => {
                self.modes[id as usize].is_catching_up = false;
                self.catching_up.retain(|other| *other != id);
            }
            Progress::Durability | Progress::Overrun => {
                self.unsubscribe(topic, id);
            }
        }
    }

    /// Delivers the conflated updates that are due.
    pub fn flush(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.flush_up_to(now_ns, usize::MAX, sink);
    }

    /// As [`flush`](Self::flush), up to `limit` events. The next call continues with the next
    /// subscription.
    pub fn flush_up_to(&mut self, now_ns: u64, limit: usize, sink: &mut impl Sink) {
        let (mut left, mut looked) = (limit, 0);
        while left > 0 && looked < self.conflated.len() {
            self.flush_position %= self.conflated.len();
            let id = self.conflated[self.flush_position];
            let subscription = self.subscriptions[id as usize].as_mut();
            let mut conflation = subscription.and_then(|one| one.conflation.as_mut());
            while left > 0
                && let Some(update) = conflation.as_mut().and_then(|one| one.take_due(now_ns))
            {
                update.deliver(&[id], &mut self.deltas, sink);
                left -= 1;
            }
            (self.flush_position, looked) = (self.flush_position + 1, looked + 1);
        }
    }

    /// Time at which [`flush`](Self::flush) may have something to deliver.
    pub fn next_flush_ns(&self) -> Option<u64> {
        let conflated = self.conflated.iter();
        let conflated = conflated.filter_map(|id| self.subscriptions[*id as usize].as_ref());
        conflated.filter_map(|one| one.conflation.as_ref()?.next_ns()).min()
    }

    fn begin(
        &mut self,
        topic: &mut Topic,
        id: u32,
        query: &Query,
        options: SubscriptionOptions,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<(), TopicError> {
        if query.keys.is_some() {
            return Err(TopicError::KeyListNotSupported);
        }
        let scan = QueryCursor::new(topic, query, now_ns)?;
        self.index_filter(topic, id, query.filter.as_ref())?;
        self.deltas.of(topic.definition());
        self.insert(id, Subscription::new(options, true, Some(scan)));
        sink.deliver(&[id], Event::Begin);
        Ok(())
    }

    /// An unused id.
    fn free_id(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.subscriptions.len() as u32)
    }

    /// Adds the filter of `id` to the index.
    fn index_filter(
        &mut self,
        topic: &mut Topic,
        id: u32,
        filter: Option<&Filter>,
    ) -> Result<(), TopicError> {
        let filter = filter.unwrap_or(&self.all);
        match topic.with_fields(|fields| self.index.insert(id, filter, fields)) {
            Ok(_) => Ok(()),
            Err(InsertError::TooManyFields(taken)) => Err(taken.into()),
            Err(InsertError::IdTaken(_) | InsertError::IdOutOfRange(_)) => {
                Err(TopicError::TooManySubscriptions)
            }
        }
    }

    fn insert(&mut self, id: u32, subscription: Subscription) {
        let mode = DeliveryMode {
            is_catching_up: subscription.is_querying(),
            is_conflated: subscription.conflation.is_some(),
            out_of_focus: subscription.options.out_of_focus,
            deltas: subscription.options.delta,
        };
        if self.free.last() == Some(&id) {
            self.free.pop();
        }
        if self.subscriptions.len() <= id as usize {
            self.subscriptions.push(None);
            self.modes.push(mode);
        }
        self.catching_up.extend(mode.is_catching_up.then_some(id));
        self.conflated.extend(mode.is_conflated.then_some(id));
        self.focus_watchers += usize::from(mode.needs_previous());
        self.modes[id as usize] = mode;
        self.subscriptions[id as usize] = Some(subscription);
    }

    /// Delivers out-of-focus events to subscriptions that matched the record before and do not now.
    fn deliver_out_of_focus(&mut self, change: &Change<'_>, sink: &mut impl Sink) {
        let (modes, in_focus) = (&self.modes, &self.in_focus);
        self.was_in_focus
            .retain(|id| modes[*id as usize].out_of_focus && in_focus.binary_search(id).is_err());
        let reason = match change.cause {
            Cause::Published | Cause::Merged => OutOfFocusReason::Match,
            Cause::Deleted => OutOfFocusReason::Deleted,
            Cause::Expired => OutOfFocusReason::Expired,
        };
        if let Some(version) = change.after.or(change.before) {
            let (record, sequence) = (version.record(), change.sequence);
            let update = || PendingUpdate::OutOfFocus(record.clone(), reason, sequence);
            let ids = std::mem::take(&mut self.was_in_focus);
            self.was_in_focus = self.deliver(ids, update, change.environment.unix_ns, sink);
        }
    }

    /// Selects the recipients of a delta: they matched the record before and match it now.
    fn split_delta_recipients(&mut self) {
        self.in_focus.sort_unstable();
        self.was_in_focus.sort_unstable();
        let (modes, was_in_focus) = (&self.modes, &self.was_in_focus);
        let knows = |id: &u32| modes[*id as usize].deltas && was_in_focus.binary_search(id).is_ok();
        self.delta_recipients.extend(self.in_focus.iter().copied().filter(knows));
    }

    /// Delivers to `ids`, at once where nothing delays it. Returns the list for reuse.
    fn deliver(
        &mut self,
        mut ids: Vec<u32>,
        update: impl Fn() -> PendingUpdate,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Vec<u32> {
        // The common case, in which all are up to date, delivers once for the whole list.
        if !self.catching_up.is_empty() || !self.conflated.is_empty() {
            ids.retain(|id| {
                let mode = self.modes[*id as usize];
                if !mode.is_catching_up && !mode.is_conflated {
                    return true;
                }
                if let Some(subscription) = &mut self.subscriptions[*id as usize] {
                    match mode.is_catching_up {
                        true => subscription.enqueue(update()),
                        false => {
                            subscription.deliver(*id, update(), &mut self.deltas, now_ns, sink);
                        }
                    }
                }
                false
            });
        }
        if !ids.is_empty() {
            update().deliver(&ids, &mut self.deltas, sink);
        }
        ids.clear();
        ids
    }
}
