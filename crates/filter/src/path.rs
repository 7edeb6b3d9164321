//! Field paths: absolute paths through a message, a small subset of XPath.
//!
//! `/55` is a FIX tag, `/order/legs[0]/qty` a JSON member, `/FIXML/Order/@Sym` an XML attribute,
//! also spelled `/FIXML/Order@Sym`. Names with other characters stand in brackets, as in `/[odd
//! name]`, or the whole path does: `[/odd name/b]`.

use std::fmt::{self, Display, Formatter, Write};
use std::str::FromStr;
use thiserror::Error;

/// Most steps of a path.
pub const STEPS_MAX: usize = 64;

/// A parsed path. Different spellings of one path are equal and print alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    steps: Box<[Step]>,
}

/// One step of a path: a name with an optional subscript.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    name: Box<str>,
    index: Option<u32>,
    is_attribute: bool,
}

impl Path {
    /// The steps, outermost first; at least one.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The name of a path of one step without subscript and attribute: a FIX tag or an NVFIX name.
    pub fn single_name(&self) -> Option<&str> {
        match &*self.steps {
            [Step { name, index: None, is_attribute: false }] => Some(name),
            _ => None,
        }
    }

    /// The first step and the path of the remaining ones, if any.
    pub fn split_first(&self) -> (&Step, Option<Self>) {
        let rest = &self.steps[1..];
        (&self.steps[0], (!rest.is_empty()).then(|| Self { steps: rest.into() }))
    }

    /// Parses the path that starts at byte `start` of `text`; also returns its end.
    pub(crate) fn scan(text: &str, start: usize) -> Result<(Self, usize), PathError> {
        let mut scanner = Scanner { text, at: start, steps: Vec::new() };
        if scanner.peek() == Some(b'[') { scanner.enclosed() } else { scanner.plain() }?;
        Ok((Self { steps: scanner.steps.into() }, scanner.at))
    }
}

impl Step {
    /// Name without brackets and escapes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Subscript, counted from 0; `None` selects all values of the name.
    pub fn index(&self) -> Option<u32> {
        self.index
    }

    /// Whether the step is an attribute; only the last step can be one.
    pub fn is_attribute(&self) -> bool {
        self.is_attribute
    }
}

/// A parse error of a path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} at byte {at}")]
pub struct PathError {
    /// Byte offset of the error.
    pub at: usize,
    /// Reason, and what to write instead.
    pub what: &'static str,
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        match Self::scan(text, 0)? {
            (path, end) if end == text.len() => Ok(path),
            (_, at) => Err(PathError { at, what: "the path ends before the text does" }),
        }
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            f.write_str(if step.is_attribute { "/@" } else { "/" })?;
            write_name(&step.name, f)?;
            if let Some(index) = step.index {
                write!(f, "[{index}]")?;
            }
        }
        Ok(())
    }
}

fn write_name(name: &str, f: &mut Formatter<'_>) -> fmt::Result {
    if plain_length(name) == name.len() {
        return f.write_str(name);
    }
    f.write_char('[')?;
    for character in name.chars() {
        if matches!(character, ']' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(character)?;
    }
    f.write_char(']')
}

/// Length of the name without brackets at the start of `text`.
///
/// A hyphen belongs to a name, as in XPath. After digits alone it subtracts, because FIX tags
/// contain no hyphens.
fn plain_length(text: &str) -> usize {
    let mut digits_only = true;
    for (at, character) in text.char_indices() {
        let belongs = match character {
            '-' => at > 0 && !digits_only,
            '_' | '.' | ':' | '$' => true,
            _ => character.is_alphanumeric(),
        };
        if !belongs {
            return at;
        }
        digits_only &= character.is_ascii_digit();
    }
    text.len()
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    steps: Vec<Step>,
}

impl Scanner<'_> {
    fn plain(&mut self) -> Result<(), PathError> {
        if !self.skip(b'/') {
            return Err(self.error("a path starts with `/`"));
        }
        loop {
            let is_attribute = self.skip(b'@');
            let name = if self.skip(b'[') { self.bracketed()? } else { self.name()? };
            let index = if self.skip(b'[') { Some(self.subscript()?) } else { None };
            self.push(Step { name, index, is_attribute })?;
            if is_attribute {
                return Ok(());
            }
            if self.peek() == Some(b'@') {
                continue;
            }
            if !self.continues()? {
                return Ok(());
            }
            self.at += 1;
        }
    }

    /// Whether a slash at the current position continues the path instead of dividing.
    fn continues(&self) -> Result<bool, PathError> {
        let Some(behind) = self.text[self.at..].strip_prefix('/') else {
            return Ok(false);
        };
        // `//` would be the descendant axis of XPath.
        if behind.starts_with('/') {
            return Err(self.error("`//` is no step; to divide, write ` / ` between blanks"));
        }
        Ok(behind.starts_with(['@', '[']) || plain_length(behind) > 0)
    }

    fn name(&mut self) -> Result<Box<str>, PathError> {
        let rest = &self.text[self.at..];
        let name = &rest[..plain_length(rest)];
        if name.is_empty() {
            return Err(
                self.error("a name was expected; odd names stand in brackets, as in `/[odd name]`")
            );
        }
        self.at += name.len();
        Ok(name.into())
    }

    /// Parses a bracketed name after its opening bracket.
    fn bracketed(&mut self) -> Result<Box<str>, PathError> {
        let start = self.at;
        let mut name = String::new();
        let mut characters = self.text[start..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                ']' if name.is_empty() => break,
                ']' => {
                    self.at = start + offset + 1;
                    return Ok(name.into());
                }
                '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
                _ => name.push(character),
            }
        }
        Err(self.error("a name and `]` were expected behind `[`"))
    }

    /// Parses a subscript after its opening bracket.
    fn subscript(&mut self) -> Result<u32, PathError> {
        let rest = &self.text[self.at..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        match rest[..digits].parse() {
            Ok(index) if rest[digits..].starts_with(']') => {
                self.at += digits + 1;
                Ok(index)
            }
            _ => Err(self.error("a subscript is a number from 0, as in `/a[0]`")),
        }
    }

    /// Parses a path that is enclosed in brackets as a whole.
    fn enclosed(&mut self) -> Result<(), PathError> {
        let start = self.at + 1;
        let Some(length) = self.text[start..].find(']') else {
            return Err(self.error("`]` is missing: a bracket holds a whole path or a name"));
        };
        let Some(names) = self.text[start..start + length].strip_prefix('/') else {
            self.at = start;
            return Err(self.error("a path starts with `/`, also within brackets"));
        };
        for part in names.split(['/', '@']) {
            self.at = start + 1 + (part.as_ptr().addr() - names.as_ptr().addr());
            // `/@` separates an attribute as `@` does; the empty name between them is no step.
            let is_attribute = self.text[..self.at].ends_with('@');
            let is_spelling = self.text[self.at..].starts_with('@');
            if part.is_empty() && is_spelling && !is_attribute {
                continue;
            }
            let is_last = self.at + part.len() == start + length;
            if part.is_empty() || is_attribute && !is_last {
                return Err(self.error("a name was expected, and attributes come last"));
            }
            self.push(Step { name: part.into(), index: None, is_attribute })?;
        }
        self.at = start + length + 1;
        Ok(())
    }

    fn push(&mut self, step: Step) -> Result<(), PathError> {
        if self.steps.len() == STEPS_MAX {
            return Err(self.error("a path has 64 steps at most"));
        }
        self.steps.push(step);
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    fn error(&self, what: &'static str) -> PathError {
        PathError { at: self.at, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> Path {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_form_is_read() {
        let legs = path("/order/legs[2]/qty");
        assert_eq!(legs.steps().len(), 3);
        assert_eq!(legs.steps()[1].name(), "legs");
        assert_eq!(legs.steps()[1].index(), Some(2));
        assert!(path("/a/@b").steps()[1].is_attribute());
        assert_eq!(path("/55").single_name(), Some("55"));
        assert_eq!(path("/55[1]").single_name(), None);
        assert_eq!(path("/@a").steps().len(), 1);
        assert_eq!(path("/[odd \\] name]").steps()[0].name(), "odd ] name");
    }

    #[test]
    fn a_path_is_its_first_name_and_the_rest() {
        let whole = path("/orders/legs[2]/@qty");
        let (first, rest) = whole.split_first();
        assert_eq!((first.name(), rest), ("orders", Some(path("/legs[2]/@qty"))));
        assert_eq!(path("/55").split_first().1, None);
    }

    #[test]
    fn spellings_of_one_path_are_equal_and_print_alike() {
        for (one, other, printed) in [
            ("/FIXML/Order@Sym", "/FIXML/Order/@Sym", "/FIXML/Order/@Sym"),
            ("/[55]", "/55", "/55"),
            ("[/odd name/b]", "/[odd name]/b", "/[odd name]/b"),
            ("[/a/@b c]", "/a@[b c]", "/a/@[b c]"),
            ("[/a@b]", "/a/@b", "/a/@b"),
            ("/[un\\it]", "/unit", "/unit"),
        ] {
            assert_eq!(path(one), path(other), "{one}");
            assert_eq!(path(one).to_string(), printed);
        }
    }

    #[test]
    fn a_path_ends_where_an_operator_can_start() {
        for (text, end) in [
            ("/14 * /99", 3),
            ("/14-5", 3),
            ("/unit-price-5 ", 13),
            ("/14/ /99", 3),
            ("/a@b/c", 4),
            ("/a)/b", 2),
        ] {
            assert_eq!(Path::scan(text, 0).expect(text).1, end, "{text}");
        }
    }

    #[test]
    fn an_invalid_path_is_refused_at_its_position() {
        for (text, at) in [
            ("", 0),
            ("55", 0),
            ("/", 1),
            ("/a//b", 2),
            ("/*", 1),
            ("/a[x]", 3),
            ("/a[99999999999]", 3),
            ("/[]", 2),
            ("/[a", 2),
            ("[a]", 1),
            ("[/]", 2),
            ("[/a@b/c]", 4),
            ("[/a", 0),
            ("/a@b@c", 4),
            ("/a b", 2),
        ] {
            let error = text.parse::<Path>().expect_err(text);
            assert_eq!(error.at, at, "{text}: {error}");
        }
        let deep = "/a".repeat(STEPS_MAX + 1);
        assert!(deep.parse::<Path>().is_err());
        assert_eq!(path(&deep[2..]).steps().len(), STEPS_MAX);
    }

    proptest! {
        #[test]
        fn a_printed_path_parses_to_itself(
            names in prop::collection::vec((".{1,6}", prop::option::of(0..9_u32)), 1..5),
            is_attribute: bool,
        ) {
            let mut steps: Vec<Step> = Vec::new();
            for (name, index) in names {
                steps.push(Step { name: name.into(), index, is_attribute: false });
            }
            steps.last_mut().expect("a step").is_attribute = is_attribute;
            let path = Path { steps: steps.into() };
            prop_assert_eq!(path.to_string().parse(), Ok(path));
        }

        #[test]
        fn no_text_is_too_odd(text in "[/@\\[\\]a0 \\\\.-]{0,12}") {
            if let Ok(path) = text.parse::<Path>() {
                prop_assert_eq!(path.to_string().parse(), Ok(path));
            }
        }
    }
}
