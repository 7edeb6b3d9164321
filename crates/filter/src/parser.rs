//! From text to tree, by precedence climbing.

mod list;
mod pattern;

use crate::error::{Fault, FilterError};
use crate::expr::{Arithmetic, Expr, Literal, Power};
use crate::filter::Limits;
use crate::function::Function;
use crate::lexer::{Lexer, Token};
use crate::number::Number;
use crate::pattern::PatternBudget;
use crate::value::Comparison;
pub(crate) use list::parse_projections;

/// Whether aggregate functions may stand here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregates {
    /// No: this is about one message.
    Refused,
    /// Yes.
    Allowed,
    /// No: this stands within one.
    Within,
}

/// Reads all of `text`.
pub(crate) fn parse(
    text: &str,
    limits: &Limits,
    aggregates: Aggregates,
) -> Result<Expr, FilterError> {
    parse_counted(text, limits, aggregates, &mut 0)
}

/// The same; adds the steps of compiling its patterns to `work`, whatever comes of it.
pub(crate) fn parse_counted(
    text: &str,
    limits: &Limits,
    aggregates: Aggregates,
    work: &mut usize,
) -> Result<Expr, FilterError> {
    let mut parser = Parser::new(text, limits, aggregates)?;
    let read = parser.whole();
    *work += limits.patterns_work.saturating_sub(parser.patterns.work);
    read
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// Where `token` starts.
    at: usize,
    limits: &'a Limits,
    /// What is left for patterns.
    patterns: PatternBudget,
    /// How many there were.
    compiled: usize,
    aggregates: Aggregates,
    /// Expressions that are being read around the one at `token`.
    level: usize,
}

/// An expression and how many levels it has, so that later walks need no more stack than this one.
struct Tall {
    expr: Expr,
    height: usize,
}

impl From<Expr> for Tall {
    fn from(expr: Expr) -> Self {
        Self { expr, height: 1 }
    }
}

/// What may stand between two operands, or behind one.
#[derive(Clone, Copy)]
enum Infix {
    Or,
    And,
    Arithmetic(Arithmetic),
    Compare(Comparison),
    /// IN, BETWEEN, LIKE, BEGINS, ENDS, IS, or NOT before one of them.
    Middle,
}

impl Infix {
    fn power(self) -> Power {
        match self {
            Self::Or => Power::Or,
            Self::And => Power::And,
            Self::Compare(_) | Self::Middle => Power::Compare,
            Self::Arithmetic(operation) => operation.power(),
        }
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, limits: &'a Limits, aggregates: Aggregates) -> Result<Self, FilterError> {
        if text.len() > limits.length_bytes {
            let fault = Fault::TooLong { length: text.len(), limit: limits.length_bytes };
            return Err(FilterError::new(0, fault));
        }
        let mut lexer = Lexer::new(text);
        let (token, at) = lexer.next()?;
        let (patterns, compiled) = (limits.patterns(), 0);
        Ok(Self { lexer, token, at, limits, patterns, compiled, aggregates, level: 0 })
    }

    fn whole(&mut self) -> Result<Expr, FilterError> {
        let expr = self.expression(Power::Or)?.expr;
        match self.token {
            Token::End => Ok(expr),
            Token::Sign(")") => Err(self.unexpected("the end, AND or OR").with_hint("remove `)`")),
            _ => Err(self.unexpected("an operator, AND, OR or the end")),
        }
    }

    /// Reads an expression that nothing within holds together less than `least`.
    fn expression(&mut self, least: Power) -> Result<Tall, FilterError> {
        self.level += 1;
        self.check_depth(self.level)?;
        let mut left = self.operand()?;
        while let Some(infix) = self.infix().filter(|infix| infix.power() >= least) {
            left = self.join(left, infix)?;
            let chains = self.infix().is_some_and(|next| next.power() == Power::Compare);
            if infix.power() == Power::Compare && chains {
                let error = self.unexpected("AND, OR or the end");
                return Err(error.with_hint("comparisons do not chain: join them by AND"));
            }
        }
        self.level -= 1;
        Ok(left)
    }

    fn infix(&self) -> Option<Infix> {
        Some(match self.token {
            Token::Sign("+") => Infix::Arithmetic(Arithmetic::Add),
            Token::Sign("-") => Infix::Arithmetic(Arithmetic::Subtract),
            Token::Sign("*") => Infix::Arithmetic(Arithmetic::Multiply),
            Token::Sign("/") => Infix::Arithmetic(Arithmetic::Divide),
            Token::Sign("%") => Infix::Arithmetic(Arithmetic::Remainder),
            Token::Sign("=" | "==") => Infix::Compare(Comparison::Equal),
            Token::Sign("<>" | "!=") => Infix::Compare(Comparison::NotEqual),
            Token::Sign("<") => Infix::Compare(Comparison::Less),
            Token::Sign("<=") => Infix::Compare(Comparison::LessOrEqual),
            Token::Sign(">") => Infix::Compare(Comparison::Greater),
            Token::Sign(">=") => Infix::Compare(Comparison::GreaterOrEqual),
            Token::Word(word) => match word.to_ascii_uppercase().as_str() {
                "OR" => Infix::Or,
                "AND" => Infix::And,
                "MOD" => Infix::Arithmetic(Arithmetic::Remainder),
                "IN" | "BETWEEN" | "LIKE" | "BEGINS" | "ENDS" | "IS" | "NOT" => Infix::Middle,
                _ => return None,
            },
            _ => return None,
        })
    }

    fn join(&mut self, left: Tall, infix: Infix) -> Result<Tall, FilterError> {
        match infix {
            Infix::Or => self.joined(left, "OR", Power::And, Expr::Or),
            Infix::And => self.joined(left, "AND", Power::Not, Expr::And),
            Infix::Middle => self.middle(left),
            Infix::Compare(comparison) => {
                self.advance()?;
                let right = self.expression(Power::Sum)?;
                self.tall([left, right], |parts| Expr::Compare(comparison, parts.into()))
            }
            Infix::Arithmetic(operation) => {
                self.advance()?;
                let tighter =
                    if operation.power() == Power::Sum { Power::Product } else { Power::Sign };
                let right = self.expression(tighter)?;
                self.tall([left, right], |parts| Expr::Arithmetic(operation, parts.into()))
            }
        }
    }

    /// Reads the rest of `first AND second AND third`, or the same with OR.
    fn joined(
        &mut self,
        first: Tall,
        word: &str,
        least: Power,
        make: fn(Vec<Expr>) -> Expr,
    ) -> Result<Tall, FilterError> {
        let mut parts = vec![first];
        while self.skip_word(word)? {
            parts.push(self.expression(least)?);
        }
        self.tall(parts, make)
    }

    /// Reads what may have NOT before it, behind `subject`.
    fn middle(&mut self, subject: Tall) -> Result<Tall, FilterError> {
        if self.skip_word("IS")? {
            let is_denied = self.skip_word("NOT")?;
            let make = if self.skip_word("NULL")? {
                Expr::IsNull
            } else if self.skip_word("NAN")? {
                Expr::IsNan
            } else {
                return Err(self.unexpected("NULL, NOT NULL or NAN"));
            };
            let made = self.tall([subject], |[part]| make(part.into()))?;
            return self.denied(made, is_denied);
        }
        let is_denied = self.skip_word("NOT")?;
        let made = if self.skip_word("IN")? {
            self.set(subject, Expr::In)
        } else if self.skip_word("BETWEEN")? {
            let low = self.expression(Power::Sum)?;
            self.expect_word("AND", "AND between the two limits")?;
            let high = self.expression(Power::Sum)?;
            self.tall([subject, low, high], |parts| Expr::Between(parts.into()))
        } else if self.skip_word("LIKE")? {
            let pattern = self.pattern()?;
            self.tall([subject], |[part]| Expr::Like(part.into(), pattern))
        } else if self.skip_word("BEGINS")? {
            self.expect_word("WITH", "WITH")?;
            self.set(subject, Expr::BeginsWith)
        } else if self.skip_word("ENDS")? {
            self.expect_word("WITH", "WITH")?;
            self.set(subject, Expr::EndsWith)
        } else {
            return Err(self.unexpected("IN, BETWEEN, LIKE, BEGINS WITH or ENDS WITH"));
        }?;
        self.denied(made, is_denied)
    }

    fn denied(&self, made: Tall, is_denied: bool) -> Result<Tall, FilterError> {
        if is_denied { self.tall([made], |[part]| Expr::Not(part.into())) } else { Ok(made) }
    }

    /// Reads the set behind `subject`: a list in parentheses, or for affixes a single text.
    fn set(
        &mut self,
        subject: Tall,
        make: fn(Box<Expr>, Vec<Expr>) -> Expr,
    ) -> Result<Tall, FilterError> {
        let mut parts = vec![subject];
        if matches!(self.token, Token::Sign("(")) {
            self.advance()?;
            self.list(&mut parts)?;
            if parts.len() == 1 {
                return Err(self.unexpected("a value"));
            }
        } else if matches!(make(Expr::Literal(Literal::Null).into(), vec![]), Expr::In(..)) {
            return Err(self.unexpected("`(` and a list of values"));
        } else {
            parts.push(self.expression(Power::Sum)?);
        }
        self.tall(parts, |mut parts| {
            let set = parts.split_off(1);
            make(parts.remove(0).into(), set)
        })
    }

    fn operand(&mut self) -> Result<Tall, FilterError> {
        let at = self.at;
        match self.token.clone() {
            Token::Path(path) => {
                self.advance()?;
                Ok(Expr::Field(path).into())
            }
            Token::Number(number) => {
                self.advance()?;
                Ok(Expr::Literal(number.into()).into())
            }
            Token::Text(text) => {
                self.advance()?;
                Ok(Expr::Literal(Literal::Text(text.into())).into())
            }
            Token::Sign("(") => {
                self.advance()?;
                let inner = self.expression(Power::Or)?;
                if self.skip_sign(")")? { Ok(inner) } else { Err(self.unexpected("`)`")) }
            }
            Token::Sign("-") => self.negative(),
            Token::Word(word) => {
                self.advance()?;
                self.word(word, at)
            }
            _ => Err(self.unexpected("a field, a value or a function")),
        }
    }

    fn negative(&mut self) -> Result<Tall, FilterError> {
        self.advance()?;
        if let Token::Number(number) = self.token {
            self.advance()?;
            return Ok(Expr::Literal(negated(number).into()).into());
        }
        let part = self.expression(Power::Sign)?;
        self.tall([part], |[part]| Expr::Negate(part.into()))
    }

    /// Reads what starts with `word`, which was at the byte `at` and is behind.
    fn word(&mut self, word: &'a str, at: usize) -> Result<Tall, FilterError> {
        let literal = match word.to_ascii_uppercase().as_str() {
            "NOT" => {
                let part = self.expression(Power::Not)?;
                return self.tall([part], |[part]| Expr::Not(part.into()));
            }
            "TRUE" => Literal::Bool(true),
            "FALSE" => Literal::Bool(false),
            "NULL" => Literal::Null,
            _ if matches!(self.token, Token::Sign("(")) => return self.call(word, at),
            _ => {
                let found = format!("`{word}`");
                let fault = Fault::Unexpected { wanted: "a field, a value or a function", found };
                let hint = format!("write '{word}' if it is a text, /{word} if it is a field");
                return Err(FilterError::new(at, fault).with_hint(hint));
            }
        };
        Ok(Expr::Literal(literal).into())
    }

    fn call(&mut self, name: &str, at: usize) -> Result<Tall, FilterError> {
        let Some(function) = Function::named(name) else {
            let error = FilterError::new(at, Fault::Function(name.to_owned()));
            return Err(match Function::like(name) {
                Some(near) => error.with_hint(format!("write {near}")),
                None => error,
            });
        };
        self.advance()?;
        let mut parts = Vec::new();
        self.arguments(function, at, &mut parts)?;
        let refused = |wanted: String| {
            FilterError::new(at, Fault::Arguments { function: function.name(), wanted })
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
            parts[1].expr = Expr::Pattern(self.compiled(text, has_groups, at)?);
        }
        self.tall(parts, |parts| Expr::Call(function, parts))
    }

    /// One expression of `parts`, if that is not too high.
    fn tall<T, P>(&self, parts: T, make: impl FnOnce(P) -> Expr) -> Result<Tall, FilterError>
    where
        T: Parts<Exprs = P>,
    {
        let (height, parts) = parts.split();
        self.check_depth(height + 1)?;
        Ok(Tall { expr: make(parts), height: height + 1 })
    }

    fn check_depth(&self, depth: usize) -> Result<(), FilterError> {
        if depth <= self.limits.depth {
            return Ok(());
        }
        Err(FilterError::new(self.at, Fault::TooDeep(self.limits.depth)))
    }

    fn advance(&mut self) -> Result<(), FilterError> {
        (self.token, self.at) = self.lexer.next()?;
        Ok(())
    }

    fn skip_sign(&mut self, sign: &str) -> Result<bool, FilterError> {
        let is_here = matches!(self.token, Token::Sign(here) if here == sign);
        if is_here {
            self.advance()?;
        }
        Ok(is_here)
    }

    fn skip_word(&mut self, word: &str) -> Result<bool, FilterError> {
        let is_here = matches!(self.token, Token::Word(here) if here.eq_ignore_ascii_case(word));
        if is_here {
            self.advance()?;
        }
        Ok(is_here)
    }

    fn expect_word(&mut self, word: &str, wanted: &'static str) -> Result<(), FilterError> {
        if self.skip_word(word)? { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    fn unexpected(&self, wanted: &'static str) -> FilterError {
        let found = match &self.token {
            Token::Path(path) => format!("`{path}`"),
            Token::Number(number) => format!("`{number}`"),
            Token::Text(_) => "a text".to_owned(),
            Token::Word(word) => format!("`{word}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        };
        FilterError::new(self.at, Fault::Unexpected { wanted, found })
    }
}

/// Expressions with their heights, in the shape that the expression around them wants.
trait Parts {
    type Exprs;
    fn split(self) -> (usize, Self::Exprs);
}

impl<const N: usize> Parts for [Tall; N] {
    type Exprs = [Expr; N];

    fn split(self) -> (usize, [Expr; N]) {
        let height = self.iter().map(|part| part.height).max().unwrap_or(0);
        (height, self.map(|part| part.expr))
    }
}

impl Parts for Vec<Tall> {
    type Exprs = Vec<Expr>;

    fn split(self) -> (usize, Vec<Expr>) {
        let height = self.iter().map(|part| part.height).max().unwrap_or(0);
        (height, self.into_iter().map(|part| part.expr).collect())
    }
}

fn negated(number: Number) -> Number {
    const BEYOND_INT: u64 = i64::MAX as u64 + 1;
    match number {
        Number::Int(number) => Number::Int(-number),
        Number::Uint(BEYOND_INT) => Number::Int(i64::MIN),
        other => Number::Float(-other.to_f64()),
    }
}
