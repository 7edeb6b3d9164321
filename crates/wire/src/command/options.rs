//! The list of further wishes: words, and names with values, which may be lists in brackets.

/// Errors of a list of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A bracket is never closed, or was never opened.
    #[error("at byte {at}: this bracket has no other half")]
    Bracket {
        /// The position.
        at: usize,
    },
    /// A list within a list.
    #[error("at byte {at}: brackets within brackets")]
    Nested {
        /// The position.
        at: usize,
    },
}

/// The options of a command, such as `oof,top_n=10,projection=[/a,/b]`, one by one.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(&'a str);

impl<'a> Options<'a> {
    /// Checks the brackets of a list.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn parse(list: &'a str) -> Result<Self, OptionsError> {
        let mut open = None;
        for (at, byte) in list.bytes().enumerate() {
            match (byte, open) {
                (b'[', Some(_)) => return Err(OptionsError::Nested { at }),
                (b'[', None) => open = Some(at),
                (b']', None) => return Err(OptionsError::Bracket { at }),
                (b']', Some(_)) => open = None,
                _ => {}
            }
        }
        match open {
            Some(at) => Err(OptionsError::Bracket { at }),
            None => Ok(Self(list)),
        }
    }

    /// Each option's name and value, without brackets; a mere word has none.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let options = parts(self.0).map(str::trim).filter(|option| !option.is_empty());
        options.map(|option| match option.split_once('=') {
            Some((name, value)) => (name.trim(), Some(bare(value.trim()))),
            None => (option, None),
        })
    }

    /// Whether the word is there.
    pub fn has(self, word: &str) -> bool {
        self.iter().any(|(name, value)| name == word && value.is_none())
    }

    /// The value of an option: the last one, if it is there several times.
    pub fn value(self, name: &str) -> Option<&'a str> {
        self.iter().filter(|(known, _)| *known == name).last()?.1
    }

    /// The parts of an option's value, which is a list.
    pub fn list(self, name: &str) -> impl Iterator<Item = &'a str> {
        let parts = self.value(name).into_iter().flat_map(parts);
        parts.map(str::trim).filter(|part| !part.is_empty())
    }
}

fn bare(value: &str) -> &str {
    value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value)
}

/// Parts between commas outside brackets.
fn parts(list: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    list.split(move |letter| {
        inside = letter == '[' || inside && letter != ']';
        letter == ',' && !inside
    })
}
