//! Arithmetic on numbers: integers stay exact as long as 64 bits can hold the result.

use crate::expr::Arithmetic;
use crate::number::Number;
use crate::value::Value;

/// `left operation right`. NULL if an operand is NULL, and for a division by zero; a text that
/// spells no number counts as NaN.
pub(crate) fn compute<'a>(operation: Arithmetic, left: Value<'_>, right: Value<'_>) -> Value<'a> {
    if left.is_null() || right.is_null() {
        return Value::Null;
    }
    let (left, right) = (number(left), number(right));
    match (is_whole(left), is_whole(right)) {
        (Some(left), Some(right)) => whole(operation, left, right),
        _ => float(operation, left.to_f64(), right.to_f64()),
    }
}

/// `-value`
pub(crate) fn negate<'a>(value: Value<'_>) -> Value<'a> {
    if value.is_null() {
        return Value::Null;
    }
    match number(value) {
        Number::Float(number) => Value::Float(-number),
        number => number.whole().map_or(Value::Null, |whole| from_whole(-whole)),
    }
}

/// Absolute value.
pub(crate) fn absolute<'a>(value: Value<'_>) -> Value<'a> {
    match number(value) {
        Number::Float(number) => Value::Float(number.abs()),
        number => number.whole().map_or(Value::Null, |whole| from_whole(whole.abs())),
    }
}

/// `value` as a number; NaN if it is not one.
pub(crate) fn number(value: Value<'_>) -> Number {
    value.number().unwrap_or(Number::Float(f64::NAN))
}

fn is_whole(number: Number) -> Option<i128> {
    if matches!(number, Number::Float(_)) { None } else { number.whole() }
}

fn whole<'a>(operation: Arithmetic, left: i128, right: i128) -> Value<'a> {
    let result = match operation {
        // Operands have 64 bits at most, so sums fit an i128.
        Arithmetic::Add => Some(left + right),
        Arithmetic::Subtract => Some(left - right),
        // The product of two u64 may need 128 bits and exceed i128.
        Arithmetic::Multiply => match left.checked_mul(right) {
            None => return Value::Float(left as f64 * right as f64),
            product => product,
        },
        // Only a zero divisor fails, and the result is NULL then.
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Remainder => left.checked_rem(right),
    };
    result.map_or(Value::Null, from_whole)
}

fn float<'a>(operation: Arithmetic, left: f64, right: f64) -> Value<'a> {
    let is_division = matches!(operation, Arithmetic::Divide | Arithmetic::Remainder);
    // Floats behave as integers do: division by zero yields NULL, not infinity.
    if is_division && right == 0.0 {
        return Value::Null;
    }
    Value::Float(match operation {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    })
}

fn from_whole<'a>(whole: i128) -> Value<'a> {
    if let Ok(whole) = i64::try_from(whole) {
        return Value::Int(whole);
    }
    // Beyond 64 bits a float keeps the magnitude and loses digits.
    u64::try_from(whole).map_or(Value::Float(whole as f64), Value::Uint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Int, Null, Text};

    fn shown(operation: Arithmetic, left: Value<'_>, right: Value<'_>) -> String {
        format!("{:?}", compute(operation, left, right))
    }

    #[test]
    fn whole_numbers_stay_whole_while_they_can() {
        for (left, operation, right, result) in [
            (Int(1), Arithmetic::Divide, Int(5), "Int(0)"),
            (Int(-7), Arithmetic::Remainder, Int(3), "Int(-1)"),
            (Int(7), Arithmetic::Remainder, Int(-3), "Int(1)"),
            (Int(i64::MAX), Arithmetic::Add, Int(1), "Uint(9223372036854775808)"),
            (Int(i64::MIN), Arithmetic::Subtract, Int(1), "Float(-9.223372036854776e18)"),
            (Int(i64::MIN), Arithmetic::Divide, Int(-1), "Uint(9223372036854775808)"),
            (
                Value::Uint(u64::MAX),
                Arithmetic::Multiply,
                Value::Uint(u64::MAX),
                "Float(3.402823669209385e38)",
            ),
            (Text(b"1000"), Arithmetic::Multiply, Text(b"34.50"), "Float(34500.0)"),
            (Text(b"4"), Arithmetic::Divide, Int(3), "Int(1)"),
            (Text(b"4.0"), Arithmetic::Divide, Int(8), "Float(0.5)"),
            (Value::Float(-7.5), Arithmetic::Remainder, Int(2), "Float(-1.5)"),
        ] {
            assert_eq!(shown(operation, left, right), result, "{left:?} {operation} {right:?}");
        }
    }

    #[test]
    fn null_operands_and_division_by_zero_give_null() {
        for (left, operation, right) in [
            (Null, Arithmetic::Add, Int(1)),
            (Int(1), Arithmetic::Multiply, Text(b"")),
            (Int(1), Arithmetic::Divide, Int(0)),
            (Int(1), Arithmetic::Remainder, Int(0)),
            (Value::Float(1.0), Arithmetic::Divide, Value::Float(0.0)),
        ] {
            assert_eq!(shown(operation, left, right), "Null");
        }
        assert_eq!(shown(Arithmetic::Add, Text(b"abc"), Int(1)), "Float(NaN)");
        assert_eq!(format!("{:?}", negate(Int(i64::MIN))), "Uint(9223372036854775808)");
        assert_eq!(format!("{:?}", absolute(Value::Float(-1.5))), "Float(1.5)");
    }
}
