//! A moment of a recording, as people write it.

use lanecast::parse_duration;
use std::str::FromStr;

const NS: u64 = 1_000_000_000;

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Nanoseconds after the recording began.
    After(u64),
    /// Nanoseconds since 1970.
    Unix(u64),
}

impl Moment {
    /// In nanoseconds since 1970, of a recording that began at `began`.
    pub(super) const fn unix_ns(self, began: u64) -> u64 {
        match self {
            Self::After(ns) => began.saturating_add(ns),
            Self::Unix(ns) => ns,
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "{text} is no time: write +10s (after the beginning), 2026-11-26 15:00:00 (UTC), \
                 or nanoseconds since 1970"
            )
        };
        if let Some(offset) = text.strip_prefix('+') {
            let offset = parse_duration(offset).map_err(|_| form())?;
            return Ok(Self::After(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX)));
        }
        if let Ok(ns) = text.parse() {
            return Ok(Self::Unix(ns));
        }
        utc(text).map(Self::Unix).ok_or_else(form)
    }
}

/// Reads `2026-11-26 15:00:00.123`, in coordinated universal time; the time of day may be left out.
fn utc(text: &str) -> Option<u64> {
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
    let [year, month, day] = numbers(date, '-')?;
    let (time, fraction) = time.trim_end_matches('Z').split_once('.').unwrap_or((time, "0"));
    let time = time.trim_end_matches('Z');
    let [hour, minute, second] = numbers(time, ':')?;
    let days = days(year, month)?.checked_add(day.checked_sub(1)?)?;
    let is_valid = (1970..=2500).contains(&year)
        && days < days_of_next(year, month)?
        && hour < 24
        && minute < 60
        && second < 60;
    let is_fraction =
        (1..=9).contains(&fraction.len()) && fraction.bytes().all(|it| it.is_ascii_digit());
    if !is_valid || !is_fraction {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    seconds.checked_mul(NS)?.checked_add(fraction)
}

/// Three numbers between separators.
fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse::<u64>().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    (parts.next().is_none() && numbers[0] <= 9_999).then_some(numbers)
}

/// Days from 1970 to the first of a month.
fn days(year: u64, month: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || year < 1970 {
        return None;
    }
    // Years that start in March have their odd day at the end.
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * from_march + 2) / 5;
    days.checked_sub(719_468)
}

/// Days from 1970 to the first of the month after.
fn days_of_next(year: u64, month: u64) -> Option<u64> {
    if month == 12 { days(year + 1, 1) } else { days(year, month + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_shown() {
        let shown = |unix_ns: u64| Moment::from_str(&crate::table::utc(unix_ns));
        let ms = 1_000_000;
        for unix_ns in [0, 1_709_164_800_000 * ms, 1_709_164_799_999 * ms, 4_102_444_799_000 * ms] {
            assert_eq!(shown(unix_ns), Ok(Moment::Unix(unix_ns)));
        }
        assert_eq!(Moment::from_str("1970-01-02"), Ok(Moment::Unix(86_400 * NS)));
        assert_eq!(Moment::from_str("1970-01-01T00:00:01.5Z"), Ok(Moment::Unix(NS * 3 / 2)));
        assert_eq!(Moment::from_str("1700000000000000000"), Ok(Moment::Unix(1_700_000_000 * NS)));
        assert_eq!(Moment::from_str("+2s").map(|it| it.unix_ns(5)), Ok(2 * NS + 5));
    }

    #[test]
    fn others_are_refused_in_words() {
        for text in [
            "",
            "+",
            "-5",
            "yesterday",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "1969-12-31",
            "2026-01-01 24:00:00",
            "2026-01-01 00:60:00",
            "2026-01-01 00:00",
            "2026-01-01 00:00:00.",
            "2026-01-01 00:00:00.x",
            "9999999-01-01",
            "18446744073709551615-01-01",
            "2026-1-1-1",
        ] {
            let error = Moment::from_str(text).expect_err(text);
            assert!(error.contains("+10s"), "{text}: {error}");
        }
    }
}
