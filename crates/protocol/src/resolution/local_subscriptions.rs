//! Local subscriptions: the topics that this process subscribes to, their known publishers, and
//! when to query for more.

use super::schedule::{Backoff, Schedule};
use crate::Nanos;
use crate::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Minimum number of queries per topic: even if a publisher is known, there may be others.
const QUERIES_MIN: u32 = 2;

/// Subscribed topics.
#[derive(Debug)]
pub(super) struct LocalSubscriptions {
    topics: BTreeMap<Arc<str>, Subscription>,
    due: Schedule<Arc<str>>,
}

#[derive(Debug)]
struct Subscription {
    /// Number of subscribers in this process; 0: the topic is subscribed to by a pattern only, and
    /// not queried.
    count: usize,
    publishers: BTreeSet<u64>,
    backoff: Backoff,
    due: Option<Nanos>,
    /// Another resolver's Query has replaced one of this resolver's, which has sent none since.
    was_replaced: bool,
}

impl LocalSubscriptions {
    pub(super) const fn new() -> Self {
        Self { topics: BTreeMap::new(), due: Schedule::new() }
    }

    /// Adds a subscriber; the first one makes a Query due at once.
    pub(super) fn add(&mut self, name: &str) -> Arc<str> {
        if let Some((name, known)) = self.topics.get_key_value(name) {
            let (name, is_queried) = (Arc::clone(name), known.count > 0);
            if let Some(known) = self.topics.get_mut(&name) {
                known.count += 1;
                if !is_queried {
                    known.due = Some(0);
                    self.due.put(0, Arc::clone(&name));
                }
            }
            return name;
        }
        let name = Arc::<str>::from(name);
        let known = Subscription {
            count: 1,
            publishers: BTreeSet::new(),
            backoff: Backoff::default(),
            due: Some(0),
            was_replaced: false,
        };
        self.topics.insert(Arc::clone(&name), known);
        self.due.put(0, Arc::clone(&name));
        name
    }

    /// Adds a topic that only a pattern subscribes to, unless it is known.
    pub(super) fn add_matching(&mut self, name: &str) -> Arc<str> {
        if let Some((name, _)) = self.topics.get_key_value(name) {
            return Arc::clone(name);
        }
        let name = Arc::<str>::from(name);
        let known = Subscription {
            count: 0,
            publishers: BTreeSet::new(),
            backoff: Backoff::default(),
            due: None,
            was_replaced: false,
        };
        self.topics.insert(Arc::clone(&name), known);
        name
    }

    /// Whether the topic has a subscriber by name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.topics.get(name).is_some_and(|known| known.count > 0)
    }

    /// Removes a subscriber of a topic that a pattern subscribes to as well.
    pub(super) fn leave_to_pattern(&mut self, name: &str) {
        let Some(known) = self.topics.get_mut(name) else { return };
        known.count = known.count.saturating_sub(1);
        if known.count == 0
            && let Some(due) = known.due.take()
        {
            self.due.remove(due, Arc::from(name));
        }
    }

    /// Topics that only patterns subscribe to.
    pub(super) fn matching(&self) -> impl Iterator<Item = &Arc<str>> {
        self.topics.iter().filter(|(_, known)| known.count == 0).map(|(name, _)| name)
    }

    /// Topics that `selects` selects, with their publishers.
    pub(super) fn select(
        &self,
        selects: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (&Arc<str>, &BTreeSet<u64>)> {
        let topics = self.topics.iter().filter(move |(name, _)| selects(name));
        topics.map(|(name, known)| (name, &known.publishers))
    }

    /// Removes a subscriber; returns the topic's publishers if it was the last one.
    pub(super) fn remove(&mut self, name: &str) -> BTreeSet<u64> {
        let Some(known) = self.topics.get_mut(name) else { return BTreeSet::new() };
        known.count = known.count.saturating_sub(1);
        if known.count > 0 {
            return BTreeSet::new();
        }
        let removed = self.topics.remove_entry(name);
        let Some((name, known)) = removed else { return BTreeSet::new() };
        if let Some(due) = known.due {
            self.due.remove(due, name);
        }
        known.publishers
    }

    /// Name and known publishers of a subscribed topic.
    pub(super) fn publishers(&self, name: &str) -> Option<(&Arc<str>, &BTreeSet<u64>)> {
        self.topics.get_key_value(name).map(|(name, known)| (name, &known.publishers))
    }

    /// Adds a publisher; ends the queries once there were enough.
    pub(super) fn found(&mut self, name: &str, session: u64) {
        let Some(known) = self.topics.get_mut(name) else { return };
        known.publishers.insert(session);
        if let Some(due) = known.due
            // The first answer need not be the only publisher: a second Query finds the others.
            && known.backoff.count() >= QUERIES_MIN
        {
            self.due.remove(due, Arc::from(name));
            known.due = None;
        }
    }

    /// Removes a publisher; queries start again if it was the last.
    pub(super) fn forget(&mut self, name: &Arc<str>, session: u64) {
        let Some(known) = self.topics.get_mut(name) else { return };
        // With other publishers left, queries are not urgent.
        if !known.publishers.remove(&session) || !known.publishers.is_empty() {
            return;
        }
        if known.count == 0 {
            // Topics of the past must not pile up; the pattern finds it anew.
            self.topics.remove(name);
            return;
        }
        if let Some(due) = known.due.replace(0) {
            self.due.remove(due, Arc::clone(name));
        }
        (known.backoff, known.was_replaced) = (Backoff::default(), false);
        self.due.put(0, Arc::clone(name));
    }

    /// Another resolver queries for a topic. Its Query replaces the next one of this resolver, but
    /// never twice in a row: its answers may not reach this host.
    pub(super) fn on_query(&mut self, now: Nanos, name: &str, rng: &mut Rng) {
        let Some((name, _)) = self.topics.get_key_value(name) else { return };
        let name = Arc::clone(name);
        let Some(known) = self.topics.get_mut(&name) else { return };
        // At most once in a row: forged queries must not silence this one.
        if known.due.is_some() && !known.was_replaced {
            known.was_replaced = true;
            self.schedule_next(now, &name, rng);
        }
    }

    /// A Query of this resolver was sent.
    pub(super) fn on_query_sent(&mut self, now: Nanos, name: &Arc<str>, rng: &mut Rng) {
        if let Some(known) = self.topics.get_mut(name) {
            known.was_replaced = false;
            self.schedule_next(now, name, rng);
        }
    }

    fn schedule_next(&mut self, now: Nanos, name: &Arc<str>, rng: &mut Rng) {
        let Some(known) = self.topics.get_mut(name) else { return };
        let next = known.backoff.next(now, rng);
        // Queries go on while none is found: its Advert may be lost any number of times.
        let continues = known.backoff.count() < QUERIES_MIN || known.publishers.is_empty();
        let due = continues.then_some(next);
        if let Some(before) = std::mem::replace(&mut known.due, due) {
            self.due.remove(before, Arc::clone(name));
        }
        if let Some(due) = due {
            self.due.put(due, Arc::clone(name));
        }
    }

    /// Time of the next Query.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.due.deadline()
    }

    /// A topic that is due to be queried.
    pub(super) fn next(&self, now: Nanos) -> Option<Arc<str>> {
        self.due.due(now)
    }

    /// All topics subscribed to by name.
    pub(super) fn names(&self) -> impl Iterator<Item = Arc<str>> {
        let named = self.topics.iter().filter(|(_, known)| known.count > 0);
        named.map(|(name, _)| Arc::clone(name))
    }
}
