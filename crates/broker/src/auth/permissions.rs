//! What a user may do.

use crate::topic::entry::is_pattern;
use lanecast_filter::{Filter, FilterLimits, Pattern};

/// What a pattern for topics may take when compiled, in bytes.
const PATTERN_BYTES: usize = 256 << 10;

/// Something that may be done with a topic.
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

/// Which topics may be published to, and so on, and which messages may be seen.
#[derive(Debug, Default)]
pub(crate) struct Permissions {
    pub(crate) publish: Vec<Topics>,
    pub(crate) subscribe: Vec<Topics>,
    pub(crate) query: Vec<Topics>,
    pub(crate) delete: Vec<Topics>,
    /// Only what this lets through is subscribed to, asked for and deleted.
    pub(crate) filter: Option<String>,
}

/// Topics of a name, or of all names that a regular expression describes as a whole.
#[derive(Debug)]
pub(crate) enum Topics {
    Named(String),
    Like(Pattern),
}

impl Permissions {
    /// Whether that may be done with the topic.
    pub(crate) fn has(&self, act: Permission, topic: &str) -> bool {
        let topics = match act {
            Permission::Publish => &self.publish,
            Permission::Subscribe => &self.subscribe,
            Permission::Query => &self.query,
            Permission::Delete => &self.delete,
        };
        topics.iter().any(|topics| topics.has(topic))
    }

    /// A filter that lets through what `text` does and may be seen.
    pub(crate) fn narrow(&self, text: Option<&str>) -> Option<String> {
        match (&self.filter, text) {
            (None, text) => text.map(str::to_owned),
            (Some(own), None) => Some(own.clone()),
            (Some(own), Some(text)) => Some(format!("({own}) AND ({text})")),
        }
    }
}

impl Topics {
    /// The topic of that name; several if it has a character that names of several have.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if !is_pattern(text) {
            return Ok(Self::Named(text.to_owned()));
        }
        // As a whole: who may see `orders.*` is not to see `reorders`.
        let whole = format!("^(?:{text})$");
        Pattern::new(&whole, PATTERN_BYTES).map(Self::Like)
    }

    fn has(&self, topic: &str) -> bool {
        match self {
            Self::Named(name) => name == topic,
            Self::Like(pattern) => pattern.is_match(topic.as_bytes()),
        }
    }
}

/// Whether a text is a filter.
pub(crate) fn check_filter(text: &str) -> Result<(), String> {
    Filter::parse_with(text, &FilterLimits::default()).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_those_of_the_name_or_of_the_whole_pattern() {
        let parse = |text| Topics::parse(text).expect("topics");
        assert!(parse("orders.eu").has("orders.eu"));
        assert!(!parse("orders.eu").has("orders-eu"), "a dot alone is a dot");
        let some = parse("orders.*|fills");
        assert!(some.has("orders") && some.has("orders.eu") && some.has("fills"));
        assert!(!some.has("reorders") && !some.has("fills.eu") && !some.has(""));
        assert!(Topics::parse("orders(").is_err());
    }

    #[test]
    fn what_is_not_allowed_is_not() {
        let subscribe = vec![Topics::parse("a.*").expect("topics")];
        let rights = Permissions { subscribe, ..Permissions::default() };
        assert!(rights.has(Permission::Subscribe, "ab"));
        assert!(!rights.has(Permission::Subscribe, "b"));
        assert!(!rights.has(Permission::Publish, "ab") && !rights.has(Permission::Query, "ab"));
        assert!(!rights.has(Permission::Delete, "ab"));
    }

    #[test]
    fn filters_are_narrowed_whatever_is_in_them() {
        let filter = Some("/a = 1 OR /b = 2".to_owned());
        let rights = Permissions { filter, ..Permissions::default() };
        let both = rights.narrow(Some("/c = 3 OR /d = 4")).expect("a filter");
        assert_eq!(both, "(/a = 1 OR /b = 2) AND (/c = 3 OR /d = 4)");
        check_filter(&both).expect("a filter");
        assert_eq!(rights.narrow(None).as_deref(), Some("/a = 1 OR /b = 2"));
        assert_eq!(Permissions::default().narrow(None), None);
    }
}
