//! Accumulators of aggregate functions. Values can be added and retracted.

use super::contribution::{Input, Need};
use super::decimal::Decimal;
use super::rational::Rational;
use super::value::ViewValue;
use lanecast_filter::Function;
use lanecast_filter::expr::Arithmetic;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Addition or retraction of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Add,
    Retract,
}

/// Kind of accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccumulatorKind {
    /// SUM, AVG
    Sum,
    /// COUNT
    Count,
    /// MIN, MAX
    Extremes,
    /// COUNT_DISTINCT
    Distinct,
}

/// State of an aggregate over the values of one expression.
#[derive(Clone, Debug)]
pub(crate) enum Accumulator {
    Sum {
        sum: Decimal,
        /// Number of values in the sum.
        count: u64,
        /// Number of values that are not numbers.
        nans: u64,
    },
    Count(u64),
    /// Count of each distinct value.
    Extremes(Multiset),
    Distinct(Multiset),
}

type Multiset = BTreeMap<Value, u64>;

/// A distinct value. Numbers sort before texts.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(Decimal),
    Text(Box<[u8]>),
}

impl Step {
    #[inline]
    pub(crate) fn apply(self, count: &mut u64) {
        match self {
            Self::Add => *count += 1,
            Self::Retract => {
                debug_assert!(*count > 0, "only what was added is taken back");
                *count = count.saturating_sub(1);
            }
        }
    }
}

impl AccumulatorKind {
    /// Kind that `function` needs; `None` if it is no aggregate function.
    pub(crate) fn of(function: Function) -> Option<Self> {
        match function {
            Function::Sum | Function::Avg => Some(Self::Sum),
            Function::Count => Some(Self::Count),
            Function::Min | Function::Max => Some(Self::Extremes),
            Function::CountDistinct => Some(Self::Distinct),
            _ => None,
        }
    }

    /// Part of the argument that it needs.
    pub(crate) fn need(self) -> Need {
        match self {
            Self::Count => Need::Presence,
            Self::Sum | Self::Extremes => Need::Number,
            Self::Distinct => Need::Whole,
        }
    }

    pub(crate) fn accumulator(self) -> Accumulator {
        match self {
            Self::Sum => Accumulator::Sum { sum: Decimal::ZERO, count: 0, nans: 0 },
            Self::Count => Accumulator::Count(0),
            Self::Extremes => Accumulator::Extremes(Multiset::new()),
            Self::Distinct => Accumulator::Distinct(Multiset::new()),
        }
    }
}

impl Accumulator {
    /// Adds or retracts a value. NULL has no effect.
    #[inline]
    pub(crate) fn take(&mut self, input: &Input, step: Step) {
        match (self, input) {
            (_, Input::Null) => {}
            (Self::Count(count), _) => step.apply(count),
            (Self::Sum { sum, count, .. }, Input::Number { units, scale }) => {
                let units =
                    if step == Step::Add { i128::from(*units) } else { -i128::from(*units) };
                sum.add(units, *scale);
                step.apply(count);
            }
            (Self::Sum { sum, count, nans }, _) => match input.decimal() {
                Some(number) => {
                    *sum = match step {
                        Step::Add => sum.plus(&number),
                        Step::Retract => sum.minus(&number),
                    };
                    step.apply(count);
                }
                None => step.apply(nans),
            },
            (Self::Extremes(values) | Self::Distinct(values), _) => {
                take(values, Value::new(input), step);
            }
        }
    }

    /// Replaces a value: cheaper than a retraction and an addition.
    #[inline]
    pub(crate) fn replace(&mut self, before: &Input, after: &Input) {
        match (&mut *self, before, after) {
            (Self::Count(_), before, after) if before.is_null() == after.is_null() => {}
            (
                Self::Sum { sum, .. },
                Input::Number { units: less, scale },
                Input::Number { units: more, scale: other },
            ) if scale == other => sum.add(i128::from(*more) - i128::from(*less), *scale),
            _ => {
                self.take(before, Step::Retract);
                self.take(after, Step::Add);
            }
        }
    }

    /// Result of `function`; NULL if there are no values.
    #[inline]
    pub(crate) fn result(&self, function: Function) -> ViewValue<'_> {
        match (self, function) {
            (Self::Sum { nans: 1.., .. }, _) => ViewValue::Nan,
            (Self::Sum { count: 0, .. }, _) => ViewValue::Null,
            (Self::Sum { sum, .. }, Function::Sum) => {
                ViewValue::Number(Rational::Decimal(sum.clone()))
            }
            (Self::Sum { sum, count, .. }, _) => {
                let sum = Rational::Decimal(sum.clone());
                sum.compute(Arithmetic::Divide, &Rational::whole(*count)).into()
            }
            (Self::Count(count), _) => ViewValue::Number(Rational::whole(*count)),
            (Self::Distinct(values), _) => ViewValue::Number(Rational::whole(values.len() as u64)),
            (Self::Extremes(values), Function::Min) => Value::value(values.keys().next()),
            (Self::Extremes(values), _) => Value::value(values.keys().next_back()),
        }
    }
}

fn take(values: &mut Multiset, value: Option<Value>, step: Step) {
    // NaN has no order, so it is not counted.
    let Some(value) = value else { return };
    match step {
        Step::Add => *values.entry(value).or_insert(0) += 1,
        Step::Retract => {
            let count = values.get_mut(&value).map(|count| {
                step.apply(count);
                *count
            });
            debug_assert!(count.is_some(), "only what was added is taken back");
            if count == Some(0) {
                values.remove(&value);
            }
        }
    }
}

impl Value {
    fn new(input: &Input) -> Option<Self> {
        let text = || input.text().map(|text| Self::Text(text.into()));
        input.decimal().map(Self::Number).or_else(text)
    }

    fn value(value: Option<&Self>) -> ViewValue<'_> {
        match value {
            None => ViewValue::Null,
            Some(Self::Number(number)) => ViewValue::Number(Rational::Decimal(number.clone())),
            Some(Self::Text(text)) => ViewValue::text(&**text),
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => left.order(right),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::decimal::Rounding;

    fn shown(value: &ViewValue<'_>) -> String {
        match value {
            ViewValue::Number(number) => number.rounded(Rounding::DEFAULT).to_string(),
            ViewValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        }
    }

    fn input(text: &str, kind: AccumulatorKind) -> Input {
        Input::new(ViewValue::text(text.as_bytes()), kind.need())
    }

    fn aggregate(function: Function, texts: &[&str]) -> String {
        let kind = AccumulatorKind::of(function).expect("an aggregate");
        let mut accumulator = kind.accumulator();
        // Adds and retracts some values first.
        for (text, step) in [("7", Step::Add), ("x", Step::Add), ("7", Step::Retract)] {
            accumulator.take(&input(text, kind), step);
        }
        for text in texts {
            accumulator.take(&input(text, kind), Step::Add);
        }
        accumulator.take(&input("x", kind), Step::Retract);
        shown(&accumulator.result(function))
    }

    #[test]
    fn functions_say_what_they_are_called() {
        let texts = ["10", "9.50", "", "9.5", "10.0"];
        for (function, result) in [
            (Function::Sum, "39"),
            (Function::Avg, "9.75"),
            (Function::Count, "4"),
            (Function::Min, "9.5"),
            (Function::Max, "10"),
            (Function::CountDistinct, "4"),
        ] {
            assert_eq!(aggregate(function, &texts), result, "{function}");
        }
    }

    #[test]
    fn an_empty_group_has_a_count_and_no_sum() {
        for (function, result) in [
            (Function::Sum, "Null"),
            (Function::Avg, "Null"),
            (Function::Count, "0"),
            (Function::Min, "Null"),
            (Function::CountDistinct, "0"),
        ] {
            assert_eq!(aggregate(function, &["", ""]), result, "{function}");
        }
    }

    #[test]
    fn texts_have_a_minimum_and_no_sum() {
        assert_eq!(aggregate(Function::Sum, &["1", "abc"]), "Nan");
        assert_eq!(aggregate(Function::Max, &["1", "abc"]), "abc");
        assert_eq!(aggregate(Function::Min, &["1", "abc"]), "1");
    }

    /// Floating-point sums would drift here.
    #[test]
    fn a_million_updates_leave_no_trace() {
        let rounds = 1_000_000_u64;
        let mut accumulator = AccumulatorKind::Sum.accumulator();
        accumulator.take(&input("0.1", AccumulatorKind::Sum), Step::Add);
        let number = |round: u64| {
            let large = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            input(&format!("{}.{:03}", large, round % 1_000), AccumulatorKind::Sum)
        };
        for round in 0..rounds {
            accumulator.take(&number(round), Step::Add);
            if let Some(old) = round.checked_sub(10) {
                accumulator.take(&number(old), Step::Retract);
            }
        }
        for round in rounds - 10..rounds {
            accumulator.take(&number(round), Step::Retract);
        }
        assert_eq!(shown(&accumulator.result(Function::Sum)), "0.1");
        assert_eq!(shown(&accumulator.result(Function::Avg)), "0.1");
    }
}
