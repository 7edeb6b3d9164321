//! The topics of a subscriber: names, patterns, and the limit on what the patterns bring.
//!
//! Shared by the subscriber and the threads that find topics for it.

use crate::topic_pattern::TopicPattern;
use lanecast_base::sync::{AtomicUsize, Mutex, Ordering, fence};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, Weak};

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
    /// Told of room.
    listeners: Mutex<Vec<Weak<dyn RoomListener>>>,
}

/// Learns of room in a [`TopicSelection`], on the threads that make some.
pub trait RoomListener: fmt::Debug + Send + Sync {
    /// Admitted topics have made room for others. Must not block, nor drop topics that are
    /// admitted.
    fn on_room(&self);
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
        let listeners = Mutex::default();
        let selected = Selected { names, patterns, topics_max, admitted, refused, listeners };
        Self { inner: Arc::new(selected) }
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

    /// Has `listener` told of room from now on, as long as it lives. It may be told once too often;
    /// it is told if its note that it waits comes before a [fence](Self::fence_before_look), and a
    /// look at [`has_room`](Self::has_room) after that finds none.
    pub fn tell_of_room(&self, listener: Weak<dyn RoomListener>) {
        let mut listeners = self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|it| it.strong_count() > 0);
        listeners.push(listener);
    }

    /// Orders a listener's note that it waits before its look for room.
    pub fn fence_before_look(&self) {
        // PAIRS(room): the note, fence, `admitted` here; `admitted`, fence, the note in the drop of
        // `AdmittedTopics`.
        fence(Ordering::SeqCst);
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
        // Several sessions may be joined at once, each on a thread of its own. Never one too many:
        // a look at the same time would take it for admitted, and miss room.
        let add = |count| (count < *topics_max).then_some(count + 1);
        let has_room = admitted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if has_room {
            self.count += 1;
        } else {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }
}

impl Drop for AdmittedTopics {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let selected = &*self.selection.inner;
        selected.admitted.fetch_sub(self.count, Ordering::Relaxed);
        // PAIRS(room): `admitted`, fence, the note of a listener here; the note, fence, `admitted`
        // in `TopicSelection::fence_before_look`. A refusal is counted before it is noted.
        fence(Ordering::SeqCst);
        if selected.refused.load(Ordering::Relaxed) > 0 {
            let listeners = selected.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.iter().filter_map(Weak::upgrade).for_each(|listener| listener.on_room());
        }
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

    #[derive(Debug, Default)]
    struct Told(AtomicUsize);

    impl RoomListener for Told {
        fn on_room(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn listeners_are_told_of_room_after_a_refusal() {
        let pattern = TopicPattern::wildcard("a.*").expect("a pattern");
        let selection = TopicSelection::of_patterns(vec![pattern], 1);
        let listeners = [Arc::new(Told::default()), Arc::new(Told::default())];
        for listener in &listeners {
            let weak: Weak<Told> = Arc::downgrade(listener);
            selection.tell_of_room(weak);
        }
        let [first, second] = listeners;
        let admit = |topic| {
            let mut admitted = selection.admission();
            let is_admitted = admitted.admit(topic);
            (admitted, is_admitted)
        };
        let (admitted, is_admitted) = admit("a.1");
        drop(admitted);
        assert_eq!((is_admitted, first.0.load(Ordering::Relaxed)), (true, 0), "none was refused");
        let (admitted, _) = admit("a.1");
        let (refused, is_admitted) = admit("a.2");
        drop(refused);
        assert_eq!((is_admitted, first.0.load(Ordering::Relaxed)), (false, 0), "no room was made");
        drop(second);
        drop(admitted);
        assert_eq!(first.0.load(Ordering::Relaxed), 1);
    }
}
