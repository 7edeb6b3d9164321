//! The topics of a subscriber: names, patterns, and the limit on what the patterns bring.
//!
//! Shared by the subscriber and the threads that find topics for it.

use crate::topic_pattern::TopicPattern;
use lanecast_base::sync::{AtomicUsize, Ordering};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Topics that a subscriber wants: some by name, others by pattern. Clones share everything.
///
/// A topic that several patterns match, or a pattern and a name, is subscribed to once.
#[derive(Clone, Debug)]
pub struct TopicSelection {
    inner: Arc<Selected>,
}

#[derive(Debug)]
struct Selected {
    names: BTreeSet<String>,
    patterns: Vec<TopicPattern>,
    topics_max: usize,
    /// Topics of sessions that are admitted by pattern.
    admitted: AtomicUsize,
    /// Topics that found no room.
    refused: AtomicUsize,
}

/// Topics of one session that a [`TopicSelection`] has admitted by pattern; they make room for
/// others when it is dropped.
#[derive(Debug)]
pub struct AdmittedTopics {
    selection: TopicSelection,
    count: usize,
}

impl TopicSelection {
    /// Most topics by pattern, counted for each publisher, unless a subscriber sets another limit.
    pub const TOPICS_MAX: usize = 65_536;

    /// The topics named.
    pub fn of_names(names: &[&str]) -> Self {
        Self::new(names, Vec::new(), 0)
    }

    /// The topics that any of `patterns` matches, at most `topics_max` of them; a topic counts once
    /// for each of its publishers.
    pub fn of_patterns(patterns: Vec<TopicPattern>, topics_max: usize) -> Self {
        Self::new(&[], patterns, topics_max)
    }

    fn new(names: &[&str], patterns: Vec<TopicPattern>, topics_max: usize) -> Self {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let (admitted, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { inner: Arc::new(Selected { names, patterns, topics_max, admitted, refused }) }
    }

    /// Whether nothing can be selected.
    pub fn is_empty(&self) -> bool {
        self.inner.names.is_empty() && self.inner.patterns.is_empty()
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.names.iter().map(String::as_str)
    }

    /// The patterns.
    pub fn patterns(&self) -> &[TopicPattern] {
        &self.inner.patterns
    }

    /// Whether `topic` is selected by its name.
    pub fn has_name(&self, topic: &str) -> bool {
        self.inner.names.contains(topic)
    }

    /// Whether `topic` is selected, by name or by a pattern.
    #[inline]
    pub fn selects(&self, topic: &str) -> bool {
        self.has_name(topic) || self.inner.patterns.iter().any(|it| it.matches(topic))
    }

    /// Whether `topic` is selected, and there is room for it.
    pub fn takes(&self, topic: &str) -> bool {
        self.has_name(topic) || self.has_room() && self.selects(topic)
    }

    /// Most topics by pattern.
    pub fn topics_max(&self) -> usize {
        self.inner.topics_max
    }

    /// Number of topics admitted by pattern.
    pub fn admitted(&self) -> usize {
        self.inner.admitted.load(Ordering::Relaxed)
    }

    /// Number of topics that a pattern matched and that found no room.
    pub fn refused(&self) -> usize {
        self.inner.refused.load(Ordering::Relaxed)
    }

    /// Counts a topic that found no room.
    pub fn refuse(&self) {
        self.inner.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there is room for another topic by pattern.
    pub fn has_room(&self) -> bool {
        self.admitted() < self.topics_max()
    }

    /// That topics were refused, in words.
    pub fn refusal(&self) -> String {
        let patterns = self.patterns().iter().map(TopicPattern::text).collect::<Vec<_>>();
        format!(
            "not every topic that {} matches is joined: at most {} are; choose a narrower pattern \
             or a higher limit",
            patterns.join(", "),
            self.topics_max(),
        )
    }

    /// An empty record of the topics that one session brings.
    pub fn admission(&self) -> AdmittedTopics {
        AdmittedTopics { selection: self.clone(), count: 0 }
    }
}

impl AdmittedTopics {
    /// The selection.
    pub const fn selection(&self) -> &TopicSelection {
        &self.selection
    }

    /// Counts another topic; false if there is no room for it. Names always have room.
    pub fn admit(&mut self, topic: &str) -> bool {
        let Selected { topics_max, admitted, refused, .. } = &*self.selection.inner;
        if self.selection.has_name(topic) {
            return true;
        }
        // Several sessions may be joined at once, each on a thread of its own.
        let has_room = admitted.fetch_add(1, Ordering::Relaxed) < *topics_max;
        if has_room {
            self.count += 1;
        } else {
            admitted.fetch_sub(1, Ordering::Relaxed);
            refused.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }
}

impl Drop for AdmittedTopics {
    fn drop(&mut self) {
        self.selection.inner.admitted.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_by_pattern_are_limited_and_make_room_again() {
        let patterns = ["a.*", "a.b*"].map(|text| TopicPattern::wildcard(text).expect("a pattern"));
        let selection = TopicSelection::of_patterns(patterns.into(), 2);
        assert!(selection.selects("a.b") && !selection.selects("b.b"));
        let mut first = selection.admission();
        let mut second = selection.admission();
        assert!(first.admit("a.b") && second.admit("a.b"));
        assert!(!first.admit("a.c") && !second.admit("a.c"));
        drop(second);
        assert!(first.admit("a.c"));
        assert_eq!((selection.admitted(), selection.refused()), (2, 2));
        assert!(selection.selects("a.d") && !selection.takes("a.d"));
        let named = TopicSelection::of_names(&["x"]);
        assert!((0..9).all(|_| named.admission().admit("x")), "names are not limited");
    }
}
