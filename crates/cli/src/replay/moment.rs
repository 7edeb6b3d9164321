//! A moment of a recording, as people write it.

use crate::utc::parse_utc;
use lanecast::parse_duration;
use std::str::FromStr;

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
        parse_utc(text).map(Self::Unix).ok_or_else(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: u64 = 1_000_000_000;

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
