//! Recursive-descent parser with precedence climbing: from the text of a filter to its expression
//! tree.

mod cursor;
mod infix;
mod patterns;
mod subtree;

use crate::error::{FilterError, FilterErrorKind};
use crate::expr::{Expr, Literal, Precedence};
use crate::function::Function;
use crate::lexer::Token;
use crate::limits::FilterLimits;
use crate::path::Path;
use crate::pattern::Pattern;
use cursor::Cursor;
use infix::Infix;
use patterns::PatternCompiler;
use std::collections::HashSet;
use subtree::{Operands, Subtree};

/// Whether aggregate functions are allowed at the current position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregates {
    /// Not allowed: the expression is about one message.
    Forbidden,
    /// Allowed.
    Allowed,
    /// Not allowed: the position is an argument of an aggregate function.
    Nested,
}

/// Parses an expression of a view, which may call aggregate functions.
///
/// # Errors
///
/// If the text is not an expression, or exceeds `limits`.
pub fn parse_expr(text: &str, limits: &FilterLimits) -> Result<Expr, FilterError> {
    parse(text, limits, Aggregates::Allowed)
}

/// Parses all of `text`.
pub(crate) fn parse(
    text: &str,
    limits: &FilterLimits,
    aggregates: Aggregates,
) -> Result<Expr, FilterError> {
    parse_counted(text, limits, aggregates, &mut 0)
}

/// Parses all of `text` and adds the steps of compiling its patterns to `work`, also on error.
pub(crate) fn parse_counted(
    text: &str,
    limits: &FilterLimits,
    aggregates: Aggregates,
    work: &mut usize,
) -> Result<Expr, FilterError> {
    let mut parser = Parser::new(text, limits, aggregates)?;
    let read = parser.parse_all();
    *work += parser.patterns.work();
    read
}

/// Parses all of `text` as projections separated by commas.
pub(crate) fn parse_projections(
    text: &str,
    limits: &FilterLimits,
) -> Result<Vec<ProjectionParts>, FilterError> {
    let mut parser = Parser::new(text, limits, Aggregates::Allowed)?;
    let mut list = Vec::new();
    loop {
        list.push(parser.projection()?);
        if matches!(parser.cursor.token, Token::End) {
            return Ok(list);
        }
        if !parser.cursor.skip_symbol(",")? {
            return Err(parser.cursor.unexpected("`,` or the end"));
        }
    }
}

/// Expression, result path, and offset of the expression in its text.
type ProjectionParts = (Expr, Path, usize);

struct Parser<'a> {
    cursor: Cursor<'a>,
    limits: &'a FilterLimits,
    patterns: PatternCompiler<'a>,
    aggregates: Aggregates,
    /// Different fields so far.
    fields: HashSet<Path>,
    /// Current recursion depth.
    level: usize,
}

impl<'a> Parser<'a> {
    fn new(
        text: &'a str,
        limits: &'a FilterLimits,
        aggregates: Aggregates,
    ) -> Result<Self, FilterError> {
        if text.len() > limits.length_bytes {
            let kind = FilterErrorKind::TooLong { length: text.len(), limit: limits.length_bytes };
            return Err(FilterError::new(0, kind));
        }
        let (cursor, patterns) = (Cursor::new(text)?, PatternCompiler::new(limits));
        Ok(Self { cursor, limits, patterns, aggregates, fields: HashSet::new(), level: 0 })
    }

    fn parse_all(&mut self) -> Result<Expr, FilterError> {
        let expr = self.expression(Precedence::Or)?.expr;
        match self.cursor.token {
            Token::End => Ok(expr),
            Token::Symbol(")") => {
                Err(self.cursor.unexpected("the end, AND or OR").with_hint("remove `)`"))
            }
            _ => Err(self.cursor.unexpected("an operator, AND, OR or the end")),
        }
    }

    /// Parses an expression of operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: Precedence) -> Result<Subtree, FilterError> {
        self.level += 1;
        self.check_depth(self.level)?;
        let mut left = self.operand()?;
        while let Some(infix) =
            Infix::of(&self.cursor.token).filter(|infix| infix.precedence() >= least)
        {
            left = self.join(left, infix)?;
            // SQL-like comparisons do not chain: `1 < /a < 3` would compare a truth value with 3.
            let chains = Infix::of(&self.cursor.token)
                .is_some_and(|next| next.precedence() == Precedence::Compare);
            if infix.precedence() == Precedence::Compare && chains {
                let error = self.cursor.unexpected("AND, OR or the end");
                return Err(error.with_hint("comparisons do not chain: join them by AND"));
            }
        }
        self.level -= 1;
        Ok(left)
    }

    fn join(&mut self, left: Subtree, infix: Infix) -> Result<Subtree, FilterError> {
        match infix {
            Infix::Or => self.joined(left, "OR", Precedence::And, Expr::Or),
            Infix::And => self.joined(left, "AND", Precedence::Not, Expr::And),
            Infix::Predicate => self.predicate(left),
            Infix::Compare(comparison) => {
                self.cursor.advance()?;
                let right = self.expression(Precedence::Sum)?;
                self.build([left, right], |parts| Expr::Compare(comparison, parts.into()))
            }
            Infix::Arithmetic(operation) => {
                self.cursor.advance()?;
                let tighter = if operation.precedence() == Precedence::Sum {
                    Precedence::Product
                } else {
                    Precedence::Sign
                };
                let right = self.expression(tighter)?;
                self.build([left, right], |parts| Expr::Arithmetic(operation, parts.into()))
            }
        }
    }

    /// Parses the rest of `first AND second AND third`, or the same with OR.
    fn joined(
        &mut self,
        first: Subtree,
        word: &str,
        least: Precedence,
        make: fn(Vec<Expr>) -> Expr,
    ) -> Result<Subtree, FilterError> {
        let mut parts = vec![first];
        while self.cursor.skip_word(word)? {
            parts.push(self.expression(least)?);
        }
        self.build(parts, make)
    }

    /// Parses a predicate that may contain NOT, after its `subject`.
    fn predicate(&mut self, subject: Subtree) -> Result<Subtree, FilterError> {
        if self.cursor.skip_word("IS")? {
            let is_negated = self.cursor.skip_word("NOT")?;
            let make = if self.cursor.skip_word("NULL")? {
                Expr::IsNull
            } else if self.cursor.skip_word("NAN")? {
                Expr::IsNan
            } else {
                return Err(self.cursor.unexpected("NULL, NOT NULL or NAN"));
            };
            let made = self.build([subject], |[part]| make(part.into()))?;
            return self.negated_if(made, is_negated);
        }
        let is_negated = self.cursor.skip_word("NOT")?;
        let made = if self.cursor.skip_word("IN")? {
            self.set(subject, Expr::In)
        } else if self.cursor.skip_word("BETWEEN")? {
            let low = self.expression(Precedence::Sum)?;
            self.cursor.expect_word("AND", "AND between the two limits")?;
            let high = self.expression(Precedence::Sum)?;
            self.build([subject, low, high], |parts| Expr::Between(parts.into()))
        } else if self.cursor.skip_word("LIKE")? {
            let pattern = self.pattern()?;
            self.build([subject], |[part]| Expr::Like(part.into(), pattern))
        } else if self.cursor.skip_word("BEGINS")? {
            self.cursor.expect_word("WITH", "WITH")?;
            self.set(subject, Expr::BeginsWith)
        } else if self.cursor.skip_word("ENDS")? {
            self.cursor.expect_word("WITH", "WITH")?;
            self.set(subject, Expr::EndsWith)
        } else {
            return Err(self.cursor.unexpected("IN, BETWEEN, LIKE, BEGINS WITH or ENDS WITH"));
        }?;
        self.negated_if(made, is_negated)
    }

    fn negated_if(&self, made: Subtree, is_negated: bool) -> Result<Subtree, FilterError> {
        if is_negated { self.build([made], |[part]| Expr::Not(part.into())) } else { Ok(made) }
    }

    fn pattern(&mut self) -> Result<Pattern, FilterError> {
        let Token::Text(text) = self.cursor.token.clone() else {
            return Err(self.cursor.unexpected("a pattern in quotes"));
        };
        let at = self.cursor.at;
        self.cursor.advance()?;
        self.patterns.compile(&text, false, at)
    }

    /// Parses the set after `subject`: a list in parentheses, or a single text for BEGINS WITH and
    /// ENDS WITH.
    fn set(
        &mut self,
        subject: Subtree,
        make: fn(Box<Expr>, Vec<Expr>) -> Expr,
    ) -> Result<Subtree, FilterError> {
        let mut parts = vec![subject];
        if matches!(self.cursor.token, Token::Symbol("(")) {
            self.cursor.advance()?;
            self.list(&mut parts)?;
            if parts.len() == 1 {
                return Err(self.cursor.unexpected("a value"));
            }
        // Only IN requires a list; the affix predicates also take a single text.
        } else if matches!(make(Expr::Literal(Literal::Null).into(), vec![]), Expr::In(..)) {
            return Err(self.cursor.unexpected("`(` and a list of values"));
        } else {
            parts.push(self.expression(Precedence::Sum)?);
        }
        self.build(parts, |mut parts| {
            let set = parts.split_off(1);
            make(parts.remove(0).into(), set)
        })
    }

    fn operand(&mut self) -> Result<Subtree, FilterError> {
        let at = self.cursor.at;
        match self.cursor.token.clone() {
            Token::Path(path) => {
                self.add_field(&path)?;
                self.cursor.advance()?;
                Ok(Expr::Field(path).into())
            }
            Token::Number(number) => {
                self.cursor.advance()?;
                Ok(Expr::Literal(number.into()).into())
            }
            Token::Text(text) => {
                self.cursor.advance()?;
                Ok(Expr::Literal(Literal::Text(text.into())).into())
            }
            Token::Symbol("(") => {
                self.cursor.advance()?;
                let inner = self.expression(Precedence::Or)?;
                if self.cursor.skip_symbol(")")? {
                    Ok(inner)
                } else {
                    Err(self.cursor.unexpected("`)`"))
                }
            }
            Token::Symbol("-") => self.negative(),
            Token::Word(word) => {
                self.cursor.advance()?;
                self.word(word, at)
            }
            _ => Err(self.cursor.unexpected("a field, a value or a function")),
        }
    }

    /// Counts the field at the cursor, unless it is known already.
    fn add_field(&mut self, path: &Path) -> Result<(), FilterError> {
        if self.fields.contains(path) {
            return Ok(());
        }
        if self.fields.len() == self.limits.fields {
            let kind = FilterErrorKind::TooManyFields(self.limits.fields);
            return Err(FilterError::new(self.cursor.at, kind));
        }
        self.fields.insert(path.clone());
        Ok(())
    }

    fn negative(&mut self) -> Result<Subtree, FilterError> {
        self.cursor.advance()?;
        if let Token::Number(number) = self.cursor.token {
            self.cursor.advance()?;
            // A sign before digits belongs to the literal: `-9223372036854775808` fits an i64, its
            // digits alone do not.
            return Ok(Expr::Literal(number.negated().into()).into());
        }
        let part = self.expression(Precedence::Sign)?;
        self.build([part], |[part]| Expr::Negate(part.into()))
    }

    /// Parses an operand that starts with `word`, already consumed at byte `at`.
    fn word(&mut self, word: &'a str, at: usize) -> Result<Subtree, FilterError> {
        let literal = match word.to_ascii_uppercase().as_str() {
            "NOT" => {
                let part = self.expression(Precedence::Not)?;
                return self.build([part], |[part]| Expr::Not(part.into()));
            }
            "TRUE" => Literal::Bool(true),
            "FALSE" => Literal::Bool(false),
            "NULL" => Literal::Null,
            _ if matches!(self.cursor.token, Token::Symbol("(")) => return self.call(word, at),
            _ => {
                let found = format!("`{word}`");
                let kind =
                    FilterErrorKind::Unexpected { wanted: "a field, a value or a function", found };
                let hint = format!("write '{word}' if it is a text, /{word} if it is a field");
                return Err(FilterError::new(at, kind).with_hint(hint));
            }
        };
        Ok(Expr::Literal(literal).into())
    }

    fn call(&mut self, name: &str, at: usize) -> Result<Subtree, FilterError> {
        let Some(function) = Function::named(name) else {
            let error = FilterError::new(at, FilterErrorKind::Function(name.to_owned()));
            return Err(match Function::like(name) {
                Some(near) => error.with_hint(format!("write {near}")),
                None => error,
            });
        };
        self.cursor.advance()?;
        let mut parts = Vec::new();
        self.arguments(function, at, &mut parts)?;
        let refused = |wanted: String| {
            FilterError::new(at, FilterErrorKind::Arguments { function: function.name(), wanted })
        };
        if !function.takes(parts.len()) {
            return Err(refused(format!(
                "{} arguments, not {}",
                function.arguments(),
                parts.len()
            )));
        }
        if function.takes_array() && !matches!(parts[0].expr, Expr::Field(_)) {
            return Err(refused("a field as its first argument".to_owned()));
        }
        if function.takes_pattern() {
            let Expr::Literal(Literal::Text(text)) = &parts[1].expr else {
                return Err(refused("a pattern in quotes as its second argument".to_owned()));
            };
            let has_groups = function == Function::RegexpReplace;
            parts[1].expr = Expr::Pattern(self.patterns.compile(text, has_groups, at)?);
        }
        self.build(parts, |parts| Expr::Call(function, parts))
    }

    fn projection(&mut self) -> Result<ProjectionParts, FilterError> {
        let at = self.cursor.at;
        // The limit concerns one expression: a view may have more columns.
        self.fields.clear();
        let expr = self.expression(Precedence::Or)?.expr;
        if !self.cursor.skip_word("AS")? {
            let is_over = matches!(self.cursor.token, Token::Symbol(",") | Token::End);
            return match &expr {
                Expr::Field(path) if is_over => Ok((expr.clone(), path.clone(), at)),
                _ => Err(self.nameless(&expr)),
            };
        }
        let path = self.name()?;
        Ok((expr, path, at))
    }

    /// Parses the path after AS.
    fn name(&mut self) -> Result<Path, FilterError> {
        match self.cursor.token.clone() {
            Token::Path(path) => {
                self.cursor.advance()?;
                Ok(path)
            }
            Token::Word(word) => {
                let error = self.cursor.unexpected("AS and the path of the outcome");
                Err(error.with_hint(format!("write /{word}")))
            }
            _ => Err(self.cursor.unexpected("AS and the path of the outcome")),
        }
    }

    fn nameless(&self, expr: &Expr) -> FilterError {
        let error = self.cursor.unexpected("AS and the path of the outcome");
        match expr {
            Expr::Literal(literal) if literal.is_number() => {
                error.with_hint(format!("if that is the field, write /{literal}"))
            }
            _ => error,
        }
    }

    /// Parses the arguments of `function`, called at byte `at`, after the opening parenthesis.
    fn arguments(
        &mut self,
        function: Function,
        at: usize,
        parts: &mut Vec<Subtree>,
    ) -> Result<(), FilterError> {
        if !function.is_aggregate() {
            return self.list(parts);
        }
        let kind = match self.aggregates {
            Aggregates::Forbidden => FilterErrorKind::Aggregate(function.name()),
            Aggregates::Nested => FilterErrorKind::Nested(function.name()),
            Aggregates::Allowed => {
                // An aggregate of an aggregate would need two passes over the messages.
                self.aggregates = Aggregates::Nested;
                let result = self.list(parts);
                self.aggregates = Aggregates::Allowed;
                return result;
            }
        };
        Err(FilterError::new(at, kind))
    }

    /// Parses values separated by commas, and the closing parenthesis.
    fn list(&mut self, parts: &mut Vec<Subtree>) -> Result<(), FilterError> {
        if self.cursor.skip_symbol(")")? {
            return Ok(());
        }
        loop {
            parts.push(self.expression(Precedence::Or)?);
            if self.cursor.skip_symbol(")")? {
                return Ok(());
            }
            if !self.cursor.skip_symbol(",")? {
                return Err(self.cursor.unexpected("`,` or `)`"));
            }
        }
    }

    /// Builds one expression of `parts`, unless it exceeds the depth limit.
    fn build<T, P>(&self, parts: T, make: impl FnOnce(P) -> Expr) -> Result<Subtree, FilterError>
    where
        T: Operands<Exprs = P>,
    {
        let (height, parts) = parts.split();
        self.check_depth(height + 1)?;
        Ok(Subtree { expr: make(parts), height: height + 1 })
    }

    fn check_depth(&self, depth: usize) -> Result<(), FilterError> {
        if depth <= self.limits.depth {
            return Ok(());
        }
        Err(FilterError::new(self.cursor.at, FilterErrorKind::TooDeep(self.limits.depth)))
    }
}
