//! What the functions of the language do.

use crate::arithmetic::{absolute, number};
use crate::date;
use crate::expr::Expr;
use crate::function::Function;
use crate::naive::{Computed, Record, Walk, text};
use crate::pattern::Pattern;
use crate::value::Value;
use std::borrow::Cow;

/// Bytes that a text may have that a function makes. Longer ones are NULL, so that no filter can
/// use up the memory.
pub(crate) const TEXT_MAX: usize = 1024 * 1024;

/// The value of `function` of `parts`, other than IF and COALESCE.
pub(crate) fn call<'a, F, R: Record<F>>(
    walk: &Walk<'a, R>,
    function: Function,
    parts: &'a [Expr<F>],
) -> Computed<'a> {
    match function {
        Function::ClientName => return Value::Text(walk.environment.client.as_bytes()).into(),
        Function::TopicName => return Value::Text(walk.environment.topic.as_bytes()).into(),
        Function::MessageSize => return Value::Int(walk.record.size_bytes() as i64).into(),
        Function::UnixTimestamp => {
            return Value::Float(walk.environment.unix_ns as f64 / 1e9).into();
        }
        // A filter at a server has the name in its place.
        Function::InstanceName => return Computed::NULL,
        Function::NanValue => return Value::Float(f64::NAN).into(),
        Function::FalseValue => return Value::Bool(false).into(),
        Function::ArrayCount => return Value::Int(values(walk, parts).count() as i64).into(),
        _ => {}
    }
    let computed: Vec<Computed<'a>> = parts.iter().map(|part| walk.value(part)).collect();
    let arguments: Vec<Value<'_>> = computed.iter().map(Computed::value).collect();
    match (function, &*arguments) {
        (Function::Concat, _) => concat(arguments.iter().map(|&part| text(part)), b""),
        (Function::ArrayToString, [_, separator]) => {
            let present = values(walk, parts).filter(|value| !value.is_null());
            concat(present.map(text), &text(*separator))
        }
        (Function::RegexpMatch | Function::RegexpReplace, &[subject, _, ..]) => match &parts[1] {
            Expr::Pattern(pattern) if !subject.is_null() => {
                search(pattern, &text(subject), arguments.get(2).copied())
            }
            _ => Computed::NULL,
        },
        (Function::Replace, &[subject, part, replacement]) => {
            if subject.is_null() || part.is_null() {
                return Computed::NULL;
            }
            replace(&text(subject), &text(part), &text(replacement))
        }
        _ if arguments.iter().any(|value| value.is_null()) => Computed::NULL,
        _ => of_present(function, &arguments),
    }
}

/// What remains: functions of values none of which is NULL.
fn of_present<'a>(function: Function, arguments: &[Value<'_>]) -> Computed<'a> {
    match (function, arguments) {
        (Function::Abs, &[value]) => absolute(value).into(),
        (Function::CharValue, &[code]) => {
            let byte = number(code).whole().and_then(|code| u8::try_from(code).ok());
            byte.map_or(Computed::NULL, |byte| Computed::Text(vec![byte]))
        }
        (Function::Crc32, &[value]) => Value::Int(crc32fast::hash(&text(value)).into()).into(),
        (Function::GeoDistance, &[a, b, c, d]) => {
            let degrees = [a, b, c, d].map(|value| number(value).to_f64());
            Value::Float(geo_distance(degrees)).into()
        }
        (Function::Instr, &[whole, part]) => position(&text(whole), &text(part)),
        (Function::InstrI, &[whole, part]) => {
            position(&text(whole).to_ascii_lowercase(), &text(part).to_ascii_lowercase())
        }
        (Function::Lower, &[value]) => Computed::Text(text(value).to_ascii_lowercase()),
        (Function::Upper, &[value]) => Computed::Text(text(value).to_ascii_uppercase()),
        (Function::Reverse, &[value]) => {
            Computed::Text(text(value).iter().rev().copied().collect())
        }
        (Function::StrequalI, &[left, right]) => {
            Value::Bool(text(left).eq_ignore_ascii_case(&text(right))).into()
        }
        (Function::Strftime, &[format, time]) => {
            date::format(&text(format), number(time)).map_or(Computed::NULL, Computed::Text)
        }
        (Function::Strptime, &[value, format]) => {
            date::parse(&text(value), &text(format)).map_or(Value::Null, Value::Float).into()
        }
        (Function::Substr, &[value, start, ref length @ ..]) => {
            let length = length.first().map(|&length| number(length).to_f64());
            substring(&text(value), number(start).to_f64(), length)
        }
        _ => Computed::NULL,
    }
}

/// All values of the field that is the first of `parts`.
fn values<'a, F, R: Record<F>>(
    walk: &Walk<'a, R>,
    parts: &'a [Expr<F>],
) -> impl Iterator<Item = Value<'a>> {
    let field = match parts.first() {
        Some(Expr::Field(field)) => Some(field),
        _ => None,
    };
    let record = walk.record;
    field.into_iter().flat_map(move |field| record.values(field))
}

fn concat<'a, 'b>(parts: impl Iterator<Item = Cow<'b, [u8]>>, separator: &[u8]) -> Computed<'a> {
    let mut whole = Vec::new();
    for (count, part) in parts.enumerate() {
        whole.extend_from_slice(if count > 0 { separator } else { b"" });
        whole.extend_from_slice(&part);
        if whole.len() > TEXT_MAX {
            return Computed::NULL;
        }
    }
    Computed::Text(whole)
}

fn search<'a>(pattern: &Pattern, subject: &[u8], replacement: Option<Value<'_>>) -> Computed<'a> {
    match replacement {
        None => Value::Bool(pattern.is_in(subject)).into(),
        Some(replacement) => {
            let replaced = pattern.replace(subject, &text(replacement), TEXT_MAX);
            replaced.map_or(Computed::NULL, Computed::Text)
        }
    }
}

/// Where `part` starts in `whole`, counted from 1; 0 if nowhere.
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

/// The part of `whole` that starts at the byte `start`, counted from 1, or from the end if it is
/// negative, and has at most `length` bytes.
fn substring<'a>(whole: &[u8], start: f64, length: Option<f64>) -> Computed<'a> {
    if start.is_nan() || length.is_some_and(f64::is_nan) {
        return Computed::NULL;
    }
    // Conversions to whole numbers stop at the ends of their range.
    let from = if start < 0.0 {
        whole.len().saturating_sub((-start) as usize)
    } else {
        (start as usize).saturating_sub(1).min(whole.len())
    };
    let rest = &whole[from..];
    let length = length.map_or(rest.len(), |length| (length as usize).min(rest.len()));
    Computed::Text(rest[..length].to_vec())
}

/// Metres between two places given as latitude and longitude in degrees, on a sphere as large as
/// the earth.
fn geo_distance(degrees: [f64; 4]) -> f64 {
    const EARTH_RADIUS_M: f64 = 6_371_008.8;
    let [from_latitude, from_longitude, to_latitude, to_longitude] = degrees.map(f64::to_radians);
    let half = |from: f64, to: f64| ((to - from) / 2.0).sin().powi(2);
    let along = from_latitude.cos() * to_latitude.cos() * half(from_longitude, to_longitude);
    let haversine = half(from_latitude, to_latitude) + along;
    2.0 * EARTH_RADIUS_M * haversine.sqrt().min(1.0).asin()
}
