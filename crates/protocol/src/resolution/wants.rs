//! What this process wants, who is known to publish it, and when to ask.

use super::schedule::{Pace, Schedule};
use crate::Nanos;
use crate::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A topic is asked for this often even if a publisher is known: there may be others.
const ASKED_MIN: u32 = 2;

/// Wanted topics.
#[derive(Debug)]
pub(super) struct Wants {
    topics: BTreeMap<Arc<str>, Want>,
    due: Schedule<Arc<str>>,
}

#[derive(Debug)]
struct Want {
    count: usize,
    publishers: BTreeSet<u64>,
    pace: Pace,
    due: Option<Nanos>,
    /// Another's Query has stood for one of ours, and we have sent none since.
    stood_for: bool,
}

impl Wants {
    pub(super) const fn new() -> Self {
        Self { topics: BTreeMap::new(), due: Schedule::new() }
    }

    /// One more wants a topic; if it is the first, asking is due at once.
    pub(super) fn add(&mut self, name: &str) -> Arc<str> {
        if let Some((name, _)) = self.topics.get_key_value(name) {
            let name = Arc::clone(name);
            self.topics.entry(Arc::clone(&name)).and_modify(|want| want.count += 1);
            return name;
        }
        let name = Arc::<str>::from(name);
        let want = Want {
            count: 1,
            publishers: BTreeSet::new(),
            pace: Pace::default(),
            due: Some(0),
            stood_for: false,
        };
        self.topics.insert(Arc::clone(&name), want);
        self.due.put(0, Arc::clone(&name));
        name
    }

    /// One less wants a topic; if it was the last, the publishers that were known.
    pub(super) fn remove(&mut self, name: &str) -> BTreeSet<u64> {
        let Some(want) = self.topics.get_mut(name) else { return BTreeSet::new() };
        want.count -= 1;
        if want.count > 0 {
            return BTreeSet::new();
        }
        let removed = self.topics.remove_entry(name);
        let Some((name, want)) = removed else { return BTreeSet::new() };
        if let Some(due) = want.due {
            self.due.remove(due, name);
        }
        want.publishers
    }

    /// The publishers of a wanted topic, and its name.
    pub(super) fn publishers(&self, name: &str) -> Option<(&Arc<str>, &BTreeSet<u64>)> {
        self.topics.get_key_value(name).map(|(name, want)| (name, &want.publishers))
    }

    /// A publisher is known.
    pub(super) fn found(&mut self, name: &str, session: u64) {
        let Some(want) = self.topics.get_mut(name) else { return };
        want.publishers.insert(session);
        if let Some(due) = want.due
            && want.pace.said() >= ASKED_MIN
        {
            self.due.remove(due, Arc::from(name));
            want.due = None;
        }
    }

    /// A publisher is known no longer; if it was the last, asking begins anew.
    pub(super) fn forget(&mut self, name: &Arc<str>, session: u64) {
        let Some(want) = self.topics.get_mut(name) else { return };
        if !want.publishers.remove(&session) || !want.publishers.is_empty() {
            return;
        }
        if let Some(due) = want.due.replace(0) {
            self.due.remove(due, Arc::clone(name));
        }
        (want.pace, want.stood_for) = (Pace::default(), false);
        self.due.put(0, Arc::clone(name));
    }

    /// Another asks for a topic. That stands for our own Query, but never twice in a row: the
    /// other may not be heard where we are.
    pub(super) fn heard(&mut self, now: Nanos, name: &str, rng: &mut Rng) {
        let Some((name, _)) = self.topics.get_key_value(name) else { return };
        let name = Arc::clone(name);
        let Some(want) = self.topics.get_mut(&name) else { return };
        if want.due.is_some() && !want.stood_for {
            want.stood_for = true;
            self.said(now, &name, rng);
        }
    }

    /// Our own Query is sent now.
    pub(super) fn asked(&mut self, now: Nanos, name: &Arc<str>, rng: &mut Rng) {
        if let Some(want) = self.topics.get_mut(name) {
            want.stood_for = false;
            self.said(now, name, rng);
        }
    }

    fn said(&mut self, now: Nanos, name: &Arc<str>, rng: &mut Rng) {
        let Some(want) = self.topics.get_mut(name) else { return };
        let next = want.pace.next(now, rng);
        let goes_on = want.pace.said() < ASKED_MIN || want.publishers.is_empty();
        let due = goes_on.then_some(next);
        if let Some(before) = std::mem::replace(&mut want.due, due) {
            self.due.remove(before, Arc::clone(name));
        }
        if let Some(due) = due {
            self.due.put(due, Arc::clone(name));
        }
    }

    /// When the first is due.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.due.deadline()
    }

    /// A topic to ask for.
    pub(super) fn next(&self, now: Nanos) -> Option<Arc<str>> {
        self.due.due(now)
    }

    /// All wanted topics.
    pub(super) fn names(&self) -> impl Iterator<Item = Arc<str>> {
        self.topics.keys().cloned()
    }
}
