//! Topics by pattern: the way from a context to subscribers of topics that may not exist yet.

use crate::error::Error;
use crate::exact_topics::ExactTopics;
use crate::subscriber::Subscriber;
use crate::topic::FilteredSubscriber;
use lanecast_content::ContentSettings;
use lanecast_filter::Pattern;
use lanecast_filter::message_type::Format;
use lanecast_transport::{TopicPattern, TopicSelection, Transport};

/// Memory of one regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// Characters with a meaning in regular expressions.
const SPECIAL: &[char] = &['*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$', '\\', '.'];

/// The topics that patterns match, made by [`Context::pattern`](crate::Context::pattern) and
/// [`Context::regex`](crate::Context::regex): opens one subscriber for all of them.
///
/// A call of its own, because a pattern is never mistaken for a name: a topic may be called
/// `prices.*`, and [`Context::subscriber`](crate::Context::subscriber) subscribes to it.
///
/// New topics that match join by themselves, and ended ones leave; each has a `Joined` and a `Left`
/// event, and every event names its topic. A topic that several of the patterns match is subscribed
/// to once. The topics of lanecast itself never match: those whose names begin with `_` or contain
/// `?`.
///
/// ```
/// use lanecast::prelude::*;
/// # let context = Context::builder().set("shm.visibility", "process")?.build()?;
/// let mut feed = context.pattern("prices.*").or("orders.**").subscriber()?;
/// let mut prices = context.publisher("prices.eu")?;
/// prices.send(b"1.234")?;
///
/// let mut received = Vec::new();
/// while received.is_empty() {
///     let work = feed.poll(64, |event| {
///         if let Event::Message(message) = event {
///             received.push(message.stream().topic.clone());
///         }
///     });
///     feed.wait(work);
/// }
/// assert_eq!(received, ["prices.eu"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct MatchingTopics<'a> {
    transports: &'a ExactTopics,
    settings: ContentSettings,
    patterns: Result<Vec<TopicPattern>, String>,
    topics_max: usize,
}

impl<'a> MatchingTopics<'a> {
    pub(crate) const fn new(transports: &'a ExactTopics, settings: ContentSettings) -> Self {
        let topics_max = TopicSelection::TOPICS_MAX;
        Self { transports, settings, patterns: Ok(Vec::new()), topics_max }
    }

    /// Also the topics that the wildcard pattern `text` matches: `*` stands for any characters but
    /// `.` and `/`, and `**` for any.
    pub fn or(self, text: &str) -> Self {
        let pattern = TopicPattern::wildcard(text);
        self.with(pattern.map_err(|error| error.to_string()))
    }

    /// Also the topics in whose names the regular expression `text` is found; `^` and `$` stand for
    /// the ends of a name. Matching takes time linear in the name. Without a `^` at the beginning,
    /// publishers on other hosts are asked for all their topics.
    pub fn or_regex(self, text: &str) -> Self {
        let pattern = Pattern::new(text, REGEX_BYTES_MAX);
        let pattern = pattern.map_err(|reason| format!("bad pattern of topics {text:?}: {reason}"));
        self.with(pattern.map(|pattern| {
            let matches = move |topic: &str| pattern.is_match(topic.as_bytes());
            TopicPattern::of_language(text, regex_prefix(text), matches)
        }))
    }

    fn with(mut self, pattern: Result<TopicPattern, String>) -> Self {
        match (&mut self.patterns, pattern) {
            (Ok(patterns), Ok(pattern)) => patterns.push(pattern),
            (Ok(_), Err(error)) => self.patterns = Err(error),
            // The first error stays.
            (Err(_), _) => {}
        }
        self
    }

    /// At most so many topics over each transport, 65,536 unless set. A topic counts once for each
    /// of its publishers. Further ones are not joined, which the counters and the log tell.
    pub const fn topics_max(mut self, topics_max: usize) -> Self {
        self.topics_max = topics_max;
        self
    }

    /// The format of the messages, instead of the setting `filter.message_type`.
    pub fn message_type(mut self, format: impl Into<Format>) -> Self {
        self.settings.format = format.into();
        self
    }

    /// Subscribers made from here receive the messages that match `filter` only.
    pub const fn filter(self, filter: &'a str) -> FilteredMatchingTopics<'a> {
        FilteredMatchingTopics { topics: self, filter }
    }

    /// A subscriber to all present and future publishers of the matching topics.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a pattern cannot be used; others see [`Error`].
    pub fn subscriber(self) -> Result<Subscriber, Error> {
        let patterns = self.patterns.map_err(Error::Pattern)?;
        self.transports.subscriber_of(&TopicSelection::of_patterns(patterns, self.topics_max))
    }
}

/// The topics that patterns match, with a filter.
#[derive(Clone, Debug)]
#[must_use]
pub struct FilteredMatchingTopics<'a> {
    topics: MatchingTopics<'a>,
    filter: &'a str,
}

impl FilteredMatchingTopics<'_> {
    /// A subscriber to the messages that match the filter, of all present and future publishers of
    /// the matching topics: evaluated by those that serve filters, and here for the others.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a pattern cannot be used, [`Error::Filter`] if the filter cannot;
    /// others see [`Error`].
    pub fn subscriber(self) -> Result<FilteredSubscriber, Error> {
        let MatchingTopics { transports, settings, patterns, topics_max } = self.topics;
        let patterns = patterns.map_err(Error::Pattern)?;
        let wanted = (patterns, topics_max);
        let transports = transports.in_order();
        Ok(FilteredSubscriber::of_patterns(&transports, wanted, self.filter, &settings)?)
    }
}

/// Characters that every name begins with in which the regular expression `text` is found: those
/// after a `^` at its beginning that have no special meaning.
fn regex_prefix(text: &str) -> &str {
    // An alternative may begin otherwise.
    let Some(rest) = text.strip_prefix('^').filter(|rest| !rest.contains('|')) else { return "" };
    let end = rest.find(SPECIAL).unwrap_or(rest.len());
    // What is repeated may be absent.
    let is_optional = rest[end..].starts_with(['*', '?', '{']);
    let last = rest[..end].char_indices().next_back().map_or(0, |(at, _)| at);
    &rest[..if is_optional { last } else { end }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_expression_s_prefix_is_what_all_its_names_begin_with() {
        for (text, prefix) in [
            ("^prices", "prices"),
            ("^prices\\.eu", "prices"),
            ("^prices.eu$", "prices"),
            ("^ab*", "a"),
            ("^ab+", "ab"),
            ("^ab{0,3}", "a"),
            ("^äö?", "ä"),
            ("^a|b", ""),
            ("(?i)^abc", ""),
            ("abc", ""),
            ("", ""),
        ] {
            assert_eq!(regex_prefix(text), prefix, "{text}");
        }
    }
}
