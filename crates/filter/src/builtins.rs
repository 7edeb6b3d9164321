//! Built-in functions of the language, on evaluated arguments.

use crate::arithmetic::{absolute, number};
use crate::date;
use crate::function::Function;
use crate::pattern::Pattern;
use crate::value::Value;
use std::borrow::Cow;

/// Longest text that a function may build. Longer results are NULL, which bounds the memory of a
/// filter.
pub(crate) const TEXT_MAX: usize = 1024 * 1024;

/// A value that borrows from the message, or a text built by a function.
#[derive(Clone, Debug)]
pub(crate) enum Computed<'a> {
    Value(Value<'a>),
    Text(Vec<u8>),
}

impl Computed<'_> {
    pub(crate) const NULL: Self = Self::Value(Value::Null);

    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Value(value) => *value,
            Self::Text(text) => Value::Text(text),
        }
    }
}

impl<'a, T: Into<Value<'a>>> From<T> for Computed<'a> {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// The value of `function` for evaluated `arguments`. `pattern` is the compiled second argument of
/// functions that take a regular expression.
///
/// Functions of the message itself, IF and COALESCE belong to the interpreter.
pub(crate) fn call<'a>(
    function: Function,
    arguments: &[Value<'_>],
    pattern: Option<&Pattern>,
) -> Computed<'a> {
    match (function, arguments) {
        (Function::NanValue, _) => Value::Float(f64::NAN).into(),
        (Function::FalseValue, _) => Value::Bool(false).into(),
        (Function::Concat, _) => concat(arguments.iter().map(|part| part.to_text()), b""),
        (Function::RegexpMatch | Function::RegexpReplace, &[subject, _, ..]) => match pattern {
            Some(pattern) if !subject.is_null() => {
                search(pattern, &subject.to_text(), arguments.get(2).copied())
            }
            _ => Computed::NULL,
        },
        (Function::Replace, &[subject, part, replacement]) => {
            if subject.is_null() || part.is_null() {
                return Computed::NULL;
            }
            replace(&subject.to_text(), &part.to_text(), &replacement.to_text())
        }
        _ if arguments.iter().any(|value| value.is_null()) => Computed::NULL,
        _ => call_non_null(function, arguments),
    }
}

/// The value of a function that yields NULL for NULL arguments, for arguments other than NULL.
fn call_non_null<'a>(function: Function, arguments: &[Value<'_>]) -> Computed<'a> {
    match (function, arguments) {
        (Function::Abs, &[value]) => absolute(value).into(),
        (Function::CharValue, &[code]) => {
            let byte = number(code).whole().and_then(|code| u8::try_from(code).ok());
            byte.map_or(Computed::NULL, |byte| Computed::Text(vec![byte]))
        }
        (Function::Crc32, &[value]) => Value::Int(crc32fast::hash(&value.to_text()).into()).into(),
        (Function::GeoDistance, &[a, b, c, d]) => {
            let degrees = [a, b, c, d].map(|value| number(value).to_f64());
            Value::Float(geo_distance(degrees)).into()
        }
        (Function::Instr, &[whole, part]) => position(&whole.to_text(), &part.to_text()),
        (Function::InstrI, &[whole, part]) => {
            position(&whole.to_text().to_ascii_lowercase(), &part.to_text().to_ascii_lowercase())
        }
        (Function::Lower, &[value]) => Computed::Text(value.to_text().to_ascii_lowercase()),
        (Function::Upper, &[value]) => Computed::Text(value.to_text().to_ascii_uppercase()),
        (Function::Reverse, &[value]) => {
            Computed::Text(value.to_text().iter().rev().copied().collect())
        }
        (Function::StrequalI, &[left, right]) => {
            Value::Bool(left.to_text().eq_ignore_ascii_case(&right.to_text())).into()
        }
        (Function::Strftime, &[format, time]) => {
            date::format(&format.to_text(), number(time)).map_or(Computed::NULL, Computed::Text)
        }
        (Function::Strptime, &[value, format]) => date::parse(&value.to_text(), &format.to_text())
            .map_or(Value::Null, Value::Float)
            .into(),
        (Function::Substr, &[value, start, ref length @ ..]) => {
            let length = length.first().map(|&length| number(length).to_f64());
            substring(&value.to_text(), number(start).to_f64(), length)
        }
        _ => Computed::NULL,
    }
}

/// Joins `parts` with `separator`; NULL if the result exceeds [`TEXT_MAX`].
pub(crate) fn concat<'a, 'b>(
    parts: impl Iterator<Item = Cow<'b, [u8]>>,
    separator: &[u8],
) -> Computed<'a> {
    let mut whole = Vec::new();
    for (count, part) in parts.enumerate() {
        whole.extend_from_slice(if count > 0 { separator } else { b"" });
        whole.extend_from_slice(&part);
        // Checked for each part: the buffer exceeds the limit by one part at most.
        if whole.len() > TEXT_MAX {
            return Computed::NULL;
        }
    }
    Computed::Text(whole)
}

fn search<'a>(pattern: &Pattern, subject: &[u8], replacement: Option<Value<'_>>) -> Computed<'a> {
    match replacement {
        None => Value::Bool(pattern.is_match(subject)).into(),
        Some(replacement) => {
            let replaced = pattern.replace(subject, &replacement.to_text(), TEXT_MAX);
            replaced.map_or(Computed::NULL, Computed::Text)
        }
    }
}

/// Position of `part` in `whole`, counted from 1; 0 if absent.
fn position<'a>(whole: &[u8], part: &[u8]) -> Computed<'a> {
    let at = memchr::memmem::find(whole, part).map_or(0, |at| at + 1);
    Value::Int(at as i64).into()
}

fn replace<'a>(subject: &[u8], part: &[u8], replacement: &[u8]) -> Computed<'a> {
    let mut replaced = Vec::with_capacity(subject.len());
    let mut copied = 0;
    for at in memchr::memmem::find_iter(subject, part) {
        replaced.extend_from_slice(&subject[copied..at]);
        replaced.extend_from_slice(replacement);
        copied = at + part.len();
        if replaced.len() > TEXT_MAX {
            return Computed::NULL;
        }
    }
    replaced.extend_from_slice(&subject[copied..]);
    Computed::Text(replaced)
}

/// Up to `length` bytes of `whole` from byte `start`, counted from 1, or from the end if negative.
fn substring<'a>(whole: &[u8], start: f64, length: Option<f64>) -> Computed<'a> {
    if start.is_nan() || length.is_some_and(f64::is_nan) {
        return Computed::NULL;
    }
    // Float-to-integer casts saturate, so huge positions need no check.
    let from = if start < 0.0 {
        whole.len().saturating_sub((-start) as usize)
    } else {
        (start as usize).saturating_sub(1).min(whole.len())
    };
    let rest = &whole[from..];
    let length = length.map_or(rest.len(), |length| (length as usize).min(rest.len()));
    Computed::Text(rest[..length].to_vec())
}

/// Haversine distance in metres between two positions in degrees (latitude, longitude), on a sphere
/// of the mean radius of the earth.
fn geo_distance(degrees: [f64; 4]) -> f64 {
    const EARTH_RADIUS_M: f64 = 6_371_008.8;
    let [from_latitude, from_longitude, to_latitude, to_longitude] = degrees.map(f64::to_radians);
    let half = |from: f64, to: f64| ((to - from) / 2.0).sin().powi(2);
    let along = from_latitude.cos() * to_latitude.cos() * half(from_longitude, to_longitude);
    let haversine = half(from_latitude, to_latitude) + along;
    // Rounding can push the root slightly above 1, where asin is NaN.
    2.0 * EARTH_RADIUS_M * haversine.sqrt().min(1.0).asin()
}
