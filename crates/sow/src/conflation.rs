//! Conflation: at most one update per record and interval, the latest.

use crate::key::Key;
use crate::pending_update::PendingUpdate;
use crate::record::NEVER;
use crate::subscription_options::SubscriptionOptions;
use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Conflation state of one subscription.
#[derive(Debug)]
pub(crate) struct Conflation {
    interval_ns: u64,
    /// Records delivered within the last interval, with the update that waits for its end.
    recent: HashMap<Key, Option<PendingUpdate>, RandomState>,
    /// End of each record's interval, in order.
    due: VecDeque<(u64, Key)>,
}

impl Conflation {
    pub(crate) fn new(interval: Duration) -> Self {
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Self { interval_ns, recent: HashMap::default(), due: VecDeque::new() }
    }

    /// Returns the update if it is due at once; otherwise merges it with the one that waits.
    pub(crate) fn offer(&mut self, update: PendingUpdate, now_ns: u64) -> Option<PendingUpdate> {
        let key = update.record().key();
        if let Some(last) = self.recent.get_mut(&key) {
            *last = Some(match last.take() {
                Some(earlier) => earlier.merged_with(update),
                None => update,
            });
            return None;
        }
        self.recent.insert(key, None);
        self.due.push_back((now_ns.saturating_add(self.interval_ns), key));
        Some(update)
    }

    /// The next update that is due.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<PendingUpdate> {
        while let Some((due_ns, key)) = self.due.front().copied() {
            if due_ns > now_ns {
                return None;
            }
            self.due.pop_front();
            let update = self.recent.get_mut(&key).and_then(Option::take);
            if update.is_some() {
                self.due.push_back((now_ns.saturating_add(self.interval_ns), key));
                return update;
            }
            self.recent.remove(&key);
        }
        None
    }

    /// Continues the intervals of a subscription that this one, with `options`, replaces.
    pub(crate) fn take_over(&mut self, old: Self, options: &SubscriptionOptions, now_ns: u64) {
        let Self { recent, due, .. } = old;
        let suited = |update: Option<PendingUpdate>| update.and_then(|it| it.suited_to(options));
        self.recent = recent.into_iter().map(|(key, update)| (key, suited(update))).collect();
        // Intervals that begin from here on may be shorter than those of before: ends stay in
        // order.
        let end = now_ns.saturating_add(self.interval_ns);
        self.due = due.into_iter().map(|(due_ns, key)| (due_ns.min(end), key)).collect();
    }

    /// The updates that wait, the earliest first.
    pub(crate) fn into_pending(self) -> impl Iterator<Item = PendingUpdate> {
        let Self { mut recent, due, .. } = self;
        due.into_iter().filter_map(move |(_, key)| recent.remove(&key).flatten())
    }

    /// Time of the next update that may be due; [`NEVER`] if none waits.
    pub(crate) fn next_ns(&self) -> u64 {
        self.due.front().map_or(NEVER, |(due_ns, _)| *due_ns)
    }
}
