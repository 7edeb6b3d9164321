//! Names of a store's streams: a topic, and a publisher's id.

use std::collections::BTreeMap;

/// Indexes of streams by their names.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamNames(BTreeMap<(String, u64), usize>);

impl StreamNames {
    pub(super) fn add(&mut self, topic: &str, source: u64, index: usize) {
        self.0.insert((topic.to_owned(), source), index);
    }

    /// The index of a stream, if it is known.
    pub(super) fn index(&self, topic: &str, source: u64) -> Option<usize> {
        self.0.get(&(topic.to_owned(), source)).copied()
    }

    /// Indexes of the streams of a topic.
    pub(super) fn of_topic(&self, topic: &str) -> impl Iterator<Item = usize> {
        let name = |source| (topic.to_owned(), source);
        self.0.range(name(0)..=name(u64::MAX)).map(|(_, index)| *index)
    }
}
