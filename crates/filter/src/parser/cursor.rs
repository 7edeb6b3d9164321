//! The current token of the parser and the steps over it.

use crate::error::{FilterError, FilterErrorKind};
use crate::lexer::{Lexer, Token};

/// A lexer with one token of lookahead.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    /// The next token, not consumed yet.
    pub(super) token: Token<'a>,
    /// Byte offset at which `token` starts.
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, FilterError> {
        let mut lexer = Lexer::new(text);
        let (token, at) = lexer.next()?;
        Ok(Self { lexer, token, at })
    }

    pub(super) fn advance(&mut self) -> Result<(), FilterError> {
        (self.token, self.at) = self.lexer.next()?;
        Ok(())
    }

    /// Consumes the token if it is `symbol`, and returns whether it did.
    pub(super) fn skip_symbol(&mut self, symbol: &str) -> Result<bool, FilterError> {
        let is_here = matches!(self.token, Token::Symbol(here) if here == symbol);
        if is_here {
            self.advance()?;
        }
        Ok(is_here)
    }

    /// Consumes the token if it is the keyword `word` in any case, and returns whether it did.
    pub(super) fn skip_word(&mut self, word: &str) -> Result<bool, FilterError> {
        let is_here = matches!(self.token, Token::Word(here) if here.eq_ignore_ascii_case(word));
        if is_here {
            self.advance()?;
        }
        Ok(is_here)
    }

    pub(super) fn expect_word(
        &mut self,
        word: &str,
        wanted: &'static str,
    ) -> Result<(), FilterError> {
        if self.skip_word(word)? { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    /// The error for a token other than `wanted`.
    pub(super) fn unexpected(&self, wanted: &'static str) -> FilterError {
        let found = match &self.token {
            Token::Path(path) => format!("`{path}`"),
            Token::Number(number) => format!("`{number}`"),
            Token::Text(_) => "a text".to_owned(),
            Token::Word(word) => format!("`{word}`"),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::End => "the end".to_owned(),
        };
        FilterError::new(self.at, FilterErrorKind::Unexpected { wanted, found })
    }
}
