//! Exact rational numbers, rounded only when written.

use super::decimal::{Decimal, Rounding};
use lanecast_filter::expr::Arithmetic;
use std::cmp::Ordering;

/// A decimal number, or the quotient of two.
#[derive(Clone, Debug)]
pub(crate) enum Rational {
    Decimal(Decimal),
    /// Numerator and denominator; the denominator is positive.
    Quotient(Box<[Decimal; 2]>),
}

impl Rational {
    pub(crate) fn whole(number: impl Into<i128>) -> Self {
        Self::Decimal(Decimal::whole(number.into()))
    }

    fn quotient(above: Decimal, below: Decimal) -> Self {
        let [above, below] =
            if below.is_negative() { [above.negated(), below.negated()] } else { [above, below] };
        Self::Quotient(Box::new([above, below]))
    }

    /// Numerator and denominator.
    fn parts(&self) -> (&Decimal, Option<&Decimal>) {
        match self {
            Self::Decimal(number) => (number, None),
            Self::Quotient(parts) => (&parts[0], Some(&parts[1])),
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.parts().0.is_zero()
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.parts().0.is_negative()
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Decimal(number) => Self::Decimal(number.negated()),
            Self::Quotient(parts) => Self::quotient(parts[0].negated(), parts[1].clone()),
        }
    }

    /// `self operation other`; `None` for a division by zero or a number out of range.
    #[inline]
    pub(crate) fn compute(&self, operation: Arithmetic, other: &Self) -> Option<Self> {
        if let (Self::Decimal(left), Self::Decimal(right)) = (self, other) {
            return match operation {
                Arithmetic::Add => Some(Self::Decimal(left.plus(right))),
                Arithmetic::Subtract => Some(Self::Decimal(left.minus(right))),
                Arithmetic::Multiply => left.times(right).map(Self::Decimal),
                Arithmetic::Remainder => left.remainder(right).map(Self::Decimal),
                Arithmetic::Divide if right.is_zero() => None,
                Arithmetic::Divide => Some(Self::quotient(left.clone(), right.clone())),
            };
        }
        self.compute_quotient(operation, other)
    }

    fn compute_quotient(&self, operation: Arithmetic, other: &Self) -> Option<Self> {
        let (above, below) = self.parts();
        let (other_above, other_below) = other.parts();
        match operation {
            Arithmetic::Multiply => {
                let below = scaled(other_below, below)?.unwrap_or(Decimal::whole(1));
                Some(Self::quotient(above.times(other_above)?, below))
            }
            Arithmetic::Divide if other.is_zero() => None,
            Arithmetic::Divide => {
                let above = times(above, other_below)?;
                Some(Self::quotient(above, times(other_above, below)?))
            }
            // Over a common denominator the numerators are added like whole numbers.
            _ => {
                let (left, right) = (times(above, other_below)?, times(other_above, below)?);
                let above = match operation {
                    Arithmetic::Add => left.plus(&right),
                    Arithmetic::Subtract => left.minus(&right),
                    _ => left.remainder(&right)?,
                };
                let below = scaled(other_below, below)?.unwrap_or(Decimal::whole(1));
                Some(Self::quotient(above, below))
            }
        }
    }

    /// Compares; `None` out of range.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        let ((above, below), (other_above, other_below)) = (self.parts(), other.parts());
        if below.is_none() && other_below.is_none() {
            return Some(above.order(other_above));
        }
        Some(times(above, other_below)?.order(&times(other_above, below)?))
    }

    /// The decimal value; quotients are rounded.
    pub(crate) fn rounded(&self, rounding: Rounding) -> Decimal {
        match self {
            Self::Decimal(number) => number.clone(),
            // The denominator is never zero.
            Self::Quotient(parts) => {
                parts[0].quotient(&parts[1], rounding).unwrap_or(Decimal::ZERO)
            }
        }
    }
}

impl Rational {
    /// Appends the number, quotients rounded.
    #[inline]
    pub(crate) fn write(&self, rounding: Rounding, text: &mut Vec<u8>) {
        match self {
            Self::Decimal(number) => number.write(text),
            Self::Quotient(_) => self.rounded(rounding).write(text),
        }
    }
}

fn times(number: &Decimal, factor: Option<&Decimal>) -> Option<Decimal> {
    factor.map_or_else(|| Some(number.clone()), |factor| number.times(factor))
}

/// The product of what stands below two lines, if anything does; nothing beyond all limits.
fn scaled(left: Option<&Decimal>, right: Option<&Decimal>) -> Option<Option<Decimal>> {
    match (left, right) {
        (Some(left), Some(right)) => left.times(right).map(Some),
        (one, other) => Some(one.or(other).cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Rational {
        let decimal = |text: &str| Decimal::parse(text.as_bytes()).expect("a number");
        match text.split_once('/') {
            Some((above, below)) => Rational::quotient(decimal(above), decimal(below)),
            None => Rational::Decimal(decimal(text)),
        }
    }

    #[test]
    fn quotients_stay_exact_as_long_as_one_computes() {
        for (left, operation, right, result) in [
            ("1/3", Arithmetic::Multiply, "3", "1"),
            ("1/3", Arithmetic::Add, "2/3", "1"),
            ("1", Arithmetic::Subtract, "1/3", "2/3"),
            ("1/-3", Arithmetic::Divide, "2", "-1/6"),
            ("1", Arithmetic::Divide, "1/3", "3"),
            ("7/2", Arithmetic::Remainder, "1", "1/2"),
            ("1", Arithmetic::Divide, "5", "0.2"),
            ("34.50", Arithmetic::Multiply, "1000", "34500"),
        ] {
            let computed = exact(left).compute(operation, &exact(right)).expect("a number");
            assert_eq!(computed.order(&exact(result)), Some(Ordering::Equal), "{left} {right}");
        }
        assert!(exact("1/3").compute(Arithmetic::Divide, &exact("0")).is_none());
        assert!(exact("1/3").compute(Arithmetic::Remainder, &exact("0")).is_none());
        assert_eq!(exact("1/3").order(&exact("0.3333333333")), Some(Ordering::Greater));
        assert_eq!(exact("2/3").rounded(Rounding::DEFAULT).to_string(), "0.6666667");
    }
}
