//! Lists: the arguments of functions, and the projections of views.

use super::{Aggregates, Parser, Tall};
use crate::error::{Fault, FilterError};
use crate::expr::{Expr, Power};
use crate::filter::Limits;
use crate::function::Function;
use crate::lexer::Token;
use crate::path::Path;
use crate::projection::Projection;

/// Reads all of `text` as projections separated by commas.
pub(crate) fn parse_projections(
    text: &str,
    limits: &Limits,
) -> Result<Vec<Projection>, FilterError> {
    let mut parser = Parser::new(text, limits, Aggregates::Allowed)?;
    let mut list = Vec::new();
    loop {
        list.push(parser.projection()?);
        if matches!(parser.token, Token::End) {
            return Ok(list);
        }
        if !parser.skip_sign(",")? {
            return Err(parser.unexpected("`,` or the end"));
        }
    }
}

impl Parser<'_> {
    fn projection(&mut self) -> Result<Projection, FilterError> {
        let at = self.at;
        let expr = self.expression(Power::Or)?.expr;
        if !self.skip_word("AS")? {
            let is_over = matches!(self.token, Token::Sign(",") | Token::End);
            return match &expr {
                Expr::Field(path) if is_over => Ok(Projection { path: path.clone(), expr, at }),
                _ => Err(self.nameless(&expr)),
            };
        }
        let path = self.name()?;
        Ok(Projection { expr, path, at })
    }

    /// The path behind AS.
    fn name(&mut self) -> Result<Path, FilterError> {
        match self.token.clone() {
            Token::Path(path) => {
                self.advance()?;
                Ok(path)
            }
            Token::Word(word) => {
                let error = self.unexpected("AS and the path of the outcome");
                Err(error.with_hint(format!("write /{word}")))
            }
            _ => Err(self.unexpected("AS and the path of the outcome")),
        }
    }

    fn nameless(&self, expr: &Expr) -> FilterError {
        let error = self.unexpected("AS and the path of the outcome");
        match expr {
            Expr::Literal(literal) if literal.is_number() => {
                error.with_hint(format!("if that is the field, write /{literal}"))
            }
            _ => error,
        }
    }

    /// Reads the arguments of `function`, which was at the byte `at`, behind the parenthesis.
    pub(super) fn arguments(
        &mut self,
        function: Function,
        at: usize,
        parts: &mut Vec<Tall>,
    ) -> Result<(), FilterError> {
        if !function.is_aggregate() {
            return self.list(parts);
        }
        let fault = match self.aggregates {
            Aggregates::Refused => Fault::Aggregate(function.name()),
            Aggregates::Within => Fault::Nested(function.name()),
            Aggregates::Allowed => {
                self.aggregates = Aggregates::Within;
                let result = self.list(parts);
                self.aggregates = Aggregates::Allowed;
                return result;
            }
        };
        Err(FilterError::new(at, fault))
    }

    /// Reads values separated by commas, and the closing parenthesis.
    pub(super) fn list(&mut self, parts: &mut Vec<Tall>) -> Result<(), FilterError> {
        if self.skip_sign(")")? {
            return Ok(());
        }
        loop {
            parts.push(self.expression(Power::Or)?);
            if self.skip_sign(")")? {
                return Ok(());
            }
            if !self.skip_sign(",")? {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }
}
