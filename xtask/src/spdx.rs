//! Licence expressions: `MIT OR (Apache-2.0 WITH LLVM-exception AND Zlib)`.

/// Whether a licence expression can be met with licences that `allowed` accepts.
///
/// Knows `AND` (which binds tighter), `OR`, `WITH`, parentheses, and the old way to write `OR`
/// as a slash. An exception is passed on as part of its licence: `Apache-2.0 WITH X`.
///
/// # Errors
/// If the text is no expression; the error says where it stops being one.
pub(crate) fn is_met(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut parser = Parser { words: words(expression), at: 0, allowed };
    let met = parser.either()?;
    match parser.peek() {
        None => Ok(met),
        Some(word) => Err(format!("'{word}' was not expected in '{expression}'")),
    }
}

fn words(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Parser<'a> {
    words: Vec<String>,
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    /// Steps over `word` if it is next.
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.at += usize::from(is_next);
        is_next
    }

    fn either(&mut self) -> Result<bool, String> {
        let mut met = self.both()?;
        while self.take("OR") {
            met |= self.both()?;
        }
        Ok(met)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut met = self.one()?;
        while self.take("AND") {
            met &= self.one()?;
        }
        Ok(met)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let met = self.either()?;
            return if self.take(")") { Ok(met) } else { Err("a ')' is missing".into()) };
        }
        let mut licence = self.name()?;
        if self.take("WITH") {
            licence = format!("{licence} WITH {}", self.name()?);
        }
        Ok((self.allowed)(&licence))
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek() {
            Some("AND" | "OR" | "WITH" | "(" | ")") | None => {
                Err(format!("a licence is missing before '{}'", self.peek().unwrap_or("the end")))
            }
            Some(word) => {
                let word = word.to_owned();
                self.at += 1;
                Ok(word)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_met;

    fn met(expression: &str) -> Result<bool, String> {
        is_met(expression, &|licence| {
            matches!(licence, "MIT" | "Zlib" | "Apache-2.0 WITH LLVM-exception")
        })
    }

    #[test]
    fn single_licences() {
        assert_eq!(met("MIT"), Ok(true));
        assert_eq!(met("GPL-3.0-only"), Ok(false));
    }

    #[test]
    fn either_is_enough_and_both_are_needed() {
        assert_eq!(met("GPL-2.0 OR MIT"), Ok(true));
        assert_eq!(met("MIT AND GPL-2.0"), Ok(false));
        assert_eq!(met("MIT AND Zlib"), Ok(true));
        assert_eq!(met("MIT/Apache-2.0"), Ok(true));
        assert_eq!(met("Apache-2.0 / GPL-2.0"), Ok(false));
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(met("MIT OR GPL-2.0 AND GPL-3.0"), Ok(true));
        assert_eq!(met("(MIT OR GPL-2.0) AND GPL-3.0"), Ok(false));
        assert_eq!(met("(MIT OR Apache-2.0) AND (Zlib)"), Ok(true));
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        assert_eq!(met("Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(met("Apache-2.0"), Ok(false));
        assert_eq!(met("GPL-2.0 WITH LLVM-exception"), Ok(false));
        assert_eq!(met("Apache-2.0 WITH LLVM-exception OR Apache-2.0"), Ok(true));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT Zlib", "MIT WITH", "()"] {
            assert!(met(text).is_err(), "{text}");
        }
    }
}
