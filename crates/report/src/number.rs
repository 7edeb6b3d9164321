//! Numbers as people read them.

/// Largest number shown; larger ones are invalid.
const HIGHEST: f64 = 1e20;

/// A number and its unit, kept apart so that a range can name the unit once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quantity {
    pub(crate) number: String,
    pub(crate) unit: &'static str,
}

impl Quantity {
    fn new(number: String, unit: &'static str) -> Self {
        Self { number, unit }
    }

    /// The number, with its unit unless `other`, which stands after it, has the same one.
    pub(crate) fn before(&self, other: &Self) -> String {
        if self.unit == other.unit { self.number.clone() } else { self.text() }
    }

    /// Number and unit.
    pub(crate) fn text(&self) -> String {
        if self.unit.is_empty() || self.unit == "%" {
            format!("{}{}", self.number, self.unit)
        } else {
            format!("{} {}", self.number, self.unit)
        }
    }
}

/// A count in thousands, such as `12 345`.
pub(crate) fn count(number: u64) -> Quantity {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            // Narrow, and no place to break a line.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    Quantity::new(text, "")
}

/// A count, as figures of all kinds are shown.
pub(crate) fn whole(number: f64) -> Quantity {
    count(number as u64)
}

/// Messages per second, such as `1.25 M/s`.
pub(crate) fn rate(per_second: f64) -> Quantity {
    match per_second.clamp(0.0, HIGHEST) {
        r if r >= 1e6 => Quantity::new(format!("{:.2}", r / 1e6), "M/s"),
        r if r >= 1e3 => Quantity::new(format!("{:.1}", r / 1e3), "k/s"),
        r => Quantity::new(format!("{r:.1}"), "/s"),
    }
}

/// Bytes per second in megabytes of 10^6 bytes, such as `56.0 MB/s`.
pub(crate) fn megabytes(per_second: f64) -> Quantity {
    Quantity::new(format!("{:.1}", per_second.clamp(0.0, HIGHEST) / 1e6), "MB/s")
}

/// A time, such as `12.3 µs`.
pub(crate) fn time(ns: f64) -> Quantity {
    match ns.clamp(0.0, HIGHEST) {
        t if t < 10.0 && t.fract() != 0.0 => Quantity::new(format!("{t:.1}"), "ns"),
        t if t < 9_999.5 => Quantity::new(format!("{t:.0}"), "ns"),
        t if t < 9_999_950.0 => Quantity::new(format!("{:.1}", t / 1e3), "µs"),
        t if t < 9_999_950_000.0 => Quantity::new(format!("{:.1}", t / 1e6), "ms"),
        t => Quantity::new(format!("{:.1}", t / 1e9), "s"),
    }
}

/// A rate on an axis, without digits that say nothing, such as `5 M/s`.
pub(crate) fn rate_tick(per_second: f64) -> Quantity {
    match per_second {
        r if r >= 1e9 => short(Quantity::new(format!("{:.2}", r / 1e9), "G/s")),
        r => short(rate(r)),
    }
}

/// A time on an axis, such as `1 µs`.
pub(crate) fn time_tick(ns: f64) -> Quantity {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let (unit, name) = units.into_iter().find(|(unit, _)| ns >= *unit).unwrap_or((1.0, "ns"));
    short(Quantity::new(format!("{:.2}", ns / unit), name))
}

/// A count on an axis, such as `20 k`.
pub(crate) fn short_count(count: f64) -> Quantity {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, name) = units.into_iter().find(|(unit, _)| count >= *unit).unwrap_or((1.0, ""));
    short(Quantity::new(format!("{:.2}", count / unit), name))
}

fn short(mut quantity: Quantity) -> Quantity {
    if quantity.number.contains('.') {
        let kept = quantity.number.trim_end_matches('0').trim_end_matches('.').len();
        quantity.number.truncate(kept);
    }
    quantity
}

/// A ratio, such as `×1.25`.
pub(crate) fn ratio(times: f64) -> Quantity {
    let times = times.clamp(0.0, HIGHEST);
    let digits = if times < 10.0 { 2 } else { 1 };
    Quantity::new(format!("×{times:.digits$}"), "")
}

/// A share, such as `1.25`, or `1/2500` if small.
pub(crate) fn share(share: f64) -> Quantity {
    match share.clamp(0.0, HIGHEST) {
        s if (1.0 / HIGHEST..0.1).contains(&s) => Quantity::new(format!("1/{:.0}", 1.0 / s), ""),
        s => short(Quantity::new(format!("{s:.2}"), "")),
    }
}

/// A share as a percentage, such as `0.3%`.
pub(crate) fn percent(share: f64) -> Quantity {
    let percent = (share * 100.0).clamp(-HIGHEST, HIGHEST);
    let digits = if percent.abs() < 10.0 { 1 } else { 0 };
    Quantity::new(format!("{percent:.digits$}"), "%")
}

/// A change, with its sign, such as `+0.3%`.
pub(crate) fn change(share: f64) -> Quantity {
    let Quantity { number, unit } = percent(share.abs());
    let sign = if number.trim_matches(['0', '.']).is_empty() {
        "±"
    } else if share < 0.0 {
        "−"
    } else {
        "+"
    };
    Quantity::new(format!("{sign}{number}"), unit)
}

/// A size of memory, such as `1.5 MiB`.
pub(crate) fn bytes(bytes: u64) -> Quantity {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let number = format!("{:.1}", bytes as f64 / *unit as f64);
            Quantity::new(number.trim_end_matches(".0").to_owned(), name)
        }
        None => Quantity::new(bytes.to_string(), "B"),
    }
}

/// A rate that was asked for, such as `250 k/s`; 0 and 999999999 are flat out.
pub(crate) fn asked(rate: u64) -> String {
    match rate {
        0 | 999_999_999 => "flat out".to_owned(),
        r if r % 1_000_000 == 0 => format!("{} M/s", r / 1_000_000),
        r if r % 1_000 == 0 => format!("{} k/s", r / 1_000),
        r => format!("{r} /s"),
    }
}

/// A moment in UTC, such as `2026-03-01 12:30`.
pub(crate) fn moment(unix_ns: u64) -> String {
    let minutes = unix_ns / 60_000_000_000;
    let (days, minute) = (minutes / 1440, minutes % 1440);
    // Years begin in March here, so that the day that comes and goes is the last one.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// `one` thing, or several `many`.
pub(crate) fn plural(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let found = [time(9.5), time(9.0), time(180.4), time(12_345.0), time(45.6e6), time(12e9)];
        let expected = ["9.5 ns", "9 ns", "180 ns", "12.3 µs", "45.6 ms", "12.0 s"];
        assert_eq!(found.map(|found| found.text()), expected);
        assert_eq!(time(9999.6).text(), "10.0 µs");
        assert_eq!([rate(12.34), rate(14.2e6)].map(|found| found.text()), ["12.3 /s", "14.20 M/s"]);
        assert_eq!(count(1_234_567).text(), "1\u{202f}234\u{202f}567");
        assert_eq!([bytes(512), bytes(20 << 20)].map(|found| found.text()), ["512 B", "20 MiB"]);
        assert_eq!([asked(0), asked(250_000), asked(7)], ["flat out", "250 k/s", "7 /s"]);
        assert_eq!(
            [share(1.254), share(0.0), share(0.0004)].map(|s| s.number),
            ["1.25", "0", "1/2500"]
        );
        assert_eq!([rate_tick(2e9), rate_tick(5e6)].map(|tick| tick.text()), ["2 G/s", "5 M/s"]);
        let changes = [change(0.012), change(-0.5), change(0.0001)].map(|found| found.text());
        assert_eq!(changes, ["+1.2%", "−50%", "±0.0%"]);
    }

    #[test]
    fn moments_are_the_calendars() {
        assert_eq!(moment(0), "1970-01-01 00:00");
        assert_eq!(moment(951_827_696_000_000_000), "2000-02-29 12:34");
        assert_eq!(moment(1_772_323_199_999_999_999), "2026-02-28 23:59");
        assert_eq!(moment(u64::MAX), "2554-07-21 23:34");
    }
}
