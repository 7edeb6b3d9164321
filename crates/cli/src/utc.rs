//! Times of day as people write them, in coordinated universal time.

/// Nanoseconds of a second.
const NS: u64 = 1_000_000_000;

/// Reads `2026-11-26 15:00:00.123`, in coordinated universal time; the time of day may be left out.
pub(crate) fn parse_utc(text: &str) -> Option<u64> {
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
