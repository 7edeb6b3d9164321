//! The permissions of a user: topics for each kind of access, and a filter of messages.

use crate::names::is_pattern;
use lanecast_filter::{Filter, FilterLimits, Pattern};

/// The most bytes of a compiled pattern for topics.
const PATTERN_BYTES: usize = 256 << 10;

/// A kind of access to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Publish,
    Subscribe,
    Query,
    Delete,
}

impl Permission {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
            Self::Query => "query",
            Self::Delete => "delete",
        }
    }
}

/// The topics that a user may access, and the messages that it may see.
#[derive(Debug, Default)]
pub(crate) struct Permissions {
    pub(crate) publish: Vec<TopicPattern>,
    pub(crate) subscribe: Vec<TopicPattern>,
    pub(crate) query: Vec<TopicPattern>,
    pub(crate) delete: Vec<TopicPattern>,
    /// Subscriptions, queries and deletions are restricted to messages that match.
    pub(crate) filter: Option<String>,
}

/// One topic, or all topics whose whole name matches a regular expression.
#[derive(Debug)]
pub(crate) enum TopicPattern {
    Exact(String),
    Regex(Pattern),
}

impl Permissions {
    /// Whether the user has a permission for a topic.
    pub(crate) fn allows(&self, permission: Permission, topic: &str) -> bool {
        let topics = match permission {
            Permission::Publish => &self.publish,
            Permission::Subscribe => &self.subscribe,
            Permission::Query => &self.query,
            Permission::Delete => &self.delete,
        };
        topics.iter().any(|pattern| pattern.matches(topic))
    }

    /// A filter that matches what both `text` and the permissions match.
    pub(crate) fn restrict(&self, text: Option<&str>) -> Option<String> {
        match (&self.filter, text) {
            (None, text) => text.map(str::to_owned),
            (Some(own), None) => Some(own.clone()),
            // Parentheses keep an OR in the client's filter from escaping the restriction.
            (Some(own), Some(text)) => Some(format!("({own}) AND ({text})")),
        }
    }
}

impl TopicPattern {
    /// Parses a topic or pattern of the users file: a pattern if it has a special character.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if !is_pattern(text) {
            return Ok(Self::Exact(text.to_owned()));
        }
        // Anchored: permission for `orders.*` must not include `reorders`.
        let whole = format!("^(?:{text})$");
        Pattern::new(&whole, PATTERN_BYTES).map(Self::Regex)
    }

    fn matches(&self, topic: &str) -> bool {
        match self {
            Self::Exact(name) => name == topic,
            Self::Regex(pattern) => pattern.is_match(topic.as_bytes()),
        }
    }
}

/// Checks the syntax of a filter.
pub(crate) fn check_filter(text: &str) -> Result<(), String> {
    Filter::parse_with(text, &FilterLimits::default()).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_those_of_the_name_or_of_the_whole_pattern() {
        let parse = |text| TopicPattern::parse(text).expect("topics");
        assert!(parse("orders.eu").matches("orders.eu"));
        assert!(!parse("orders.eu").matches("orders-eu"), "a dot alone is a dot");
        let some = parse("orders.*|fills");
        assert!(some.matches("orders") && some.matches("orders.eu") && some.matches("fills"));
        assert!(!some.matches("reorders") && !some.matches("fills.eu") && !some.matches(""));
        assert!(TopicPattern::parse("orders(").is_err());
    }

    #[test]
    fn permissions_deny_by_default() {
        let subscribe = vec![TopicPattern::parse("a.*").expect("topics")];
        let rights = Permissions { subscribe, ..Permissions::default() };
        assert!(rights.allows(Permission::Subscribe, "ab"));
        assert!(!rights.allows(Permission::Subscribe, "b"));
        assert!(
            !rights.allows(Permission::Publish, "ab") && !rights.allows(Permission::Query, "ab")
        );
        assert!(!rights.allows(Permission::Delete, "ab"));
    }

    #[test]
    fn filters_are_narrowed_whatever_is_in_them() {
        let filter = Some("/a = 1 OR /b = 2".to_owned());
        let rights = Permissions { filter, ..Permissions::default() };
        let both = rights.restrict(Some("/c = 3 OR /d = 4")).expect("a filter");
        assert_eq!(both, "(/a = 1 OR /b = 2) AND (/c = 3 OR /d = 4)");
        check_filter(&both).expect("a filter");
        assert_eq!(rights.restrict(None).as_deref(), Some("/a = 1 OR /b = 2"));
        assert_eq!(Permissions::default().restrict(None), None);
    }
}
