//! Regular expressions over bytes, in time linear in the text whatever the pattern.

use crate::expr::write_text;
use regex::bytes::{Regex, RegexBuilder};
use std::fmt::{self, Display, Formatter};

/// A regular expression. Two are equal if they are written alike.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Compiles `text`, if that takes at most `limit_bytes`; otherwise says what is wrong with it.
    pub fn new(text: &str, limit_bytes: usize) -> Result<Self, String> {
        let regex = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(limit_bytes)
            .dfa_size_limit(limit_bytes)
            .build();
        regex.map(|regex| Self { regex }).map_err(|error| describe(&error))
    }

    /// The text that it was made of.
    pub fn text(&self) -> &str {
        self.regex.as_str()
    }

    /// Whether it is found anywhere in `text`.
    #[inline]
    pub fn is_in(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// `text` with each occurrence replaced, where `$1` in `replacement` is the first group;
    /// nothing if that could have more than `limit` bytes.
    pub fn replace(&self, text: &[u8], replacement: &[u8], limit: usize) -> Option<Vec<u8>> {
        let mut replaced = Vec::with_capacity(text.len());
        let mut copied = 0;
        let groups_at_most = replacement.iter().filter(|&&byte| byte == b'$').count();
        for groups in self.regex.captures_iter(text) {
            let whole = groups.get_match();
            replaced.extend_from_slice(&text[copied..whole.start()]);
            let length = groups_at_most.saturating_mul(whole.len()) + replacement.len();
            if replaced.len().saturating_add(length) > limit {
                return None;
            }
            groups.expand(replacement, &mut replaced);
            copied = whole.end();
        }
        replaced.extend_from_slice(&text[copied..]);
        (replaced.len() <= limit).then_some(replaced)
    }
}

/// The regular expression library explains over several lines; the last one says what is wrong.
fn describe(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("the pattern takes more than {limit} bytes when compiled; make it simpler")
        }
        _ => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_text(self.text().as_bytes(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text, 1 << 20).expect("a pattern")
    }

    #[test]
    fn patterns_are_found_anywhere_unless_anchored() {
        assert!(pattern("BM").is_in(b"IBM"));
        assert!(!pattern("^BM").is_in(b"IBM"));
        assert!(pattern("(?i)ibm$").is_in(b"IBM"));
        assert!(pattern("a.c").is_in(b"a\xFFc"));
        let replaced = |limit| pattern("(a+)b").replace(b"xaababy", b"<$1>", limit);
        assert_eq!(replaced(20).as_deref(), Some(&b"x<aa><a>y"[..]));
        assert_eq!(replaced(5), None);
    }

    #[test]
    fn what_cannot_be_linear_or_small_is_refused_with_a_reason() {
        let error = |text: &str| Pattern::new(text, 1 << 16).expect_err(text);
        assert!(error("(a").contains("unclosed group"), "{}", error("(a"));
        assert!(error("(?=a)b").contains("look-around"), "{}", error("(?=a)b"));
        assert!(error(r"(a)\1").contains("backreferences"), "{}", error(r"(a)\1"));
        assert!(error("(a{1000}){1000}").contains("65536 bytes"));
    }

    #[test]
    fn nested_repetition_does_not_explode() {
        let text = vec![b'a'; 10_000];
        assert!(!pattern("(a|aa)*(a|aa)*(a|aa)*b").is_in(&text));
    }
}
