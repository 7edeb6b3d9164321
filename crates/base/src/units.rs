//! Numbers with units, as configuration files and command lines write them.

use core::fmt;
use core::str::FromStr;
use std::time::Duration;

/// Text that is not a number with a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a {}", self.text, self.expected)
    }
}

impl std::error::Error for UnitError {}

const SIZE: &str = "size: write bytes or a number with KiB, MiB or GiB, such as 64KiB";
const DURATION: &str = "duration: write a number with ns, us, ms or s, such as 200us";

/// A number of bytes.
///
/// ```
/// use lanecast_base::Size;
/// assert_eq!("64KiB".parse(), Ok(Size(65536)));
/// assert_eq!(Size(1 << 20).to_string(), "1MiB");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const SIZE_UNITS: [(&str, u64); 5] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1), ("", 1)];

impl FromStr for Size {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError { text: text.to_owned(), expected: SIZE };
        let (number, unit) = split(text);
        let number: u64 = number.parse().map_err(|_| error())?;
        let (_, bytes) = SIZE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        number.checked_mul(*bytes).map(Size).ok_or_else(error)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes) = SIZE_UNITS
            .iter()
            .find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes))
            .unwrap_or(&("B", 1));
        write!(f, "{}{name}", self.0 / bytes)
    }
}

const DURATION_UNITS: [(&str, u64); 4] =
    [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// Reads `200us`, `1s`, `1500ms`. A bare `0` is allowed, any other bare number is not.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(lanecast_base::parse_duration("200us"), Ok(Duration::from_micros(200)));
/// assert!(lanecast_base::parse_duration("200").is_err());
/// ```
///
/// # Errors
/// If the text is not a whole number with one of the units ns, us, ms, s.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = || UnitError { text: text.to_owned(), expected: DURATION };
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (number, unit) = split(text);
    let number: u64 = number.parse().map_err(|_| error())?;
    let (_, ns) = DURATION_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
    number.checked_mul(*ns).map(Duration::from_nanos).ok_or_else(error)
}

/// Writes a duration so that [`parse_duration`] reads the same back (up to 584 years).
pub fn format_duration(duration: Duration) -> String {
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let (name, unit) = DURATION_UNITS
        .iter()
        .find(|(_, unit)| ns >= *unit && ns.is_multiple_of(*unit))
        .unwrap_or(&("s", 1));
    format!("{}{name}", ns / unit)
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}
