//! What aggregate functions remember of the rows of a group. Each row can be taken back.

use super::datum::Datum;
use super::decimal::Decimal;
use super::exact::Exact;
use super::share::{Input, Need};
use lanecast_filter::Function;
use lanecast_filter::expr::Arithmetic;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Whether a row comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Add,
    Retract,
}

/// What has to be remembered for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// SUM, AVG
    Tally,
    /// COUNT
    Count,
    /// MIN, MAX
    Extremes,
    /// COUNT_DISTINCT
    Distinct,
}

/// What is remembered of the values of one expression.
#[derive(Clone, Debug)]
pub(crate) enum Accumulator {
    Tally {
        sum: Decimal,
        /// Values in the sum.
        count: u64,
        /// Values that are no numbers.
        nans: u64,
    },
    Count(u64),
    /// Each value and how often it occurs.
    Extremes(Multiset),
    Distinct(Multiset),
}

type Multiset = BTreeMap<Value, u64>;

/// A value to be found again: numbers are in order, and before texts.
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

impl Measure {
    /// What `function` needs, if it is an aggregate function.
    pub(crate) fn of(function: Function) -> Option<Self> {
        match function {
            Function::Sum | Function::Avg => Some(Self::Tally),
            Function::Count => Some(Self::Count),
            Function::Min | Function::Max => Some(Self::Extremes),
            Function::CountDistinct => Some(Self::Distinct),
            _ => None,
        }
    }

    /// What it has to know of its argument.
    pub(crate) fn need(self) -> Need {
        match self {
            Self::Count => Need::Presence,
            Self::Tally | Self::Extremes => Need::Number,
            Self::Distinct => Need::Whole,
        }
    }

    pub(crate) fn accumulator(self) -> Accumulator {
        match self {
            Self::Tally => Accumulator::Tally { sum: Decimal::ZERO, count: 0, nans: 0 },
            Self::Count => Accumulator::Count(0),
            Self::Extremes => Accumulator::Extremes(Multiset::new()),
            Self::Distinct => Accumulator::Distinct(Multiset::new()),
        }
    }
}

impl Accumulator {
    /// Adds a value, or takes one back that was added. NULL changes nothing.
    #[inline]
    pub(crate) fn take(&mut self, input: &Input, step: Step) {
        match (self, input) {
            (_, Input::Null) => {}
            (Self::Count(count), _) => step.apply(count),
            (Self::Tally { sum, count, .. }, Input::Number { units, scale }) => {
                let units =
                    if step == Step::Add { i128::from(*units) } else { -i128::from(*units) };
                sum.add(units, *scale);
                step.apply(count);
            }
            (Self::Tally { sum, count, nans }, _) => match input.decimal() {
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

    /// Takes a value back that was added, and adds another.
    #[inline]
    pub(crate) fn exchange(&mut self, before: &Input, after: &Input) {
        match (&mut *self, before, after) {
            (Self::Count(_), before, after) if before.is_null() == after.is_null() => {}
            (
                Self::Tally { sum, .. },
                Input::Number { units: less, scale },
                Input::Number { units: more, scale: other },
            ) if scale == other => sum.add(i128::from(*more) - i128::from(*less), *scale),
            _ => {
                self.take(before, Step::Retract);
                self.take(after, Step::Add);
            }
        }
    }

    /// What `function` says of the values: NULL if there are none to speak of.
    #[inline]
    pub(crate) fn outcome(&self, function: Function) -> Datum<'_> {
        match (self, function) {
            (Self::Tally { nans: 1.., .. }, _) => Datum::Nan,
            (Self::Tally { count: 0, .. }, _) => Datum::Null,
            (Self::Tally { sum, .. }, Function::Sum) => Datum::Number(Exact::Decimal(sum.clone())),
            (Self::Tally { sum, count, .. }, _) => {
                let sum = Exact::Decimal(sum.clone());
                sum.compute(Arithmetic::Divide, &Exact::whole(*count)).into()
            }
            (Self::Count(count), _) => Datum::Number(Exact::whole(*count)),
            (Self::Distinct(values), _) => Datum::Number(Exact::whole(values.len() as u64)),
            (Self::Extremes(values), Function::Min) => Value::datum(values.keys().next()),
            (Self::Extremes(values), _) => Value::datum(values.keys().next_back()),
        }
    }
}

fn take(values: &mut Multiset, value: Option<Value>, step: Step) {
    // What is not a number has no place among others.
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

    fn datum(value: Option<&Self>) -> Datum<'_> {
        match value {
            None => Datum::Null,
            Some(Self::Number(number)) => Datum::Number(Exact::Decimal(number.clone())),
            Some(Self::Text(text)) => Datum::text(&**text),
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

    fn shown(datum: &Datum<'_>) -> String {
        match datum {
            Datum::Number(number) => number.rounded(Rounding::DEFAULT).to_string(),
            Datum::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        }
    }

    fn input(text: &str, measure: Measure) -> Input {
        Input::new(Datum::text(text.as_bytes()), measure.need())
    }

    fn outcome(function: Function, texts: &[&str]) -> String {
        let measure = Measure::of(function).expect("an aggregate");
        let mut accumulator = measure.accumulator();
        // Something comes and goes before.
        for (text, step) in [("7", Step::Add), ("x", Step::Add), ("7", Step::Retract)] {
            accumulator.take(&input(text, measure), step);
        }
        for text in texts {
            accumulator.take(&input(text, measure), Step::Add);
        }
        accumulator.take(&input("x", measure), Step::Retract);
        shown(&accumulator.outcome(function))
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
            assert_eq!(outcome(function, &texts), result, "{function}");
        }
    }

    #[test]
    fn nothing_has_no_sum_but_a_count() {
        for (function, result) in [
            (Function::Sum, "Null"),
            (Function::Avg, "Null"),
            (Function::Count, "0"),
            (Function::Min, "Null"),
            (Function::CountDistinct, "0"),
        ] {
            assert_eq!(outcome(function, &["", ""]), result, "{function}");
        }
    }

    #[test]
    fn what_is_no_number_has_no_sum_but_an_order() {
        assert_eq!(outcome(Function::Sum, &["1", "abc"]), "Nan");
        assert_eq!(outcome(Function::Max, &["1", "abc"]), "abc");
        assert_eq!(outcome(Function::Min, &["1", "abc"]), "1");
    }

    /// Sums that plain floats get wrong.
    #[test]
    fn a_million_updates_leave_no_trace() {
        let rounds = 1_000_000_u64;
        let mut accumulator = Measure::Tally.accumulator();
        accumulator.take(&input("0.1", Measure::Tally), Step::Add);
        let number = |round: u64| {
            let large = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            input(&format!("{}.{:03}", large, round % 1_000), Measure::Tally)
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
        assert_eq!(shown(&accumulator.outcome(Function::Sum)), "0.1");
        assert_eq!(shown(&accumulator.outcome(Function::Avg)), "0.1");
    }
}
