//! A pattern of topic names.
//!
//! Shared by the subscriber that has it and by the threads that find topics for it.

use crate::stream::Stream;
use core::fmt;
use std::sync::Arc;

/// Longest text of a wildcard pattern, in bytes: that of a topic's name.
const TEXT_MAX: usize = 255;
/// Endings of the transport topics that a subscriber without a filter receives: none, and that of
/// publishers that serve filters.
const UNFILTERED: &[&str] = &["", Stream::UNFILTERED];

/// A pattern of topic names, for subscribers to topics that may not exist yet.
///
/// In a [wildcard](Self::wildcard) `*` stands for any characters but the separators `.` and `/`,
/// and `**` for any characters: `prices.*` matches `prices.eu` and not `prices.eu.xetra`, which
/// `prices.**` matches. Matching takes time linear in the name, whatever the pattern.
///
/// Topics of lanecast itself never match: names that begin with `_` (groups, stores) or contain
/// `?` (filters).
///
/// ```
/// use lanecast_transport::TopicPattern;
///
/// let prices = TopicPattern::wildcard("prices.*")?;
/// assert!(prices.matches("prices.eu"));
/// assert!(!prices.matches("prices.eu.xetra") && !prices.matches("orders.eu"));
/// # Ok::<(), lanecast_transport::InvalidPattern>(())
/// ```
#[derive(Clone)]
pub struct TopicPattern {
    text: Arc<str>,
    /// Characters that every matching name begins with.
    prefix: Arc<str>,
    language: Language,
    /// Endings of the transport topics that carry a matching topic.
    endings: &'static [&'static str],
}

#[derive(Clone)]
enum Language {
    Wildcard(Arc<[Part]>),
    /// Another language, compiled.
    Function(Arc<dyn Fn(&str) -> bool + Send + Sync>),
}

/// A part of a wildcard pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// This byte.
    Byte(u8),
    /// `*`: any bytes but separators.
    Level,
    /// `**`: any bytes.
    All,
}

/// A wildcard pattern is empty or too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pattern of topics has 1 to {TEXT_MAX} bytes, this one has {0}")]
pub struct InvalidPattern(usize);

impl TopicPattern {
    /// The wildcard pattern `text`.
    ///
    /// # Errors
    /// If it is empty or longer than 255 bytes.
    pub fn wildcard(text: &str) -> Result<Self, InvalidPattern> {
        if text.is_empty() || text.len() > TEXT_MAX {
            return Err(InvalidPattern(text.len()));
        }
        let prefix = text.split('*').next().unwrap_or_default();
        Ok(Self::new(text, prefix, Language::Wildcard(parts(text).into())))
    }

    /// A pattern of another language: `matches` decides on a topic's name, and every name that it
    /// accepts begins with `prefix`. Publishers on other hosts are asked for the prefix only, so a
    /// long one saves traffic.
    ///
    /// `matches` runs on threads that serve all of the program's subscribers, on names that any
    /// host may send: it has to take bounded time, and must not panic.
    #[must_use]
    pub fn of_language(
        text: &str,
        prefix: &str,
        matches: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(text, prefix, Language::Function(Arc::new(matches)))
    }

    fn new(text: &str, prefix: &str, language: Language) -> Self {
        Self { text: text.into(), prefix: prefix.into(), language, endings: UNFILTERED }
    }

    /// The same pattern, carried by the transport topics whose names are a matching name and one of
    /// `endings`; for layers that have topics of their own beside the application's.
    #[must_use]
    pub fn with_endings(self, endings: &'static [&'static str]) -> Self {
        Self { endings, ..self }
    }

    /// Text of the pattern.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Characters that every matching name begins with; may be empty.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether the pattern matches the name of a transport's topic.
    pub fn matches(&self, topic: &str) -> bool {
        let (name, ending) = topic.split_at(topic.find('?').unwrap_or(topic.len()));
        // The cheap checks first: most names of a busy network match nothing.
        if !name.starts_with(&*self.prefix)
            || name.is_empty()
            || name.starts_with('_')
            || !self.endings.contains(&ending)
        {
            return false;
        }
        match &self.language {
            Language::Wildcard(parts) => are_matched(parts, name.as_bytes()),
            Language::Function(matches) => matches(name),
        }
    }
}

/// The parts of a wildcard pattern.
fn parts(text: &str) -> Box<[Part]> {
    let mut parts = Vec::new();
    for byte in text.bytes() {
        match (byte, parts.last()) {
            (b'*', Some(Part::Level | Part::All)) => {
                parts.pop();
                parts.push(Part::All);
            }
            (b'*', _) => parts.push(Part::Level),
            (byte, _) => parts.push(Part::Byte(byte)),
        }
    }
    parts.into()
}

/// Whether `name` is matched: follows the set of parts that the bytes so far can have reached, so
/// the time is linear in the name.
fn are_matched(parts: &[Part], name: &[u8]) -> bool {
    let mut reached = [false; TEXT_MAX + 1];
    reached[0] = true;
    pass_stars(parts, &mut reached);
    for &byte in name {
        let mut next = [false; TEXT_MAX + 1];
        for (at, part) in parts.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match part {
                Part::Byte(expected) if *expected == byte => next[at + 1] = true,
                Part::Level if !matches!(byte, b'.' | b'/') => next[at] = true,
                Part::All => next[at] = true,
                Part::Byte(_) | Part::Level => {}
            }
        }
        pass_stars(parts, &mut next);
        reached = next;
    }
    reached[parts.len()]
}

/// Stars match no bytes as well: what comes after a reached one is reached.
fn pass_stars(parts: &[Part], reached: &mut [bool; TEXT_MAX + 1]) {
    for (at, part) in parts.iter().enumerate() {
        if reached[at] && matches!(part, Part::Level | Part::All) {
            reached[at + 1] = true;
        }
    }
}

impl fmt::Debug for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TopicPattern").field(&self.text).finish()
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, topic: &str) -> bool {
        TopicPattern::wildcard(pattern).expect("a pattern").matches(topic)
    }

    /// All ways to divide the name among the parts: too simple to be wrong.
    fn matches_simply(pattern: &[u8], name: &[u8]) -> bool {
        match pattern {
            [] => name.is_empty(),
            [b'*', b'*', rest @ ..] => {
                (0..=name.len()).any(|count| matches_simply(rest, &name[count..]))
            }
            [b'*', rest @ ..] => {
                let level = name.iter().take_while(|byte| !b"./".contains(byte)).count();
                (0..=level).any(|count| matches_simply(rest, &name[count..]))
            }
            [byte, rest @ ..] => name.first() == Some(byte) && matches_simply(rest, &name[1..]),
        }
    }

    #[test]
    fn stars_stand_for_a_level_or_for_all() {
        assert!(matches("prices.*", "prices.eu") && matches("prices.*", "prices."));
        assert!(!matches("prices.*", "prices") && !matches("prices.*", "prices.eu.x"));
        assert!(matches("prices.**", "prices.eu.x") && matches("**", "anything/at.all"));
        assert!(matches("*.eu", "prices.eu") && !matches("*.eu", "my.prices.eu"));
        assert!(matches("a/*/c", "a/b/c") && !matches("a/*/c", "a/b/b/c"));
        assert!(matches("plain", "plain") && !matches("plain", "plainer"));
    }

    #[test]
    fn every_short_pattern_is_matched_as_its_meaning_says() {
        let words = |letters: &[u8], longest: u32| {
            let letters = letters.to_vec();
            (1..=longest).flat_map(move |length| {
                let letters = letters.clone();
                (0..letters.len().pow(length)).map(move |mut number| {
                    let mut word = String::new();
                    for _ in 0..length {
                        word.push(letters[number % letters.len()].into());
                        number /= letters.len();
                    }
                    word
                })
            })
        };
        let names: Vec<String> = words(b"ab.", 5).collect();
        for pattern in words(b"*a.", 5).filter(|pattern| !pattern.contains("***")) {
            let compiled = TopicPattern::wildcard(&pattern).expect("a pattern");
            for name in &names {
                let expected = matches_simply(pattern.as_bytes(), name.as_bytes());
                assert_eq!(compiled.matches(name), expected, "{pattern} and {name}");
            }
        }
    }

    #[test]
    fn topics_of_lanecast_itself_never_match() {
        for topic in ["_group.a", "_store.a", "a?content", "a?filters", "?all", "", "a?all?all"] {
            assert!(!matches("**", topic), "{topic}");
        }
        assert!(matches("a", "a?all"), "the topic that carries every message");
        let filtered = TopicPattern::wildcard("a").expect("a pattern");
        let filtered = filtered.with_endings(&["", "?content"]);
        assert!(filtered.matches("a?content") && filtered.matches("a"));
        assert!(!filtered.matches("a?all"));
    }

    #[test]
    fn a_prefix_is_what_comes_before_the_first_star() {
        let prefix = |text: &str| TopicPattern::wildcard(text).expect("a pattern").prefix().len();
        assert_eq!([prefix("ab*"), prefix("*"), prefix("abc"), prefix("a*b*")], [2, 0, 3, 1]);
    }

    #[test]
    fn impossible_patterns_are_refused_and_the_longest_is_not() {
        assert!(TopicPattern::wildcard("").is_err());
        assert!(TopicPattern::wildcard(&"*".repeat(256)).is_err());
        let long = "*a".repeat(127);
        assert!(matches(&long, &"a".repeat(255)) && !matches(&long, &"b".repeat(255)));
    }
}
