//! Maps numbers to 64-bit ordinals in the same order, so that ranges compare fast and exactly.
//!
//! Even ordinals represent the numbers that can limit a range: all values of `f64` except extremely
//! large and small ones. Odd ordinals represent the numbers between two neighbours, so that
//! comparisons with both are right. Texts that are not numbers come last.

use crate::number::Number;
use crate::value::Value;

/// Ordinal of zero.
const ZERO: u64 = 1 << 63;
/// Ordinal of texts that are not numbers.
pub(crate) const TEXT: u64 = u64::MAX;
/// Bits of the smallest magnitude of a limit other than zero.
const LEAST: u64 = 511 << 52;
/// Limits are smaller than the number with these bits.
const MOST: u64 = 1_534 << 52;

/// Ordinal of `value`; `None` for NULL and NaN.
#[inline]
pub(crate) fn of_value(value: Value<'_>, number: Option<Number>) -> Option<u64> {
    match number {
        Some(number) => of_number(number),
        None if value.is_null() => None,
        // Comparisons put texts above all numbers.
        None => Some(TEXT),
    }
}

/// Ordinal of `number`; `None` for NaN.
#[inline]
pub(crate) fn of_number(number: Number) -> Option<u64> {
    let float = number.to_f64();
    // Conversion may round an integer; the exact comparison below corrects that.
    let place = of_float(float);
    match number {
        Number::Float(float) => (!float.is_nan()).then_some(place),
        // Such integers convert to f64 exactly.
        Number::Int(whole) if whole.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS => Some(place),
        _ => match number.order(Number::Float(float))? {
            // Even ordinals belong to floats, so one step reaches the odd one between two of them.
            std::cmp::Ordering::Less => Some(place - 1),
            std::cmp::Ordering::Equal => Some(place),
            std::cmp::Ordering::Greater => Some(place + 1),
        },
    }
}

/// Ordinal of `number`, if it can be a limit.
pub(crate) fn of_limit(number: Number) -> Option<u64> {
    // Odd ordinals stand for many numbers and cannot limit a range.
    of_number(number).filter(|place| place.is_multiple_of(2))
}

#[inline]
fn of_float(float: f64) -> u64 {
    // Bits of positive floats are in the order of their values.
    let bits = float.abs().to_bits();
    let distance = match bits {
        0 => 0,
        // Tiny magnitudes share one odd ordinal next to zero.
        _ if bits < LEAST => 1,
        // Doubling leaves an odd ordinal between two neighbouring floats.
        _ if bits < MOST => (bits - LEAST + 1) << 1,
        // Huge magnitudes share the odd ordinal beyond the last even one.
        _ => ((MOST - LEAST + 1) << 1) + 1,
    };
    // Zero lies in the middle, and -0.0 gets its ordinal too.
    if float < 0.0 { ZERO - distance } else { ZERO + distance }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn number() -> BoxedStrategy<Number> {
        let near = |middle: i64| (middle - 3..middle + 3).prop_map(Number::Int);
        prop_oneof![
            any::<i64>().prop_map(Number::Int),
            any::<f64>().prop_map(Number::Float),
            (-5..5_i64).prop_map(Number::Int),
            (-20..20_i64).prop_map(|quarters| Number::Float(quarters as f64 / 4.0)),
            near(1 << 53),
            near(1_700_000_000_000_000_000),
            ((1 << 63)..=u64::MAX).prop_map(Number::Uint),
            Just(Number::Float(f64::INFINITY)),
            Just(Number::Float(f64::MIN_POSITIVE)),
            Just(Number::Float(-0.0)),
        ]
        .boxed()
    }

    #[test]
    fn usual_numbers_may_be_limits() {
        for number in [0.0, 5_000.0, -0.01, 1e18, 1e-18, 34.75] {
            assert!(of_limit(Number::Float(number)).is_some());
        }
        for number in [1e300, -1e300, 1e-300, f64::INFINITY, f64::NAN] {
            assert_eq!(of_limit(Number::Float(number)), None);
        }
        assert_eq!(of_limit(Number::Int((1 << 53) + 1)), None);
        assert!(of_number(Number::Float(f64::INFINITY)) < Some(TEXT));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_number_is_to_any_limit_as_their_places_are(value in number(), limit in number()) {
            if let Some(limit_place) = of_limit(limit) {
                let order = of_number(value).map(|place| place.cmp(&limit_place));
                prop_assert_eq!(order, value.order(limit));
            }
            if value.order(limit) == Some(Ordering::Less) {
                prop_assert!(of_number(value) <= of_number(limit));
            }
        }
    }
}
