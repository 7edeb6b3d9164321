//! The subscriptions of a topic: matches changes against filters and delivers events.
//!
//! A query with a subscription starts at a fence, the topic's sequence at that moment. The answer
//! holds every change up to the fence, updates every change behind it: each change is delivered
//! once, while publishing continues.

use crate::change::{Cause, Change};
use crate::deadlines::Deadlines;
use crate::delivery_mode::DeliveryMode;
use crate::deltas::Deltas;
use crate::error::TopicError;
use crate::pending_update::PendingUpdate;
use crate::query::Query;
use crate::query_cursor::QueryCursor;
use crate::record::NEVER;
use crate::sink::{Event, OutOfFocusReason, Sink};
use crate::subscription::{Progress, Subscription};
use crate::subscription_options::SubscriptionOptions;
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
    /// Number of subscriptions with conflation.
    conflated: usize,
    /// Subscriptions with conflated updates, by the time of the next one that may be due.
    flush_times: Deadlines,
    /// Subscriptions examined by flushes.
    #[cfg(test)]
    flushed: usize,
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
            conflated: 0,
            flush_times: Deadlines::default(),
            #[cfg(test)]
            flushed: 0,
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

    /// Replaces a subscription's query and options, and answers the new query. The answer covers
    /// updates that waited; out-of-focus events that waited come before it.
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
        let Some(old) = self.take(topic, id) else {
            return Err(TopicError::NoSubscription(id));
        };
        if options.out_of_focus {
            old.deliver_out_of_focus(id, &mut self.deltas, sink);
        }
        self.free.pop();
        let result = self.begin(topic, id, query, options, now_ns, sink);
        if result.is_err() {
            self.free.push(id);
        }
        result
    }

    /// Ends the subscription `old`, whose place `id` takes: that goes on with what `old` still
    /// owes, the rest of an answer and the updates that wait, in order and before any other change.
    /// Call it before the first change after the subscription to `id`, which has no query of its
    /// own.
    pub fn take_over(&mut self, topic: &mut Topic, id: u32, old: u32, now_ns: u64) {
        let Some(old) = self.take(topic, old) else { return };
        let own = self.subscriptions.get_mut(id as usize).and_then(Option::as_mut);
        let Some(subscription) = own else { return };
        let flush_ns = subscription.next_flush_ns();
        subscription.take_over(old, now_ns);
        self.flush_times.moved(id, flush_ns, subscription.next_flush_ns());
        let mode = &mut self.modes[id as usize];
        if subscription.is_behind() && !mode.is_catching_up {
            mode.is_catching_up = true;
            self.catching_up.push(id);
        }
    }

    /// Ends a subscription whose place one with a query takes: delivers the out-of-focus events
    /// that wait, of which the answer does not tell. The answer covers all other updates.
    pub fn end_before_query(&mut self, topic: &mut Topic, id: u32, sink: &mut impl Sink) {
        if let Some(subscription) = self.take(topic, id) {
            subscription.deliver_out_of_focus(id, &mut self.deltas, sink);
        }
    }

    /// Ends a subscription or query; returns whether it existed.
    pub fn unsubscribe(&mut self, topic: &mut Topic, id: u32) -> bool {
        self.take(topic, id).is_some()
    }

    fn take(&mut self, topic: &mut Topic, id: u32) -> Option<Subscription> {
        let subscription = self.subscriptions.get_mut(id as usize)?.take()?;
        if subscription.is_live {
            topic.with_fields(|fields| self.index.remove(id, fields));
        }
        let mode = std::mem::take(&mut self.modes[id as usize]);
        self.focus_watchers -= usize::from(mode.needs_previous());
        if mode.is_catching_up {
            self.catching_up.retain(|other| *other != id);
        }
        self.conflated -= usize::from(mode.is_conflated);
        self.flush_times.moved(id, subscription.next_flush_ns(), NEVER);
        self.free.push(id);
        Some(subscription)
    }

    /// Number of subscriptions and running queries.
    pub fn len(&self) -> usize {
        self.subscriptions.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Delivers a change to its subscribers. `now_ns` is the time of conflation, as in
    /// [`flush`](Self::flush); changes bear wall-clock time, which may be set back.
    pub fn on_change(&mut self, change: &Change<'_>, now_ns: u64, sink: &mut impl Sink) {
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
            self.deliver_out_of_focus(change, now_ns, sink);
            let still = &self.delta_recipients;
            self.in_focus.retain(|id| still.binary_search(id).is_err());
        }
        if let (Some(before), Some(after)) = (change.before, change.after) {
            let (base, record) = (before.record(), after.record());
            let update = || PendingUpdate::Delta(base.clone(), record.clone(), change.cause);
            // The buffers are taken and put back, so that a change allocates nothing.
            let ids = std::mem::take(&mut self.delta_recipients);
            self.delta_recipients = self.deliver(ids, update, now_ns, sink);
        }
        if let Some(after) = change.after {
            let update = || PendingUpdate::Update(after.record().clone(), change.cause);
            let ids = std::mem::take(&mut self.in_focus);
            self.in_focus = self.deliver(ids, update, now_ns, sink);
        }
    }

    /// Ids of running queries, and of subscriptions that have not caught up.
    pub fn catching_up(&self) -> &[u32] {
        &self.catching_up
    }

    /// Number of updates that wait for a subscription whose query is answered.
    pub fn backlog(&self, id: u32) -> usize {
        let subscription = self.subscriptions.get(id as usize).and_then(Option::as_ref);
        subscription.map_or(0, Subscription::backlog)
    }

    /// Number of updates that began to wait for a subscription since the last call.
    /// [Deliver](Self::advance_one) more than these per call: otherwise a subscription to a busy
    /// topic never catches up.
    pub fn take_arrived(&mut self, id: u32) -> usize {
        let subscription = self.subscriptions.get_mut(id as usize).and_then(Option::as_mut);
        subscription.map_or(0, Subscription::take_arrived)
    }

    /// Continues all queries by up to `limit` records each; returns whether more is left. `now_ns`
    /// is the time of conflation.
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
        let flush_ns = subscription.next_flush_ns();
        let progress = subscription.advance(id, topic, &mut self.deltas, now_ns, limit, sink);
        self.flush_times.moved(id, flush_ns, subscription.next_flush_ns());
        match progress {
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

    /// Delivers the conflated updates that are due. `now_ns` is that of a monotonic clock:
    /// intervals are measured by it.
    pub fn flush(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.flush_up_to(now_ns, usize::MAX, sink);
    }

    /// As [`flush`](Self::flush), up to `limit` events. The earliest come first.
    pub fn flush_up_to(&mut self, now_ns: u64, limit: usize, sink: &mut impl Sink) {
        let mut left = limit;
        while left > 0
            && let Some(id) = self.flush_times.due(now_ns)
            && let Some(subscription) = &mut self.subscriptions[id as usize]
        {
            #[cfg(test)]
            (self.flushed += 1);
            let flush_ns = subscription.next_flush_ns();
            while left > 0
                && let Some(update) =
                    subscription.conflation.as_mut().and_then(|one| one.take_due(now_ns))
            {
                update.deliver(&[id], &mut self.deltas, sink);
                left -= 1;
            }
            self.flush_times.moved(id, flush_ns, subscription.next_flush_ns());
        }
    }

    /// Time at which [`flush`](Self::flush) may have something to deliver.
    pub fn next_flush_ns(&self) -> Option<u64> {
        self.flush_times.next_ns()
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
        self.conflated += usize::from(mode.is_conflated);
        self.focus_watchers += usize::from(mode.needs_previous());
        self.modes[id as usize] = mode;
        self.subscriptions[id as usize] = Some(subscription);
    }

    /// Delivers out-of-focus events to subscriptions that matched the record before and do not now.
    fn deliver_out_of_focus(&mut self, change: &Change<'_>, now_ns: u64, sink: &mut impl Sink) {
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
            self.was_in_focus = self.deliver(ids, update, now_ns, sink);
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
        if !self.catching_up.is_empty() || self.conflated > 0 {
            ids.retain(|id| {
                let mode = self.modes[*id as usize];
                if !mode.is_catching_up && !mode.is_conflated {
                    return true;
                }
                if let Some(subscription) = &mut self.subscriptions[*id as usize] {
                    match mode.is_catching_up {
                        true => subscription.enqueue(update()),
                        false => {
                            let flush_ns = subscription.next_flush_ns();
                            subscription.deliver(*id, update(), &mut self.deltas, now_ns, sink);
                            let next_ns = subscription.next_flush_ns();
                            self.flush_times.moved(*id, flush_ns, next_ns);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::TopicDefinition;
    use crate::publication::Publication;
    use lanecast_filter::message_type::MessageType;
    use std::time::Duration;

    const SUBSCRIPTIONS: u32 = 1_000;
    const INTERVAL: Duration = Duration::from_nanos(100);

    #[test]
    fn a_flush_examines_only_subscriptions_with_updates_that_are_due() {
        let definition = TopicDefinition::new("orders", MessageType::Json).key("/id");
        let mut topic = Topic::new(definition.expect("a path")).expect("a topic");
        let (mut set, mut delivered) = (SubscriptionSet::new(), Vec::new());
        let mut sink = |ids: &[u32], _: Event<'_>| delivered.extend_from_slice(ids);
        let conflation = Some(INTERVAL);
        let options = SubscriptionOptions { conflation, ..SubscriptionOptions::default() };
        for number in 0..SUBSCRIPTIONS {
            let filter = Filter::parse(&format!("/id = {number}")).expect("a filter");
            set.subscribe(&mut topic, Some(&filter), options).expect("capacity");
        }
        for (id, now_ns) in [(7, 0), (7, 1), (8, 50), (8, 51), (9, 60), (9, 61)] {
            let message = format!(r#"{{"id":{id}}}"#);
            let change = topic.publish(&Publication::of(message.as_bytes()), now_ns);
            set.on_change(&change.expect("taken"), now_ns, &mut sink);
        }
        assert_eq!(set.next_flush_ns(), Some(100));
        set.flush_up_to(99, 10, &mut sink);
        assert_eq!(set.flushed, 0, "nothing is due");
        set.flush_up_to(100, 10, &mut sink);
        assert_eq!((set.flushed, set.next_flush_ns()), (1, Some(150)));
        assert!(set.unsubscribe(&mut topic, 8));
        assert_eq!(set.next_flush_ns(), Some(160), "an ended subscription has no deadline");
        set.flush_up_to(160, 10, &mut sink);
        assert_eq!((set.flushed, set.next_flush_ns()), (2, Some(200)));
        // Their intervals end without another update.
        set.flush_up_to(400, 10, &mut sink);
        assert_eq!((set.flushed, set.next_flush_ns()), (4, None));
        assert_eq!(delivered, [7, 8, 9, 7, 9]);
    }
}
