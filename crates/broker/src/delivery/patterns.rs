//! Subscriptions to patterns of topics: each different pattern is there once.
//!
//! A topic of which nothing is kept finds out which patterns its name holds when a message comes
//! to it, and then tries only those that are new since its last one. So a subscription costs the
//! same however many topics there are, and a topic the same however many subscriptions share a
//! pattern: of each topic a bit is kept for a pattern.

use crate::auth::permissions::{Permission, Permissions};
use crate::command::error::CommandError;
use foldhash::HashMap;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::{Filter, Pattern};
use std::sync::Arc;

use crate::delivery::matcher::Matcher;
use lanecast_base::budget::Reservation;

/// So many times what a client may bring is the most that all may.
const CLIENTS_WORTH: usize = 10;

/// All patterns that are subscribed to.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    /// By their places.
    groups: Vec<Option<Group>>,
    free: Vec<u32>,
    places: HashMap<Key, u32>,
    /// When patterns came, in their order, and their places.
    arrivals: Vec<(u64, u32)>,
    /// The arrival of the last one.
    last: u64,
    /// Subscriptions of the group at hand.
    found: Vec<u32>,
    /// Names that were tried since that was asked last.
    tried: usize,
}

/// What makes a pattern the same as another: what its subscribers may see counts too.
type Key = (MessageType, usize, Box<str>);

/// A pattern, and who subscribes to it.
#[derive(Debug)]
struct Group {
    kind: MessageType,
    pattern: Pattern,
    /// Where users are known: what these may do.
    rights: Option<Arc<Permissions>>,
    matcher: Matcher,
    arrival: u64,
    /// By these its client's patterns, and their memory, are counted.
    _counted: (Arc<()>, Reservation),
}

/// A pattern that is to be subscribed to.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) kind: MessageType,
    pub(crate) text: &'a str,
    pub(crate) rights: Option<&'a Arc<Permissions>>,
}

/// Which patterns a topic's name holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joined {
    /// The arrival of the last pattern that was tried.
    seen: u64,
    /// A bit for each place.
    pub(crate) places: Vec<u64>,
}

impl Wanted<'_> {
    fn key(&self) -> Key {
        let rights = self.rights.map_or(0, |rights| Arc::as_ptr(rights).addr());
        (self.kind, rights, self.text.into())
    }
}

impl Group {
    fn holds(&self, kind: MessageType, topic: &str) -> bool {
        let may = |rights: &Arc<Permissions>| rights.has(Permission::Subscribe, topic);
        self.kind == kind
            && self.pattern.is_match(topic.as_bytes())
            && self.rights.as_ref().is_none_or(may)
    }
}

impl Patterns {
    /// The place of a pattern that is there already.
    pub(crate) fn find(&self, wanted: &Wanted<'_>) -> Option<u32> {
        self.places.get(&wanted.key()).copied()
    }

    /// Whether a client that has brought so many may bring another one.
    pub(crate) fn check(&self, brought: usize, most: usize) -> Result<(), CommandError> {
        let all = most.saturating_mul(CLIENTS_WORTH);
        if brought >= most {
            return Err(CommandError::Patterns(most));
        }
        if self.places.len() >= all { Err(CommandError::PatternsOfAll(all)) } else { Ok(()) }
    }

    /// Adds a pattern; its place.
    pub(crate) fn insert(
        &mut self,
        wanted: &Wanted<'_>,
        pattern: Pattern,
        counted: (Arc<()>, Reservation),
    ) -> u32 {
        self.last += 1;
        let group = Group {
            kind: wanted.kind,
            pattern,
            rights: wanted.rights.cloned(),
            matcher: Matcher::new(wanted.kind),
            arrival: self.last,
            _counted: counted,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.groups[place as usize] = Some(group);
                place
            }
            None => {
                self.groups.push(Some(group));
                self.groups.len() as u32 - 1
            }
        };
        self.places.insert(wanted.key(), place);
        self.arrivals.push((self.last, place));
        place
    }

    /// The pattern at `place`.
    pub(crate) fn pattern(&self, place: u32) -> Option<&Pattern> {
        Some(&self.groups.get(place as usize)?.as_ref()?.pattern)
    }

    pub(crate) fn subscribe(
        &mut self,
        place: u32,
        number: u32,
        filter: Option<&Filter>,
    ) -> Result<(), CommandError> {
        let Some(Some(group)) = self.groups.get_mut(place as usize) else { return Ok(()) };
        Ok(group.matcher.subscribe(number, filter)?)
    }

    pub(crate) fn unsubscribe(&mut self, place: u32, number: u32) {
        if let Some(Some(group)) = self.groups.get_mut(place as usize) {
            group.matcher.unsubscribe(number);
            self.tidy(place);
        }
    }

    /// Drops the pattern at `place` if it has no subscription.
    pub(crate) fn tidy(&mut self, place: u32) {
        let Some(group) = self.groups[place as usize].take_if(|group| group.matcher.is_empty())
        else {
            return;
        };
        let Group { kind, pattern, rights, arrival, .. } = group;
        let wanted = Wanted { kind, text: pattern.text(), rights: rights.as_ref() };
        self.places.remove(&wanted.key());
        if let Ok(at) = self.arrivals.binary_search_by_key(&arrival, |(arrival, _)| *arrival) {
            self.arrivals.remove(at);
        }
        self.free.push(place);
    }

    /// Adds the subscriptions that a message of a topic is for, by their patterns.
    ///
    /// # Errors
    /// If a filter asks for a field, and the message cannot be read as far as that.
    #[inline]
    pub(crate) fn matches(
        &mut self,
        joined: &mut Joined,
        kind: MessageType,
        bytes: &[u8],
        environment: &Environment<'_>,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Malformed> {
        if joined.seen != self.last {
            self.join(joined, kind, environment.topic);
        }
        for (at, word) in joined.places.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                let place = at * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                let Some(Some(group)) = self.groups.get_mut(place) else { continue };
                group.matcher.matches(bytes, environment, &mut self.found)?;
                numbers.append(&mut self.found);
            }
        }
        Ok(())
    }

    /// How many names were tried since this was asked last.
    #[inline]
    pub(crate) fn take_tried(&mut self) -> usize {
        std::mem::take(&mut self.tried)
    }

    /// Tries the patterns that came since the topic's last message.
    #[cold]
    fn join(&mut self, joined: &mut Joined, kind: MessageType, topic: &str) {
        let old = self.arrivals.partition_point(|(arrival, _)| *arrival <= joined.seen);
        self.tried += self.arrivals.len() - old;
        for (_, place) in &self.arrivals[old..] {
            let group = self.groups.get(*place as usize).and_then(Option::as_ref);
            let holds = group.is_some_and(|group| group.holds(kind, topic));
            joined.set(*place, holds);
        }
        joined.seen = self.last;
    }
}

impl Joined {
    fn set(&mut self, place: u32, holds: bool) {
        let (at, bit) = (place as usize / 64, 1 << (place % 64));
        if holds && self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        if let Some(word) = self.places.get_mut(at) {
            if holds {
                *word |= bit;
            } else {
                // What stood at this place before may have held.
                *word &= !bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_base::budget::Budget;

    fn wanted(text: &str) -> Wanted<'_> {
        Wanted { kind: MessageType::Json, text, rights: None }
    }

    fn insert(patterns: &mut Patterns, text: &str, number: u32) -> u32 {
        let pattern = Pattern::new(text, 1 << 20).expect("a pattern");
        let share = Budget::new(usize::MAX).reservation();
        let place = patterns.find(&wanted(text));
        let place =
            place.unwrap_or_else(|| patterns.insert(&wanted(text), pattern, (Arc::new(()), share)));
        patterns.subscribe(place, number, None).expect("no filter");
        place
    }

    fn found(patterns: &mut Patterns, joined: &mut Joined, topic: &str) -> Vec<u32> {
        let environment = Environment { topic, client: "", unix_ns: 0 };
        let mut numbers = Vec::new();
        patterns
            .matches(joined, MessageType::Json, b"{}", &environment, &mut numbers)
            .expect("nothing is read");
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn a_topic_tries_only_the_patterns_that_are_new() {
        let (mut patterns, mut joined) = (Patterns::default(), Joined::default());
        let first = insert(&mut patterns, "^a", 1);
        assert_eq!(found(&mut patterns, &mut joined, "ab"), [1]);
        assert_eq!(insert(&mut patterns, "^a", 2), first, "the same pattern is there once");
        assert_eq!((found(&mut patterns, &mut joined, "ab"), joined.seen), (vec![1, 2], 1));
        insert(&mut patterns, "b$", 3);
        insert(&mut patterns, "c$", 4);
        assert_eq!((found(&mut patterns, &mut joined, "ab"), joined.seen), (vec![1, 2, 3], 3));
        patterns.unsubscribe(first, 1);
        assert_eq!(found(&mut patterns, &mut joined, "ab"), [2, 3]);
        patterns.unsubscribe(first, 2);
        assert_eq!(patterns.find(&wanted("^a")), None);
        // Its place is given again to one that the topic's name does not hold.
        assert_eq!(insert(&mut patterns, "^z", 5), first);
        assert_eq!(found(&mut patterns, &mut joined, "ab"), [3]);
        let mut other = Joined::default();
        assert_eq!(found(&mut patterns, &mut other, "zc"), [4, 5]);
    }

    #[test]
    fn what_a_topic_keeps_of_patterns_is_a_bit_for_each() {
        let (mut patterns, mut joined) = (Patterns::default(), Joined::default());
        for number in 0..300 {
            insert(&mut patterns, &format!("^a.{{{number},}}"), number);
        }
        assert_eq!(found(&mut patterns, &mut joined, &"a".repeat(400)).len(), 300);
        assert_eq!(joined.places.len(), 300usize.div_ceil(64));
        assert!(patterns.check(999, 1_000).is_ok() && patterns.check(1_000, 1_000).is_err());
        assert!(patterns.check(0, 30).is_err(), "all have brought as many as may be");
    }
}
