//! Formatting and parsing of times in UTC, as seconds since 1970.

use crate::number::Number;
use jiff::Timestamp;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;
use std::borrow::Cow;

/// Longest format; bounds the length of the output as well.
const FORMAT_MAX: usize = 256;
/// Longest formatted time.
const TEXT_MAX: usize = 128;

/// Formats `seconds` since 1970; `None` if the time or the format is out of range.
pub(crate) fn format(format: &[u8], seconds: Number) -> Option<Vec<u8>> {
    // An f64 resolves microseconds for times of this century.
    let time = match seconds {
        Number::Int(seconds) => Timestamp::from_second(seconds).ok()?,
        _ => Timestamp::from_microsecond(whole(seconds.to_f64() * 1e6)?).ok()?,
    };
    let text = BrokenDownTime::from(time).to_string(&*with_fractions(format, true)?).ok()?;
    (text.len() <= TEXT_MAX).then_some(text.into_bytes())
}

/// Parses `text` to seconds since 1970, in UTC unless the format contains an offset. `None` if the
/// text does not match.
pub(crate) fn parse(text: &[u8], format: &[u8]) -> Option<f64> {
    let broken = BrokenDownTime::parse(&*with_fractions(format, false)?, text).ok()?;
    let time = match (broken.timestamp(), broken.offset()) {
        (Some(time), _) => time,
        (None, offset) => {
            // A text without an offset is taken as UTC.
            offset.unwrap_or(Offset::UTC).to_timestamp(broken.to_datetime().ok()?).ok()?
        }
    };
    Some(time.as_microsecond() as f64 / 1e6)
}

/// The nearest integer, if it fits.
fn whole(number: f64) -> Option<i64> {
    let number = number.round();
    // Beyond the limit the cast would saturate and yield a wrong time.
    (number.abs() < i64::MAX as f64).then_some(number as i64)
}

/// Translates `%f` (microseconds) and `%03f` (milliseconds) to the directives of the library.
fn with_fractions(format: &[u8], is_written: bool) -> Option<Cow<'_, [u8]>> {
    // The limit bounds the work for formats that come out of messages.
    if format.len() > FORMAT_MAX {
        return None;
    }
    // Only fractions of seconds need a translation.
    if !format.contains(&b'f') {
        return Some(Cow::Borrowed(format));
    }
    let [micros, millis]: [&[u8]; 2] = if is_written { [b"%6f", b"%3f"] } else { [b"%f", b"%f"] };
    let (mut known, mut rest) = (Vec::with_capacity(format.len()), format);
    while let Some((first, behind)) = rest.split_first() {
        let (part, taken) = match rest {
            [b'%', b'%', ..] => (&rest[..2], 2),
            [b'%', b'f', ..] => (micros, 2),
            [b'%', b'0', b'3', b'f', ..] => (millis, 4),
            _ => (std::slice::from_ref(first), 1),
        };
        known.extend_from_slice(part);
        rest = &behind[taken - 1..];
    }
    Some(Cow::Owned(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, seconds: f64) -> Option<String> {
        let text = format(text.as_bytes(), Number::Float(seconds))?;
        Some(String::from_utf8(text).expect("it is a text"))
    }

    fn read(text: &str, format: &str) -> Option<f64> {
        parse(text.as_bytes(), format.as_bytes())
    }

    #[test]
    fn times_are_written_as_the_format_says() {
        let time = 1_767_348_611.123_456;
        for (format, text) in [
            ("%Y%m%d-%H:%M:%S.%03f", "20260102-10:10:11.123"),
            ("%Y-%m-%dT%H:%M:%S.%f", "2026-01-02T10:10:11.123456"),
            ("%a %b %e %j %y %I %p", "Fri Jan  2 002 26 10 AM"),
            ("%F %T %z", "2026-01-02 10:10:11 +0000"),
            ("100%% %%f", "100% %f"),
            ("%s", "1767348611"),
        ] {
            assert_eq!(written(format, time).as_deref(), Some(text), "{format}");
        }
        assert_eq!(written("%Y", -1.0).as_deref(), Some("1969"));
        assert_eq!(format(b"%F", Number::Int(0)), Some(b"1970-01-01".to_vec()));
    }

    #[test]
    fn times_are_read_as_the_format_says() {
        for (text, format, seconds) in [
            ("20260102-10:10:11.123", "%Y%m%d-%H:%M:%S.%03f", 1_767_348_611.123),
            ("20260102-10:10:11.123456", "%Y%m%d-%H:%M:%S.%f", 1_767_348_611.123_456),
            ("2026-01-02", "%Y-%m-%d", 1_767_312_000.0),
            ("2026-01-02 10:10:11 +0200", "%F %T %z", 1_767_341_411.0),
            ("1767348611", "%s", 1_767_348_611.0),
            ("Jan 2 1969", "%b %d %Y", -31_449_600.0),
        ] {
            assert_eq!(read(text, format), Some(seconds), "{text}");
        }
    }

    #[test]
    fn unrepresentable_dates_are_null() {
        for time in [f64::NAN, f64::INFINITY, 1e300, -1e15] {
            assert_eq!(written("%Y", time), None, "{time}");
        }
        assert_eq!(format(b"%Y", Number::Uint(u64::MAX)), None);
        for format in ["%", "%Ü", "%\u{1}", &"%F".repeat(13), &"x".repeat(257)] {
            assert_eq!(written(format, 0.0), None, "{format}");
        }
        for (text, format) in [
            ("", "%F"),
            ("2026-13-01", "%F"),
            ("2026-02-30", "%F"),
            ("2026-01-02 more", "%F"),
            ("10:10", "%H:%M"),
            ("x", "%"),
        ] {
            assert_eq!(read(text, format), None, "{text}");
        }
        assert_eq!(parse(b"\xff", b"\xff%Y"), None);
    }
}
