//! Subscriptions to topic patterns (regular expressions): each distinct pattern is compiled and
//! tried once for all its subscriptions.
//!
//! A transient topic tries patterns when a message is published, and only those that were added
//! since its last message; it keeps one bit per pattern. The cost of a subscription is therefore
//! independent of the number of topics, and that of a topic independent of the number of
//! subscriptions that share a pattern.

use crate::auth::permissions::{Permission, Permissions};
use crate::command::error::CommandError;
use crate::delivery::matcher::Matcher;
use crate::delivery::subscriptions::SubscriptionIds;
use crate::ids::{PatternId, SubscriptionId};
use foldhash::HashMap;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::{Filter, Pattern};
use std::sync::Arc;

use lanecast_base::budget::Reservation;

/// All clients may have this many times the patterns of one client.
const CLIENTS_FACTOR: usize = 10;

/// All patterns with subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    /// Indexed by [`PatternId`].
    groups: Vec<Option<Group>>,
    free: Vec<PatternId>,
    ids: HashMap<Key, PatternId>,
    /// Serial numbers of the patterns in ascending order, with their ids.
    serials: Vec<(u64, PatternId)>,
    /// The serial number of the newest pattern.
    last: u64,
    /// Scratch: subscriptions of one pattern that match.
    found: SubscriptionIds,
    /// Patterns tried since [`take_tried`](Self::take_tried).
    tried: usize,
}

/// Type, permissions and text: patterns of users with different permissions are distinct, since
/// they match different topics.
type Key = (MessageType, usize, Box<str>);

/// A pattern and its subscriptions.
#[derive(Debug)]
struct Group {
    kind: MessageType,
    pattern: Pattern,
    /// The subscribers' permissions, where users are configured.
    permissions: Option<Arc<Permissions>>,
    matcher: Matcher,
    serial: u64,
    /// Token of its first client's pattern count, and the reserved memory.
    _counted: (Arc<()>, Reservation),
}

/// A pattern to look up or add.
#[derive(Debug)]
pub(crate) struct PatternRequest<'a> {
    pub(crate) kind: MessageType,
    pub(crate) text: &'a str,
    pub(crate) permissions: Option<&'a Arc<Permissions>>,
}

/// The patterns that a topic's name matches.
#[derive(Clone, Debug, Default)]
pub(crate) struct MatchedPatterns {
    /// Serial number of the newest pattern that was tried.
    seen: u64,
    /// A bit for each [`PatternId`].
    pub(crate) bits: Vec<u64>,
}

impl PatternRequest<'_> {
    fn key(&self) -> Key {
        // The address serves as an identity: the group holds the Arc, so it is not reused
        // meanwhile.
        let permissions = self.permissions.map_or(0, |its| Arc::as_ptr(its).addr());
        (self.kind, permissions, self.text.into())
    }
}

impl Group {
    fn matches_topic(&self, kind: MessageType, topic: &str) -> bool {
        let allows = |its: &Arc<Permissions>| its.allows(Permission::Subscribe, topic);
        self.kind == kind
            && self.pattern.is_match(topic.as_bytes())
            && self.permissions.as_ref().is_none_or(allows)
    }
}

impl Patterns {
    /// The id of a pattern that has subscriptions.
    pub(crate) fn find(&self, request: &PatternRequest<'_>) -> Option<PatternId> {
        self.ids.get(&request.key()).copied()
    }

    /// Checks the limits before a client with `count` patterns adds one.
    pub(crate) fn check_limits(&self, count: usize, most: usize) -> Result<(), CommandError> {
        let all = most.saturating_mul(CLIENTS_FACTOR);
        // The client's own limit first: its error names what the client can change.
        if count >= most {
            return Err(CommandError::Patterns(most));
        }
        if self.ids.len() >= all { Err(CommandError::PatternsOfAll(all)) } else { Ok(()) }
    }

    /// Adds a pattern.
    pub(crate) fn insert(
        &mut self,
        request: &PatternRequest<'_>,
        pattern: Pattern,
        counted: (Arc<()>, Reservation),
    ) -> PatternId {
        self.last += 1;
        let group = Group {
            kind: request.kind,
            pattern,
            permissions: request.permissions.cloned(),
            matcher: Matcher::new(request.kind),
            serial: self.last,
            _counted: counted,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.groups[id.index()] = Some(group);
                id
            }
            None => {
                self.groups.push(Some(group));
                PatternId::from_index(self.groups.len() - 1)
            }
        };
        self.ids.insert(request.key(), id);
        self.serials.push((self.last, id));
        id
    }

    /// The compiled pattern.
    pub(crate) fn get(&self, id: PatternId) -> Option<&Pattern> {
        Some(&self.groups.get(id.index())?.as_ref()?.pattern)
    }

    pub(crate) fn subscribe(
        &mut self,
        id: PatternId,
        subscription: SubscriptionId,
        filter: Option<&Filter>,
    ) -> Result<(), CommandError> {
        let Some(Some(group)) = self.groups.get_mut(id.index()) else { return Ok(()) };
        Ok(group.matcher.subscribe(subscription, filter)?)
    }

    pub(crate) fn unsubscribe(&mut self, id: PatternId, subscription: SubscriptionId) {
        if let Some(Some(group)) = self.groups.get_mut(id.index()) {
            group.matcher.unsubscribe(subscription);
            self.remove_unused(id);
        }
    }

    /// Removes a pattern without subscriptions.
    pub(crate) fn remove_unused(&mut self, id: PatternId) {
        // Other clients may still subscribe to the same pattern.
        let Some(group) = self.groups[id.index()].take_if(|group| group.matcher.is_empty()) else {
            return;
        };
        let Group { kind, pattern, permissions, serial, .. } = group;
        let permissions = permissions.as_ref();
        let request = PatternRequest { kind, text: pattern.text(), permissions };
        self.ids.remove(&request.key());
        // Serials are pushed in ascending order, so the list is sorted.
        if let Ok(at) = self.serials.binary_search_by_key(&serial, |(serial, _)| *serial) {
            self.serials.remove(at);
        }
        self.free.push(id);
    }

    /// Appends the subscriptions of matching patterns whose filters match a topic's message.
    ///
    /// # Errors
    /// If the message cannot be parsed up to a field that a filter needs.
    #[inline]
    pub(crate) fn matches(
        &mut self,
        matched: &mut MatchedPatterns,
        kind: MessageType,
        bytes: &[u8],
        environment: &Environment<'_>,
        ids: &mut SubscriptionIds,
    ) -> Result<(), Malformed> {
        // One comparison per message; patterns are added rarely.
        if matched.seen != self.last {
            self.try_new(matched, kind, environment.topic);
        }
        for (at, word) in matched.bits.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                let index = at * 64 + word.trailing_zeros() as usize;
                // Clears the lowest set bit.
                word &= word - 1;
                // A removed pattern leaves its bit set until the id is reused.
                let Some(Some(group)) = self.groups.get_mut(index) else { continue };
                group.matcher.matches(bytes, environment, &mut self.found)?;
                ids.append(&mut self.found);
            }
        }
        Ok(())
    }

    /// Patterns tried since the last call: their cost is charged to the publisher.
    #[inline]
    pub(crate) fn take_tried(&mut self) -> usize {
        std::mem::take(&mut self.tried)
    }

    /// Tries the patterns that were added since the topic's last message.
    #[cold]
    fn try_new(&mut self, matched: &mut MatchedPatterns, kind: MessageType, topic: &str) {
        let old = self.serials.partition_point(|(serial, _)| *serial <= matched.seen);
        // The publisher whose message caused the work pays for it.
        self.tried += self.serials.len() - old;
        for (_, id) in &self.serials[old..] {
            let group = self.groups.get(id.index()).and_then(Option::as_ref);
            let is_match = group.is_some_and(|group| group.matches_topic(kind, topic));
            // Misses are recorded, too: an id may be reused.
            matched.set(*id, is_match);
        }
        matched.seen = self.last;
    }
}

impl MatchedPatterns {
    fn set(&mut self, id: PatternId, is_match: bool) {
        let (at, bit) = (id.index() / 64, 1 << (id.index() % 64));
        // A topic that matches no pattern keeps an empty list.
        if is_match && self.bits.len() <= at {
            self.bits.resize(at + 1, 0);
        }
        if let Some(word) = self.bits.get_mut(at) {
            if is_match {
                *word |= bit;
            } else {
                // The pattern that had this id before may have matched.
                *word &= !bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_base::budget::Budget;

    fn request(text: &str) -> PatternRequest<'_> {
        PatternRequest { kind: MessageType::Json, text, permissions: None }
    }

    fn insert(patterns: &mut Patterns, text: &str, number: u32) -> PatternId {
        let pattern = Pattern::new(text, 1 << 20).expect("a pattern");
        let share = Budget::new(usize::MAX).reservation();
        let id = patterns.find(&request(text));
        let id =
            id.unwrap_or_else(|| patterns.insert(&request(text), pattern, (Arc::new(()), share)));
        patterns.subscribe(id, SubscriptionId(number), None).expect("no filter");
        id
    }

    fn found(patterns: &mut Patterns, matched: &mut MatchedPatterns, topic: &str) -> Vec<u32> {
        let environment = Environment { topic, client: "", unix_ns: 0 };
        let mut ids = SubscriptionIds::default();
        patterns
            .matches(matched, MessageType::Json, b"{}", &environment, &mut ids)
            .expect("nothing is read");
        let mut numbers: Vec<u32> = ids.iter().map(|id| id.0).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn a_topic_tries_only_the_patterns_that_are_new() {
        let (mut patterns, mut matched) = (Patterns::default(), MatchedPatterns::default());
        let first = insert(&mut patterns, "^a", 1);
        assert_eq!(found(&mut patterns, &mut matched, "ab"), [1]);
        assert_eq!(insert(&mut patterns, "^a", 2), first, "the same pattern is there once");
        assert_eq!((found(&mut patterns, &mut matched, "ab"), matched.seen), (vec![1, 2], 1));
        insert(&mut patterns, "b$", 3);
        insert(&mut patterns, "c$", 4);
        assert_eq!((found(&mut patterns, &mut matched, "ab"), matched.seen), (vec![1, 2, 3], 3));
        patterns.unsubscribe(first, SubscriptionId(1));
        assert_eq!(found(&mut patterns, &mut matched, "ab"), [2, 3]);
        patterns.unsubscribe(first, SubscriptionId(2));
        assert_eq!(patterns.find(&request("^a")), None);
        // Its id is reused by a pattern that the topic's name does not match.
        assert_eq!(insert(&mut patterns, "^z", 5), first);
        assert_eq!(found(&mut patterns, &mut matched, "ab"), [3]);
        let mut other = MatchedPatterns::default();
        assert_eq!(found(&mut patterns, &mut other, "zc"), [4, 5]);
    }

    #[test]
    fn a_topic_stores_one_bit_per_pattern() {
        let (mut patterns, mut matched) = (Patterns::default(), MatchedPatterns::default());
        for number in 0..300 {
            insert(&mut patterns, &format!("^a.{{{number},}}"), number);
        }
        assert_eq!(found(&mut patterns, &mut matched, &"a".repeat(400)).len(), 300);
        assert_eq!(matched.bits.len(), 300usize.div_ceil(64));
        assert!(
            patterns.check_limits(999, 1_000).is_ok()
                && patterns.check_limits(1_000, 1_000).is_err()
        );
        assert!(patterns.check_limits(0, 30).is_err(), "the limit of all clients is reached");
    }
}
