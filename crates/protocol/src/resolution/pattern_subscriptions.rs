//! Subscriptions by pattern: the prefixes that this process queries for, and the matching topics
//! that it has found.
//!
//! A Query names a prefix rather than a pattern: publishers compare bytes, and no host evaluates
//! another's pattern.

use super::schedule::Schedule;
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos, SECOND};
use lanecast_transport::{TopicPattern, TopicSelection};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pause after the first Query of a prefix, four times as long after each further one.
const PAUSE: Nanos = 100 * MILLISECOND;
/// Queries of a prefix. An answer has many names, in many datagrams: a second and third one bring
/// what the first has lost; later on the publishers' own repetitions do.
const QUERIES: u32 = 3;
/// Longest prefix in a Query.
const PREFIX_MAX: usize = lanecast_wire::net::NAME_MAX - 1;

/// Patterns of this process.
#[derive(Debug)]
pub(super) struct PatternSubscriptions {
    /// Selections with patterns, by their numbers.
    selections: BTreeMap<u64, TopicSelection>,
    prefixes: BTreeMap<Arc<str>, Prefix>,
    due: Schedule<Arc<str>>,
}

#[derive(Debug, Default)]
struct Prefix {
    /// Number of patterns with this prefix.
    count: usize,
    sent: u32,
    due: Option<Nanos>,
}

impl PatternSubscriptions {
    pub(super) const fn new() -> Self {
        Self { selections: BTreeMap::new(), prefixes: BTreeMap::new(), due: Schedule::new() }
    }

    /// Adds a selection; returns its prefixes that are new, whose Queries are due at once.
    pub(super) fn add(&mut self, number: u64, selection: &TopicSelection) -> Vec<Arc<str>> {
        let mut new = Vec::new();
        for pattern in selection.patterns() {
            let prefix: Arc<str> = prefix(pattern).into();
            let known = self.prefixes.entry(Arc::clone(&prefix)).or_default();
            known.count += 1;
            if known.count == 1 {
                new.push(Arc::clone(&prefix));
            }
            // A further subscriber needs answers too: this process keeps matching topics only.
            self.query(&prefix);
        }
        self.selections.insert(number, selection.clone());
        new
    }

    /// Queries for a prefix, as if it were new.
    fn query(&mut self, prefix: &Arc<str>) {
        let Some(known) = self.prefixes.get_mut(prefix) else { return };
        known.sent = 0;
        if let Some(due) = known.due.replace(0) {
            self.due.remove(due, Arc::clone(prefix));
        }
        self.due.put(0, Arc::clone(prefix));
    }

    /// Queries again for the prefixes of the patterns that match `topic`; returns these prefixes.
    pub(super) fn query_again(&mut self, topic: &str) -> Vec<Arc<str>> {
        let patterns = self.selections.values().flat_map(TopicSelection::patterns);
        let matching = patterns.filter(|pattern| pattern.matches(topic));
        let prefixes: Vec<Arc<str>> = matching.map(|pattern| prefix(pattern).into()).collect();
        prefixes.iter().for_each(|prefix| self.query(prefix));
        prefixes
    }

    /// Removes a selection; returns the prefixes that are no longer queried for.
    pub(super) fn remove(&mut self, number: u64) -> Vec<Arc<str>> {
        let mut gone = Vec::new();
        let Some(selection) = self.selections.remove(&number) else { return gone };
        for pattern in selection.patterns() {
            let prefix: Arc<str> = prefix(pattern).into();
            let Some(known) = self.prefixes.get_mut(&prefix) else { continue };
            known.count -= 1;
            if known.count == 0 {
                if let Some(due) = known.due {
                    self.due.remove(due, Arc::clone(&prefix));
                }
                self.prefixes.remove(&prefix);
                gone.push(prefix);
            }
        }
        gone
    }

    /// Whether a pattern matches `topic`, in a selection that has room for it.
    pub(super) fn take(&self, topic: &str) -> bool {
        self.selections.values().any(|selection| selection.takes(topic))
    }

    /// Whether a pattern matches `topic`.
    pub(super) fn selects(&self, topic: &str) -> bool {
        self.selections.values().any(|selection| selection.selects(topic))
    }

    /// The selection of subscriber `number`.
    pub(super) fn selection(&self, number: u64) -> Option<&TopicSelection> {
        self.selections.get(&number)
    }

    /// A Query was sent.
    pub(super) fn on_query_sent(&mut self, now: Nanos, prefix: &Arc<str>, rng: &mut Rng) {
        let Some(known) = self.prefixes.get_mut(prefix) else { return };
        if let Some(due) = known.due.take() {
            self.due.remove(due, Arc::clone(prefix));
        }
        known.sent += 1;
        if known.sent < QUERIES {
            let pause = PAUSE << (2 * (known.sent - 1));
            // Random: subscribers that start together do not ask together again.
            let due = now.saturating_add(pause + rng.below(pause));
            known.due = Some(due);
            self.due.put(due, Arc::clone(prefix));
        }
    }

    /// Time of the next Query.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.due.deadline()
    }

    /// A prefix that is due to be queried for.
    pub(super) fn next(&self, now: Nanos) -> Option<Arc<str>> {
        self.due.due(now)
    }

    /// All prefixes.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = Arc<str>> {
        self.prefixes.keys().cloned()
    }
}

/// The beginning of all names that `pattern` matches, as a Query has it.
fn prefix(pattern: &TopicPattern) -> &str {
    let prefix = pattern.prefix();
    let end = (0..=prefix.len().min(PREFIX_MAX)).rev().find(|at| prefix.is_char_boundary(*at));
    &prefix[..end.unwrap_or(0)]
}

/// The prefixes that other processes have asked for since they were answered last, as one: the
/// longest prefix of them all.
///
/// Any host may ask as often as it likes, and an answer costs a look at each topic. So Queries are
/// collected, and answered together once per interval.
#[derive(Debug, Default)]
pub(super) struct AskedPrefix {
    prefix: Option<String>,
    answered_at: Option<Nanos>,
}

impl AskedPrefix {
    /// Shortest time between two answers.
    const INTERVAL: Nanos = SECOND / 20;

    /// Another resolver asks for `prefix`.
    pub(super) fn ask(&mut self, prefix: &str) {
        match &mut self.prefix {
            Some(asked) => asked.truncate(common(asked, prefix)),
            None => self.prefix = Some(prefix.to_owned()),
        }
    }

    /// Time of the next answer.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        let due = self.answered_at.map_or(0, |at| at.saturating_add(Self::INTERVAL));
        self.prefix.as_ref().map(|_| due)
    }

    /// The prefix to answer now, if one is due.
    pub(super) fn take(&mut self, now: Nanos) -> Option<String> {
        self.deadline().filter(|due| *due <= now)?;
        self.answered_at = Some(now);
        self.prefix.take()
    }
}

/// Length of the longest common prefix.
fn common(a: &str, b: &str) -> usize {
    let same = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b);
    same.map_or(a.len().min(b.len()), |((at, _), _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(patterns: &[&str]) -> TopicSelection {
        let patterns = patterns.iter().map(|text| TopicPattern::wildcard(text).expect("valid"));
        TopicSelection::of_patterns(patterns.collect(), 10)
    }

    #[test]
    fn a_prefix_is_queried_for_three_times_and_again_for_a_further_subscriber() {
        let (mut patterns, mut rng) = (PatternSubscriptions::new(), Rng::new(1));
        assert_eq!(patterns.add(1, &selection(&["a.*", "a.b*"])).len(), 2);
        let mut sent = 0;
        while let Some(due) = patterns.deadline() {
            let prefix = patterns.next(due).expect("due");
            patterns.on_query_sent(due.max(1), &prefix, &mut rng);
            sent += 1;
        }
        assert_eq!(sent, 2 * QUERIES);
        assert!(patterns.add(2, &selection(&["a.*c"])).is_empty(), "known to daemons");
        assert_eq!(patterns.deadline(), Some(0));
        assert!(patterns.remove(2).is_empty());
        assert_eq!(patterns.remove(1).len(), 2);
        assert_eq!((patterns.deadline(), patterns.remove(1).len()), (None, 0));
    }

    #[test]
    fn a_flood_of_queries_is_one_answer_each_interval() {
        let mut asked = AskedPrefix::default();
        asked.ask("prices.eu");
        asked.ask("prices.us");
        assert_eq!(asked.take(SECOND).as_deref(), Some("prices."));
        assert_eq!((asked.take(SECOND), asked.deadline()), (None, None));
        (0..1_000).for_each(|_| asked.ask("x"));
        assert_eq!(asked.take(SECOND + 1), None, "too early");
        assert_eq!(asked.take(SECOND + AskedPrefix::INTERVAL).as_deref(), Some("x"));
        assert_eq!([common("ab", "ab"), common("äö", "äü"), common("", "a")], [2, 2, 0]);
    }
}
