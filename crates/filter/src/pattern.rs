//! Regular expressions over bytes, matched in linear time.
//!
//! Cost is bounded by budgets instead of time: compile steps and memory are estimated before, and
//! measured after, compilation; memory includes the caches of matching.

use crate::quoted::write_quoted;
use regex_automata::meta::{Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::hir::translate::TranslatorBuilder;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

mod size;

use size::PatternSize;

/// Nesting levels of groups.
const NEST_MAX: u32 = 128;
/// Memory of a pattern besides the compiled automata.
const OWN_BYTES: usize = 1 << 10;
/// Most bytes that the searches of one replacement may run over.
///
/// A search may look at the whole rest of a text for a short match, as `a*b|a` does in a text of
/// `a`, so that replacing is quadratic.
const REPLACE_WORK_MAX: usize = 64 << 20;
/// Least capacity of the lazy DFA's state cache.
const CACHE_MIN: usize = 64 << 10;
/// Cache bytes per automaton state of a large pattern.
const CACHE_BYTES: usize = 256;

/// A compiled regular expression. Patterns are equal if their texts are.
///
/// Clones share the automata and the match caches.
#[derive(Clone, Debug)]
pub struct Pattern {
    compiled: Arc<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    text: Box<str>,
    regex: Regex,
    bytes: usize,
    /// Longest match; `None` if it has no limit.
    match_max: Option<usize>,
}

/// Remaining budget of the patterns in one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PatternBudget {
    /// Bytes of each pattern.
    pub(crate) each: usize,
    /// Bytes of all further patterns.
    pub(crate) bytes: usize,
    /// Compile steps of all further patterns.
    pub(crate) work: usize,
}

/// Reasons to refuse a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// Malformed, too large by itself, or not matchable in linear time.
    Invalid(String),
    /// The patterns so far exceed the common memory budget.
    MemoryBudget,
    /// The patterns so far exceed the common compile budget.
    WorkBudget,
}

impl Pattern {
    /// Compiles `text` within `limit_bytes`; the error is the reason in words.
    pub fn new(text: &str, limit_bytes: usize) -> Result<Self, String> {
        let alone = PatternBudget { each: limit_bytes, bytes: usize::MAX, work: limit_bytes };
        Self::compile(text, false, &mut { alone }).map_err(|fault| match fault {
            PatternError::Invalid(what) => what,
            PatternError::MemoryBudget | PatternError::WorkBudget => too_large(limit_bytes),
        })
    }

    /// Compiles `text` and charges `budget`. With `groups`, capture groups are available to
    /// [`replace`](Self::replace).
    pub(crate) fn compile(
        text: &str,
        groups: bool,
        budget: &mut PatternBudget,
    ) -> Result<Self, PatternError> {
        let wrong = |error: regex_syntax::Error| PatternError::Invalid(describe(&error));
        // Parsing is linear in the text; the expensive step is compilation.
        let read = ParserBuilder::new().nest_limit(NEST_MAX).build().parse(text);
        let read = read.map_err(|error| wrong(error.into()))?;
        let size = PatternSize::of(&read);
        // Charged before compilation, so that an expensive pattern is refused without the work.
        budget.work =
            budget.work.checked_sub(size.work(text.len())).ok_or(PatternError::WorkBudget)?;
        let cache = match size.is_literal {
            // A literal is searched directly and needs no DFA cache.
            true => 0,
            false => size.states.saturating_mul(CACHE_BYTES).min(budget.each).max(CACHE_MIN),
        };
        let slots = if groups { size.slots_bytes() } else { 0 };
        if slots > budget.each {
            return Err(PatternError::Invalid(too_large(budget.each)));
        }
        let beside = OWN_BYTES + text.len() + cache + slots;
        let left = budget.bytes.checked_sub(beside).ok_or(PatternError::MemoryBudget)?;
        let mut reader = TranslatorBuilder::new().unicode(false).utf8(false).build();
        let meaning = reader.translate(text, &read).map_err(|error| wrong(error.into()))?;
        let which = if groups { WhichCaptures::All } else { WhichCaptures::Implicit };
        // Without Unicode and UTF-8 mode a pattern matches arbitrary bytes.
        let config = Config::new()
            .utf8_empty(false)
            .which_captures(which)
            .nfa_size_limit(Some(budget.each.min(left)))
            .onepass_size_limit(Some(budget.each.min(left)))
            .hybrid_cache_capacity(cache.max(CACHE_MIN));
        let regex = Regex::builder().configure(config).build_from_hir(&meaning);
        let regex = regex.map_err(|error| match error.size_limit() {
            Some(limit) if limit < budget.each => PatternError::MemoryBudget,
            Some(limit) => PatternError::Invalid(too_large(limit)),
            None => PatternError::Invalid(error.to_string()),
        })?;
        budget.bytes = left.checked_sub(regex.memory_usage()).ok_or(PatternError::MemoryBudget)?;
        let bytes = beside + regex.memory_usage();
        let match_max = meaning.properties().maximum_len();
        Ok(Self { compiled: Arc::new(Compiled { text: text.into(), regex, bytes, match_max }) })
    }

    /// Text of the pattern.
    pub fn text(&self) -> &str {
        &self.compiled.text
    }

    /// Memory of the pattern, including its largest match caches.
    pub fn bytes(&self) -> usize {
        self.compiled.bytes
    }

    /// Whether the pattern occurs anywhere in `text`.
    #[inline]
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.compiled.regex.is_match(text)
    }

    /// Replaces each occurrence in `text`; `$1` in `replacement` is the first group. `None` if the
    /// result could exceed `limit` bytes, or the searches run over more than 64 MiB.
    pub fn replace(&self, text: &[u8], replacement: &[u8], limit: usize) -> Option<Vec<u8>> {
        let mut replaced = Vec::with_capacity(text.len());
        let (mut copied, mut work) = (0, REPLACE_WORK_MAX);
        let groups_at_most = replacement.iter().filter(|&&byte| byte == b'$').count();
        for groups in self.compiled.regex.captures_iter(text) {
            let Some(whole) = groups.get_match() else { continue };
            work = work.checked_sub(self.searched_bytes(copied, whole.start(), text.len()))?;
            replaced.extend_from_slice(&text[copied..whole.start()]);
            // Upper bound: each `$` may insert the whole match.
            let length = groups_at_most.saturating_mul(whole.len()) + replacement.len();
            if replaced.len().saturating_add(length) > limit {
                return None;
            }
            groups.interpolate_bytes_into(text, replacement, &mut replaced);
            copied = whole.end();
        }
        replaced.extend_from_slice(&text[copied..]);
        (replaced.len() <= limit).then_some(replaced)
    }

    /// Most bytes that a search from `from` may run over if it finds a match at `start`.
    fn searched_bytes(&self, from: usize, start: usize, length: usize) -> usize {
        // A search ends at the latest where no match from `start` can go on.
        let end = self.compiled.match_max.map_or(length, |most| start.saturating_add(most));
        end.min(length) - from
    }
}

fn too_large(limit: usize) -> String {
    format!("the pattern takes more than {limit} bytes when compiled; make it simpler")
}

/// Reason without the library's multi-line explanation, which ends with it.
fn describe(error: &regex_syntax::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(self.text().as_bytes(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text, 1 << 20).expect("a pattern")
    }

    #[test]
    fn patterns_are_found_anywhere_unless_anchored() {
        assert!(pattern("BM").is_match(b"IBM"));
        assert!(!pattern("^BM").is_match(b"IBM"));
        assert!(pattern("(?i)ibm$").is_match(b"IBM"));
        assert!(pattern("a.c").is_match(b"a\xFFc"));
        let mut budget = PatternBudget { each: 1 << 20, bytes: 1 << 20, work: 1_000 };
        let groups = Pattern::compile("(a+)b", true, &mut budget).expect("a pattern");
        let replaced = |limit| groups.replace(b"xaababy", b"<$1>", limit);
        assert_eq!(replaced(20).as_deref(), Some(&b"x<aa><a>y"[..]));
        assert_eq!(replaced(5), None);
        let whole = pattern("(a+)b").replace(b"xaababy", b"<$0$1>", 20);
        assert_eq!(whole.as_deref(), Some(&b"x<aab><ab>y"[..]), "groups only where asked for");
    }

    #[test]
    fn nonlinear_or_large_patterns_are_refused_with_a_reason() {
        let error = |text: &str| Pattern::new(text, 1 << 16).expect_err(text);
        assert!(error("(a").contains("unclosed group"), "{}", error("(a"));
        assert!(error("(?=a)b").contains("look-around"), "{}", error("(?=a)b"));
        assert!(error(r"(a)\1").contains("backreferences"), "{}", error(r"(a)\1"));
        assert!(error("(a{1000}){1000}").contains("65536 bytes"));
        let nested = format!("{}a{}", "(".repeat(200), ")".repeat(200));
        assert!(error(&nested).contains("nested"), "{}", error(&nested));
    }

    #[test]
    fn nested_repetition_does_not_explode() {
        let text = vec![b'a'; 10_000];
        assert!(!pattern("(a|aa)*(a|aa)*(a|aa)*b").is_match(&text));
    }

    #[test]
    fn replacing_gives_up_when_its_searches_run_too_far() {
        let replaced = |text: &str, length| {
            let subject = vec![b'a'; length];
            pattern(text).replace(&subject, b"", 1 << 20)
        };
        // Each search runs over the rest of the text and finds one byte.
        assert_eq!(replaced("a*b|a", 1 << 20), None);
        assert_eq!(replaced("a*b|a", 10_000).as_deref(), Some(&b""[..]));
        assert_eq!(replaced("a|aa?b", 1 << 20).as_deref(), Some(&b""[..]), "short matches only");
        assert_eq!(replaced("a+", 1 << 20).as_deref(), Some(&b""[..]), "one match");
        let at = |text: &str, from, start| pattern(text).searched_bytes(from, start, 1_000);
        assert_eq!((at("a*b|a", 10, 20), at("a|aa?b", 10, 20)), (990, 13));
        assert_eq!(at("a|aa?b", 990, 999), 10);
    }

    #[test]
    fn a_pattern_costs_what_it_takes() {
        let start = PatternBudget { each: 1 << 20, bytes: 1 << 20, work: 100_000 };
        let cost = |text: &str, groups| {
            let mut budget = start;
            let pattern = Pattern::compile(text, groups, &mut budget).expect(text);
            assert_eq!(start.bytes - budget.bytes, pattern.bytes(), "{text}");
            (pattern.bytes(), start.work - budget.work)
        };
        let (literal, few) = cost("EURUSD", false);
        assert!(literal < 4 << 10 && few < 100, "{literal} bytes, {few} steps");
        let (large, many) = cost("(a{10}){100}", false);
        assert!(large > 200_000 && many > 1_000, "{large} bytes, {many} steps");
        assert!(cost("((a)b){20}", true).0 > cost("((a)b){20}", false).0, "groups take memory");
        let refused = |text: &str, groups| Pattern::compile(text, groups, &mut { start });
        assert_eq!(
            refused("(a{1000}){1000}", false),
            Err(PatternError::WorkBudget),
            "not even tried"
        );
        let groups = "()".repeat(2_000);
        assert!(
            matches!(refused(&groups, true), Err(PatternError::Invalid(_))),
            "a table of groups"
        );
    }
}
