//! The words and marks of a Rust file's code, without its tests.

use crate::source::{Source, is_word};

/// One identifier or one other character; `::` counts as one. Comments and literals are left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// The line it stands in, counted from 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c == '_' || c.is_alphabetic())
    }
}

/// Splits the code of `source`; items under `#[cfg(test)]` are left out.
pub(crate) fn tokens(source: &Source) -> Vec<Token<'_>> {
    let code = source.code.as_str();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push(Token { text: &rest[..length], line: source.line_of(at) });
        }
        at += length;
    }
    without_tests(&tokens)
}

/// The index after the bracket that closes the one at `open`.
pub(crate) fn after_closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if is_test_only(&tokens[at..]) {
            at = after_item(tokens, after_closing(tokens, at + 1));
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Whether `#[cfg(test)]` or `#[cfg(all(test, ..))]` begins here.
fn is_test_only(tokens: &[Token<'_>]) -> bool {
    let begins = |words: &[&str]| {
        tokens.len() >= words.len() && words.iter().zip(tokens).all(|(word, t)| *word == t.text)
    };
    begins(&["#", "[", "cfg", "(", "test", ")"])
        || begins(&["#", "[", "cfg", "(", "all", "(", "test", ","])
}

/// The index after the item, field or statement that begins at `at`, with its attributes.
fn after_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    const ITEMS: [&str; 13] = [
        "pub", "use", "mod", "fn", "impl", "struct", "enum", "trait", "type", "const", "static",
        "unsafe", "async",
    ];
    while at + 1 < tokens.len() && tokens[at].text == "#" && tokens[at + 1].text == "[" {
        at = after_closing(tokens, at + 1);
    }
    let is_item = tokens.get(at).is_some_and(|token| ITEMS.contains(&token.text));
    let is_use = tokens[at..].iter().take(5).any(|token| token.text == "use");
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            ")" | "]" | "}" => return at,
            "{" if !is_use => return after_closing(tokens, at),
            "(" | "[" | "{" => at = after_closing(tokens, at),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> String {
        let source = Source::new("a.rs", text.into());
        let texts: Vec<&str> = tokens(&source).iter().map(|token| token.text).collect();
        texts.join(" ")
    }

    #[test]
    fn code_is_split_into_names_and_marks() {
        assert_eq!(kept("use a::b; // c\nf(\"d\")"), "use a :: b ; f ( )");
    }

    #[test]
    fn tests_are_left_out() {
        assert_eq!(kept("a; #[cfg(test)]\nmod tests { fn b() {} }\nc"), "a ; c");
        assert_eq!(kept("a; #[cfg(test)]\n#[x(y)]\nmod tests;\nc"), "a ; c");
        assert_eq!(kept("#[cfg(test)] use a::{b, c};\nd"), "d");
        assert_eq!(kept("#[cfg(all(test, not(loom)))] pub(crate) fn f<A, B>(a: A) {} d"), "d");
        assert_eq!(kept("S { #[cfg(test)] a: Vec<u8>, b: u8 }"), "S { b : u8 }");
        assert_eq!(kept("#[cfg(not(test))] a"), "# [ cfg ( not ( test ) ) ] a");
    }
}
