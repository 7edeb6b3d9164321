//! Names of stores, and the topics on which they are asked and answer.

use lanecast_wire::store::STORE_NAME_MAX;

/// Beginning of the stores' topics.
const PREFIX: &str = "_store.";
/// The longest topic whose messages are kept, in bytes: it stands in each frame.
const TOPIC_MAX: usize = u8::MAX as usize;

/// A name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name of a store.
    #[error(
        "store name {0:?}: use 1 to {STORE_NAME_MAX} ASCII letters, digits and - _, without dots"
    )]
    Store(String),
    /// A topic whose messages cannot be kept.
    #[error("topic {0:?}: 1 to {TOPIC_MAX} bytes, and none that begins with {PREFIX:?}")]
    Topic(String),
}

/// Checks the name of a store.
pub(crate) fn check_store(name: &str) -> Result<(), NameError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let fits = (1..=STORE_NAME_MAX).contains(&name.len()) && name.chars().all(is_allowed);
    if fits { Ok(()) } else { Err(NameError::Store(name.to_owned())) }
}

/// Checks a topic whose messages are to be kept.
pub(crate) fn check_topic(topic: &str) -> Result<(), NameError> {
    let fits = (1..=TOPIC_MAX).contains(&topic.len()) && !topic.starts_with(PREFIX);
    if fits { Ok(()) } else { Err(NameError::Topic(topic.to_owned())) }
}

/// The topic of requests to a store.
pub(crate) fn requests(store: &str) -> String {
    format!("{PREFIX}{store}")
}

/// The topic of a store's replies to a client.
pub(crate) fn replies(store: &str, client: u64) -> String {
    format!("{PREFIX}{store}.{client:016x}")
}

/// The store that replies on `topic`; `None` for other topics.
pub(crate) fn replying_store(topic: &str) -> Option<&str> {
    Some(topic.strip_prefix(PREFIX)?.rsplit_once('.')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_told_apart_are_refused() {
        for name in ["a", "store-1", "EU_west"] {
            assert_eq!(check_store(name), Ok(()));
            assert_eq!(replying_store(&replies(name, 7)), Some(name));
            assert_eq!(replying_store(&requests(name)), None);
        }
        for name in ["", "a.b", "ä", "a b", "a/b", &"x".repeat(STORE_NAME_MAX + 1)] {
            assert_eq!(check_store(name), Err(NameError::Store(name.to_owned())));
        }
        assert_eq!(check_topic("orders"), Ok(()));
        for topic in ["", "_store.a", &"x".repeat(TOPIC_MAX + 1)] {
            assert!(check_topic(topic).is_err(), "{topic:?}");
        }
    }
}
