//! Who follows a topic, and what each of them is told.
//!
//! A query with a subscription begins at a fence, the topic's sequence at that moment. What was
//! published up to it is in the answer, what is published after it is told behind the answer: each
//! change is known once. Publishing goes on meanwhile.

use crate::change::{Cause, Change};
use crate::deltas::Deltas;
use crate::error::TopicError;
use crate::query::Query;
use crate::scan::QueryCursor;
use crate::sink::{Event, OutOfFocusReason, Sink};
use crate::subscription::{Held, Progress, Subscription, SubscriptionOptions};
use crate::topic::Topic;
use lanecast_filter::index::{IndexStats, InsertError};
use lanecast_filter::{Filter, Index};

/// The subscriptions to one topic, and the queries of it that are being answered.
///
/// It has to be told of every change of its topic, by [`SubscriptionSet::on_change`].
#[derive(Debug)]
pub struct SubscriptionSet {
    index: Index,
    all: Filter,
    subscriptions: Vec<Option<Subscription>>,
    /// How each of them is served.
    ways: Vec<Way>,
    free: Vec<u32>,
    /// Those that are not level with the topic.
    busy: Vec<u32>,
    /// Those that are not told everything.
    conflated: Vec<u32>,
    /// Which of these is the next to be told what was held back.
    flushed: usize,
    /// How many want to know what was in their focus.
    watching: usize,
    deltas: Deltas,
    in_focus: Vec<u32>,
    was_in_focus: Vec<u32>,
    /// Those that want deltas, and know what the record was.
    in_focus_still: Vec<u32>,
}

/// How a subscription is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    /// It waits for the end of its query.
    waits: bool,
    conflates: bool,
    watches: bool,
    deltas: bool,
}

impl Way {
    /// Whether it matters what was in the focus before.
    fn looks_back(self) -> bool {
        self.watches || self.deltas
    }
}

impl Default for SubscriptionSet {
    fn default() -> Self {
        Self::new()
    }
}

impl SubscriptionSet {
    /// A feed that nobody follows.
    pub fn new() -> Self {
        Self {
            index: Index::new(),
            all: Filter::parse("TRUE").expect("a filter"),
            subscriptions: Vec::new(),
            ways: Vec::new(),
            free: Vec::new(),
            busy: Vec::new(),
            conflated: Vec::new(),
            flushed: 0,
            watching: 0,
            deltas: Deltas::default(),
            in_focus_still: Vec::new(),
            in_focus: Vec::new(),
            was_in_focus: Vec::new(),
        }
    }

    /// Subscribes to what meets `filter` from now on; gives the subscription's number.
    ///
    /// # Errors
    ///
    /// If the filter names more fields than there is room for.
    pub fn subscribe(
        &mut self,
        topic: &mut Topic,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
    ) -> Result<u32, TopicError> {
        let id = self.vacancy();
        self.file(topic, id, filter)?;
        self.deltas.of(topic.definition());
        self.seat(id, Subscription::new(options, true, None));
        Ok(id)
    }

    /// Asks for records; gives the query's number, which is free again after the answer's end.
    ///
    /// # Errors
    ///
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
        let id = self.vacancy();
        let options = SubscriptionOptions { batch, ..SubscriptionOptions::default() };
        self.seat(id, Subscription::new(options, false, Some(scan)));
        sink.deliver(&[id], Event::Begin);
        Ok(id)
    }

    /// Asks for records, and subscribes to what meets the query's filter from then on: without a
    /// gap, and without telling anything twice.
    ///
    /// # Errors
    ///
    /// If the query asks for certain keys, or names more fields than there is room for.
    pub fn query_and_subscribe(
        &mut self,
        topic: &mut Topic,
        query: &Query,
        options: SubscriptionOptions,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<u32, TopicError> {
        let id = self.vacancy();
        self.begin(topic, id, query, options, now_ns, sink)?;
        Ok(id)
    }

    /// Puts another query and other options in place of a subscription's, and answers the query
    /// anew. What was not told yet is told by the answer.
    ///
    /// # Errors
    ///
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

    /// Ends a subscription or a query. Whether there was one.
    pub fn unsubscribe(&mut self, topic: &mut Topic, id: u32) -> bool {
        let Some(subscription) = self.subscriptions.get_mut(id as usize).and_then(Option::take)
        else {
            return false;
        };
        if subscription.is_live {
            topic.with_fields(|fields| self.index.remove(id, fields));
        }
        let way = std::mem::take(&mut self.ways[id as usize]);
        self.watching -= usize::from(way.looks_back());
        if way.waits {
            self.busy.retain(|other| *other != id);
        }
        if way.conflates {
            self.conflated.retain(|other| *other != id);
        }
        self.free.push(id);
        true
    }

    /// How many subscriptions and unfinished queries there are.
    pub fn len(&self) -> usize {
        self.subscriptions.len() - self.free.len()
    }

    /// Whether nobody follows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the subscriptions' filters are found.
    pub fn index_stats(&self) -> IndexStats {
        self.index.stats()
    }

    /// The subscriptions whose filters are evaluated for every change.
    pub fn unindexed(&self) -> Vec<u32> {
        self.index.unindexed()
    }

    /// Tells subscribers of a change.
    pub fn on_change(&mut self, change: &Change<'_>, sink: &mut impl Sink) {
        for id in &self.busy {
            if let Some(subscription) = &mut self.subscriptions[*id as usize] {
                subscription.on_change(change);
            }
        }
        self.in_focus.clear();
        if let Some(after) = change.after {
            self.index.matches(&after.message(&change.environment), &mut self.in_focus);
        }
        if self.watching > 0
            && let Some(before) = change.before
        {
            self.index.matches(&before.message(&change.environment), &mut self.was_in_focus);
            self.set_apart_those_who_know();
            self.tell_those_left(change, sink);
            let still = &self.in_focus_still;
            self.in_focus.retain(|id| still.binary_search(id).is_err());
        }
        if let (Some(before), Some(after)) = (change.before, change.after) {
            let (base, record) = (before.record(), after.record());
            let held = || Held::Delta(base.clone(), record.clone(), change.cause);
            let ids = std::mem::take(&mut self.in_focus_still);
            self.in_focus_still = self.tell(ids, held, change.environment.unix_ns, sink);
        }
        if let Some(after) = change.after {
            let held = || Held::Update(after.record().clone(), change.cause);
            let ids = std::mem::take(&mut self.in_focus);
            self.in_focus = self.tell(ids, held, change.environment.unix_ns, sink);
        }
    }

    /// The queries that are being answered, and the subscriptions that have begun with one and are
    /// not level with the topic yet.
    pub fn catching_up(&self) -> &[u32] {
        &self.busy
    }

    /// Goes on answering queries: up to `limit` records of each. Whether there is more to do.
    ///
    /// The smaller the limit, the shorter a publisher waits.
    pub fn advance(
        &mut self,
        topic: &mut Topic,
        now_ns: u64,
        limit: usize,
        sink: &mut impl Sink,
    ) -> bool {
        self.advance_except(topic, now_ns, limit, &[], sink)
    }

    /// The same but for those `paused`, who take no more for now: they have to be remembered by
    /// what was, which takes memory. Whether there is more to do for others.
    pub fn advance_except(
        &mut self,
        topic: &mut Topic,
        now_ns: u64,
        limit: usize,
        paused: &[u32],
        sink: &mut impl Sink,
    ) -> bool {
        for id in self.busy.clone() {
            if !paused.contains(&id) {
                self.advance_one(topic, id, now_ns, limit, sink);
            }
        }
        self.busy.iter().any(|id| !paused.contains(id))
    }

    /// Goes on answering one query, if it is not answered yet: up to `limit` records, and fewer if
    /// they are long.
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
                self.ways[id as usize].waits = false;
                self.busy.retain(|other| *other != id);
            }
            Progress::Durability | Progress::Overrun => {
                self.unsubscribe(topic, id);
            }
        }
    }

    /// Tells conflated subscribers what they have not been told for long enough.
    pub fn flush(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.flush_up_to(now_ns, usize::MAX, sink);
    }

    /// The same, up to `limit` events. The next time it goes on with those that had no turn.
    pub fn flush_up_to(&mut self, now_ns: u64, limit: usize, sink: &mut impl Sink) {
        let (mut left, mut looked) = (limit, 0);
        while left > 0 && looked < self.conflated.len() {
            self.flushed %= self.conflated.len();
            let id = self.conflated[self.flushed];
            let subscription = self.subscriptions[id as usize].as_mut();
            let mut conflation = subscription.and_then(|one| one.conflation.as_mut());
            while left > 0
                && let Some(held) = conflation.as_mut().and_then(|one| one.take_due(now_ns))
            {
                held.tell(&[id], &mut self.deltas, sink);
                left -= 1;
            }
            (self.flushed, looked) = (self.flushed + 1, looked + 1);
        }
    }

    /// When [`flush`](Self::flush) may have something to tell.
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
        self.file(topic, id, query.filter.as_ref())?;
        self.deltas.of(topic.definition());
        self.seat(id, Subscription::new(options, true, Some(scan)));
        sink.deliver(&[id], Event::Begin);
        Ok(())
    }

    /// A number that is not in use.
    fn vacancy(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.subscriptions.len() as u32)
    }

    /// Has changes matched for `id` from now on.
    fn file(
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

    fn seat(&mut self, id: u32, subscription: Subscription) {
        let way = Way {
            waits: subscription.is_asking(),
            conflates: subscription.conflation.is_some(),
            watches: subscription.options.out_of_focus,
            deltas: subscription.options.delta,
        };
        if self.free.last() == Some(&id) {
            self.free.pop();
        }
        if self.subscriptions.len() <= id as usize {
            self.subscriptions.push(None);
            self.ways.push(way);
        }
        self.busy.extend(way.waits.then_some(id));
        self.conflated.extend(way.conflates.then_some(id));
        self.watching += usize::from(way.looks_back());
        self.ways[id as usize] = way;
        self.subscriptions[id as usize] = Some(subscription);
    }

    /// Tells those that had the record in their focus, and have it there no more.
    fn tell_those_left(&mut self, change: &Change<'_>, sink: &mut impl Sink) {
        let (ways, in_focus) = (&self.ways, &self.in_focus);
        self.was_in_focus
            .retain(|id| ways[*id as usize].watches && in_focus.binary_search(id).is_err());
        let reason = match change.cause {
            Cause::Published | Cause::Merged => OutOfFocusReason::Match,
            Cause::Deleted => OutOfFocusReason::Deleted,
            Cause::Expired => OutOfFocusReason::Expired,
        };
        if let Some(version) = change.after.or(change.before) {
            let (record, sequence) = (version.record(), change.sequence);
            let held = || Held::OutOfFocus(record.clone(), reason, sequence);
            let ids = std::mem::take(&mut self.was_in_focus);
            self.was_in_focus = self.tell(ids, held, change.environment.unix_ns, sink);
        }
    }

    /// Takes those out of the focus that want deltas, and had the record in their focus before.
    fn set_apart_those_who_know(&mut self) {
        self.in_focus.sort_unstable();
        self.was_in_focus.sort_unstable();
        let (ways, was_in_focus) = (&self.ways, &self.was_in_focus);
        let knows = |id: &u32| ways[*id as usize].deltas && was_in_focus.binary_search(id).is_ok();
        self.in_focus_still.extend(self.in_focus.iter().copied().filter(knows));
    }

    /// Tells `ids`, those at once that do not have to wait. Gives the list back, to be used again.
    fn tell(
        &mut self,
        mut ids: Vec<u32>,
        held: impl Fn() -> Held,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Vec<u32> {
        if !self.busy.is_empty() || !self.conflated.is_empty() {
            ids.retain(|id| {
                let way = self.ways[*id as usize];
                if !way.waits && !way.conflates {
                    return true;
                }
                if let Some(subscription) = &mut self.subscriptions[*id as usize] {
                    match way.waits {
                        true => subscription.wait(held()),
                        false => {
                            subscription.hand_over(*id, held(), &mut self.deltas, now_ns, sink);
                        }
                    }
                }
                false
            });
        }
        if !ids.is_empty() {
            held().tell(&ids, &mut self.deltas, sink);
        }
        ids.clear();
        ids
    }
}
