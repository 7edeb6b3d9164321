//! A Rust file, split into what is code and what is comment.
//!
//! The checks look for words in one of the two and must not be fooled by the other, nor by a
//! string. This is a scanner, no parser: it knows comments, strings and character literals.

use std::ops::Range;

/// One file. `code` and `comments` are as long as `text`, byte for byte, with all else blanked,
/// so that an offset found in one of them is an offset in all three.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) code: String,
    comments: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// Reads `text` as the Rust file called `path`.
    pub(crate) fn new(path: &str, text: String) -> Self {
        let kinds = Scanner { bytes: text.as_bytes(), at: 0, kinds: Vec::new() }.scan();
        let code = only(&text, &kinds, Kind::Code);
        let comments = only(&text, &kinds, Kind::Comment);
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { path: path.to_owned(), text, code, comments, line_starts }
    }

    /// Number of lines.
    pub(crate) fn line_count(&self) -> usize {
        // Behind the last line's end begins no other.
        self.line_starts.len() - usize::from(self.line_starts.last() == Some(&self.text.len()))
    }

    /// The line (counted from 1) that `offset` falls on.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// Code of line `line`.
    pub(crate) fn code_line(&self, line: usize) -> &str {
        &self.code[self.line(line)]
    }

    /// Comment of line `line`.
    pub(crate) fn comment_line(&self, line: usize) -> &str {
        &self.comments[self.line(line)]
    }

    /// Whether line `line` has a comment and nothing else.
    pub(crate) fn is_comment_only(&self, line: usize) -> bool {
        self.code_line(line).trim().is_empty() && !self.comment_line(line).trim().is_empty()
    }

    /// Offsets of `word` in the code, as a whole word.
    pub(crate) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.code.match_indices(word).map(|(at, _)| at).filter(move |at| {
            let before = self.code[..*at].chars().next_back();
            let after = self.code[*at + word.len()..].chars().next();
            let starts = !(word.starts_with(is_word) && before.is_some_and(is_word));
            starts && !(word.ends_with(is_word) && after.is_some_and(is_word))
        })
    }

    /// The first line of the statement around `offset`: the first code after the `;`, `{` or
    /// `}` before it.
    pub(crate) fn statement_line(&self, offset: usize) -> usize {
        let end = self.code[..offset].rfind([';', '{', '}']).map_or(0, |at| at + 1);
        let gap = self.code[end..].find(|c: char| !c.is_whitespace()).unwrap_or(0);
        self.line_of((end + gap).min(offset))
    }

    fn line(&self, line: usize) -> Range<usize> {
        let start = self.line_starts.get(line.wrapping_sub(1)).copied();
        let end = self.line_starts.get(line).map_or(self.text.len(), |next| next - 1);
        start.map_or(0..0, |start| start..end)
    }
}

/// Whether `c` may stand inside an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The end of what the bracket at `open` encloses, or of the code if it is never closed.
pub(crate) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0u32;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

fn only(text: &str, kinds: &[Kind], wanted: Kind) -> String {
    let mut kept = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if c == '\n' || kinds[at] == wanted {
            kept.push(c);
        } else {
            kept.extend(std::iter::repeat_n(' ', c.len_utf8()));
        }
    }
    kept
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    kinds: Vec<Kind>,
}

impl Scanner<'_> {
    /// The kind of every byte.
    fn scan(mut self) -> Vec<Kind> {
        while self.at < self.bytes.len() {
            let rest = &self.bytes[self.at..];
            let (kind, length) = if rest.starts_with(b"//") {
                (Kind::Comment, rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()))
            } else if rest.starts_with(b"/*") {
                (Kind::Comment, block_comment(rest))
            } else if rest[0] == b'"' {
                (Kind::Literal, quoted(rest, b'"'))
            } else if let Some(length) = self.raw_string() {
                (Kind::Literal, length)
            } else if rest[0] == b'\'' && is_character(rest) {
                (Kind::Literal, quoted(rest, b'\''))
            } else {
                (Kind::Code, 1)
            };
            self.at += length;
            self.kinds.resize(self.at, kind);
        }
        self.kinds
    }

    /// The length of a raw string that starts here: `r"..."`, `r#"..."#`, also after b or c.
    fn raw_string(&self) -> Option<usize> {
        let rest = self.bytes[self.at..].strip_prefix(b"r")?;
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let mut before = self.bytes[..self.at].iter().rev();
        match before.next() {
            Some(b'b' | b'c') if before.next().is_some_and(is_word) => return None,
            Some(b'b' | b'c') => {}
            Some(b) if is_word(b) => return None,
            _ => {}
        }
        let hashes = rest.iter().take_while(|b| **b == b'#').count();
        let body = rest[hashes..].strip_prefix(b"\"")?;
        let end: Vec<u8> = std::iter::once(b'"').chain(vec![b'#'; hashes]).collect();
        let length = body.windows(end.len()).position(|window| window == end);
        Some(length.map_or(1 + rest.len(), |length| 2 + 2 * hashes + length + 1))
    }
}

/// The length of the comment that starts here; block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 && at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

/// The length of the literal that starts here with `quote`.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Whether the quote that starts here opens a character, and no lifetime or label.
fn is_character(rest: &[u8]) -> bool {
    let width = match rest.get(1) {
        None => return false,
        Some(b'\\') => return true,
        Some(byte) if byte.is_ascii() => 1,
        Some(byte) => byte.leading_ones() as usize,
    };
    rest.get(1 + width) == Some(&b'\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("x.rs", text.to_owned())
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        let text = "let a = \"// no\"; // yes \"\nlet b = r#\"\" // no\"#; /* a /* b */ c */ d";
        let source = source(text);
        assert_eq!(source.code_line(1).trim(), "let a =        ;");
        assert_eq!(source.comment_line(1).trim(), "// yes \"");
        assert_eq!(source.comment_line(2).trim(), "/* a /* b */ c */");
        assert!(source.code_line(2).ends_with(" d"));
        assert_eq!(source.code.len(), text.len());
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        let source = source("fn f<'a>(x: &'a str) { g('\"', '\\'', 'ß'); h() } // c");
        assert!(source.code.contains("<'a>(x: &'a str)"));
        assert!(source.code.contains("h() }"));
        assert_eq!(source.comment_line(1).trim(), "// c");
    }

    #[test]
    fn raw_prefixes_are_told_from_identifiers() {
        let source = source("br\"\\\" ; var\"x\" ; r#type ; br#\"a\"b\"# ; end");
        assert_eq!(source.code.split_whitespace().last(), Some("end"));
        assert!(source.code.contains("r#type"));
        assert_eq!(source.code.split_whitespace().next(), Some("b"));
        assert!(!source.code.contains('"'));
    }

    #[test]
    fn unfinished_literals_end_with_the_file() {
        for text in ["\"abc", "r#\"abc\"", "/* abc", "'\\", "'", "\"\\"] {
            assert_eq!(source(text).code.len(), text.len());
        }
    }

    #[test]
    fn lines_are_counted_from_one() {
        let source = source("a\nb // c\n\nd");
        assert_eq!(source.line_of(0), 1);
        assert_eq!(source.line_of(2), 2);
        assert_eq!(source.code_line(4), "d");
        assert_eq!(source.code_line(9), "");
        assert!(!source.is_comment_only(2));
    }

    #[test]
    fn brackets_close() {
        assert_eq!(closing("a(b[c]{d})e", 1), 10);
        assert_eq!(closing("a(b", 1), 3);
    }

    #[test]
    fn words_are_whole() {
        let source = source("unsafe { unsafely } un.unsafe");
        assert_eq!(source.words("unsafe").collect::<Vec<_>>(), [0, 23]);
    }

    #[test]
    fn a_statement_starts_after_the_last_one() {
        let source =
            source("fn f() {\n    a();\n\n    b\n        .c(\n            d,\n        );\n}");
        let d = source.code.find('d').expect("there is one");
        assert_eq!(source.statement_line(d), 4);
    }
}
