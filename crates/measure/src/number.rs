//! Whole numbers as the tools' command lines write them: decimal, or hexadecimal after `0x`.

use std::fmt;

/// Text that is no number of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// Neither decimal nor hexadecimal digits.
    NotANumber(String),
    /// A number, but one that does not fit.
    TooLarge(String),
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(text) => {
                write!(f, "'{text}' is no number: write 1000000, or hexadecimal as 0xf4240")
            }
            Self::TooLarge(text) => write!(f, "'{text}' is too large here"),
        }
    }
}

impl std::error::Error for NumberError {}

/// Reads a whole number without a sign.
///
/// ```
/// use lanecast_measure::parse_number;
/// assert_eq!(parse_number::<u8>("0x1F"), Ok(31));
/// assert!(parse_number::<u8>("256").is_err());
/// ```
///
/// # Errors
/// If anything but digits is there, or the number does not fit into `T`.
pub fn parse_number<T: TryFrom<u64>>(text: &str) -> Result<T, NumberError> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(NumberError::NotANumber(text.to_owned()));
    }
    let too_large = || NumberError::TooLarge(text.to_owned());
    let number = u64::from_str_radix(digits, radix).map_err(|_| too_large())?;
    T::try_from(number).map_err(|_| too_large())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_hexadecimal_are_read() {
        for (text, number) in [
            ("0", 0),
            ("0x0", 0),
            ("007", 7),
            ("0X3", 3),
            ("999999999", 999_999_999),
            ("0xdeadBEEF", 0xdead_beef),
            ("18446744073709551615", u64::MAX),
            ("0xffffffffffffffff", u64::MAX),
        ] {
            assert_eq!(parse_number::<u64>(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn garbage_is_refused_with_the_text() {
        for text in ["", " ", "12x", "1 ", "-1", "+1", "0x", "0xg", "1e6", "1_000", "½"] {
            let error = parse_number::<u64>(text).unwrap_err();
            assert_eq!(error, NumberError::NotANumber(text.to_owned()));
            assert!(error.to_string().contains(&format!("'{text}'")));
        }
    }

    #[test]
    fn overflow_is_refused_at_every_width() {
        assert!(parse_number::<u64>("18446744073709551616").is_err());
        assert!(parse_number::<u64>("0x10000000000000000").is_err());
        assert!(matches!(parse_number::<u32>("4294967296"), Err(NumberError::TooLarge(_))));
        assert!(matches!(parse_number::<u8>("0x100"), Err(NumberError::TooLarge(_))));
        assert_eq!(parse_number::<u8>("0xff"), Ok(255));
    }
}
