//! Names of topics by session and number, as Welcome frames told them.

use lanecast_wire::net::NAME_MAX;
use std::collections::{BTreeMap, HashMap};

/// Most topics whose names are remembered, and most bytes of all names: a name has up to 255, and
/// any host on the wire may tell of some.
const TOPICS_MAX: usize = 65_536;
const BYTES_MAX: usize = 4 << 20;

/// Session and number of a topic.
type Topic = (u64, u32);

/// Names that were seen; of too many those go that were not used for the longest.
#[derive(Debug, Default)]
pub(super) struct TopicNames {
    names: HashMap<Topic, Entry>,
    /// Topics in the order of their last use.
    uses: BTreeMap<u64, Topic>,
    last: u64,
    /// Bytes of all names.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    name: Box<str>,
    used: u64,
}

impl TopicNames {
    /// Remembers a name. Names that are too long are none: a program would refuse them.
    pub(super) fn add(&mut self, topic: Topic, name: &str) {
        if name.len() > NAME_MAX {
            return;
        }
        self.remove(topic);
        self.last += 1;
        self.bytes += name.len();
        self.uses.insert(self.last, topic);
        self.names.insert(topic, Entry { name: name.into(), used: self.last });
        while self.names.len() > TOPICS_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.uses.first_key_value() else { return };
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, topic: Topic) {
        if let Some(entry) = self.names.remove(&topic) {
            self.bytes -= entry.name.len();
            self.uses.remove(&entry.used);
        }
    }

    /// The name of a topic that a frame mentions.
    pub(super) fn find(&mut self, topic: Topic) -> Option<&str> {
        let entry = self.names.get_mut(&topic)?;
        self.last += 1;
        self.uses.remove(&entry.used);
        self.uses.insert(self.last, topic);
        entry.used = self.last;
        Some(&entry.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_topics_those_that_are_used_stay() {
        let mut names = TopicNames::default();
        names.add((1, 1), "prices");
        names.add((1, 2), "unused");
        for number in 0..2 * TOPICS_MAX as u32 {
            names.add((2, number), "forged");
            assert_eq!(names.find((1, 1)), Some("prices"));
        }
        assert_eq!(names.find((1, 2)), None, "not used for the longest");
        assert_eq!((names.names.len(), names.uses.len()), (TOPICS_MAX, TOPICS_MAX));
        assert_eq!(names.bytes, 6 * TOPICS_MAX);
        names.add((1, 1), "fx");
        assert_eq!(names.find((1, 1)), Some("fx"));
        assert_eq!((names.names.len(), names.bytes), (TOPICS_MAX, 6 * TOPICS_MAX - 4));
    }

    #[test]
    fn long_names_take_bounded_memory() {
        let (mut names, long) = (TopicNames::default(), "x".repeat(NAME_MAX));
        for number in 0..TOPICS_MAX as u32 {
            names.add((1, number), &long);
            names.add((1, number + 1), &format!("{long}x"));
        }
        assert_eq!(names.names.len(), BYTES_MAX / NAME_MAX);
        assert!(names.bytes <= BYTES_MAX && names.uses.len() == names.names.len());
        assert!(names.find((1, TOPICS_MAX as u32 - 1)).is_some(), "the latest");
    }
}
