//! Decimal numbers: arithmetic, parsing and formatting.

use super::*;
use lanecast_filter::number::Number;
use proptest::prelude::*;

pub(super) fn decimal(text: &str) -> Decimal {
    Decimal::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text} is a number"))
}

fn quotient(above: &str, below: &str) -> String {
    decimal(above).quotient(&decimal(below), Rounding::DEFAULT).expect("no zero").to_string()
}

#[test]
fn quotients_are_rounded_to_five_decimals_or_seven_digits() {
    for (above, below, result) in [
        ("208250.00", "6000", "34.70833"),
        ("1875.00", "100", "18.75"),
        ("1", "3", "0.3333333"),
        ("-2", "3", "-0.6666667"),
        ("0.0000123456785", "10", "0.000001234568"),
        ("10", "3", "3.333333"),
        ("100", "3", "33.33333"),
        ("99.999999", "10", "10"),
        ("1000000", "64", "15625"),
        ("1000001", "64", "15625.01563"),
        ("1", "32000000", "0.00000003125"),
        ("0", "7", "0"),
        ("1e30", "3", "333333333333333333333333333333.33333"),
        ("1", "3e300", &format!("0.{}3333333", "0".repeat(300))),
    ] {
        assert_eq!(quotient(above, below), result, "{above} / {below}");
    }
    assert!(decimal("1").quotient(&Decimal::ZERO, Rounding::DEFAULT).is_none());
}

#[test]
fn numbers_grow_beyond_words_and_shrink_again() {
    let large = decimal("1e40");
    let sum = large.plus(&decimal("0.01"));
    assert_eq!(sum.to_string(), format!("1{}.01", "0".repeat(40)));
    let back = sum.minus(&large);
    assert_eq!(
        (back.to_string().as_str(), back.order(&decimal("0.010"))),
        ("0.01", Ordering::Equal)
    );
    assert!(matches!(back.units, Units::Small(1)));
    let square = large.times(&large).expect("it fits");
    assert_eq!(square.order(&decimal("1e80")), Ordering::Equal);
    let most = decimal(&"9".repeat(400));
    let power = (0..5).try_fold(most, |power, _| power.times(&power));
    assert!(power.is_none(), "there are limits to multiplying");
}

#[test]
fn remainders_have_the_sign_of_the_left_side() {
    for (left, right, rest) in [("7.5", "2", "1.5"), ("-7.5", "2", "-1.5"), ("1e40", "7", "4")] {
        let remainder = decimal(left).remainder(&decimal(right)).expect("no zero");
        assert_eq!(remainder.to_string(), rest);
    }
    assert!(decimal("1").remainder(&Decimal::ZERO).is_none());
}

proptest! {
    #[test]
    fn arithmetic_is_that_of_whole_numbers(
        left in -1_000_000_000_i64..1_000_000_000,
        right in -1_000_000_000_i64..1_000_000_000,
        left_scale in 0..8_u32,
        right_scale in 0..8_u32,
    ) {
        let a = Decimal::small(left.into(), left_scale);
        let b = Decimal::small(right.into(), right_scale);
        let common = 8;
        let at = |number: i64, scale: u32| i128::from(number) * 10_i128.pow(common - scale);
        let (x, y) = (at(left, left_scale), at(right, right_scale));
        prop_assert_eq!(a.plus(&b).order(&Decimal::small(x + y, common)), Ordering::Equal);
        prop_assert_eq!(a.minus(&b).order(&Decimal::small(x - y, common)), Ordering::Equal);
        prop_assert_eq!(a.order(&b), x.cmp(&y));
        let product = a.times(&b).expect("it fits");
        prop_assert_eq!(product.order(&Decimal::small(x * y, 2 * common)), Ordering::Equal);
    }

    #[test]
    fn wide_and_small_quotients_agree(
        above in any::<i64>(), below in any::<i64>(), scale in 0..9_u32,
    ) {
        prop_assume!(below != 0);
        let (a, b) = (Decimal::small(above.into(), scale), Decimal::small(below.into(), 3));
        let wide = |number: &Decimal| Decimal {
            units: Units::Wide(number.big().into()), scale: number.scale,
        };
        let rounding = Rounding::DEFAULT;
        let small = a.quotient(&b, rounding).expect("no zero");
        let large = wide(&a).quotient(&wide(&b), rounding).expect("no zero");
        prop_assert_eq!(small.to_string(), large.to_string());
    }
}

fn shown(text: &str) -> Option<String> {
    Decimal::parse(text.as_bytes()).map(|number| number.to_string())
}

#[test]
fn numbers_are_written_without_needless_zeros() {
    for (text, number) in [
        ("0", "0"),
        ("-0.00", "0"),
        ("34.50", "34.5"),
        ("+5000", "5000"),
        ("-.5", "-0.5"),
        ("5.", "5"),
        ("007", "7"),
        ("0.000100", "0.0001"),
        ("1e3", "1000"),
        ("1.25E-3", "0.00125"),
        ("120e-1", "12"),
        ("0e99999999999", "0"),
        ("123456789012345678901234567890.10", "123456789012345678901234567890.1"),
        (
            "123456789012345678901234567890123456789012345678901",
            "123456789012345678901234567890123456789012345678901",
        ),
    ] {
        assert_eq!(shown(text).as_deref(), Some(number), "{text}");
    }
    for text in ["", "-", ".", "-.", "1.2.3", "12a", " 1", "e5", "1e", "1e+", "nan", "+-1", "1e401"]
    {
        assert_eq!(shown(text), None, "{text}");
    }
}

#[test]
fn any_float_has_a_decimal() {
    for number in [0.1, -1.5e-300, f64::MAX, 5e-324, 12_345.678] {
        let decimal = Decimal::of_float(number).expect("a number");
        assert_eq!(decimal.to_string().parse(), Ok(number));
    }
    assert!(Decimal::of_float(f64::NAN).is_none());
}

proptest! {
    #[test]
    fn the_same_texts_are_numbers_as_in_filters(
        text in "[+-]?[0-9]{0,20}\\.?[0-9]{0,4}([eE][+-]?[0-9]{0,2})?",
    ) {
        let number = Number::parse(text.as_bytes()).filter(|number| !number.is_nan());
        let decimal = Decimal::parse(text.as_bytes());
        prop_assert_eq!(decimal.is_some(), number.is_some());
        if let (Some(decimal), Some(number)) = (decimal, number) {
            let read: f64 = decimal.to_string().parse().expect("a number");
            prop_assert_eq!(read, number.to_f64());
        }
    }

    #[test]
    fn a_written_decimal_parses_to_itself(units: i128, scale in 0..45_u32) {
        let number = Decimal::small(units, scale);
        let read = Decimal::parse(number.to_string().as_bytes()).expect("a number");
        prop_assert!(read.order(&number).is_eq());
    }
}
