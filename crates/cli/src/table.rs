//! Aligned tables for people.

use crate::printable::width;
use lanecast_report::{TextTable, wrap};
use std::io::{self, IsTerminal};

/// Width of a table that no terminal shows, unless COLUMNS says another: `grep` wants whole rows.
const WIDTH: usize = 200;

/// The table as text, within the width of the output.
pub(crate) fn render(table: &TextTable) -> String {
    table.render(columns())
}

/// The parts of a heading on a line, or each on lines of its own where the output is too narrow.
pub(crate) fn heading<const N: usize>(parts: [String; N]) -> String {
    heading_within(parts, columns())
}

fn heading_within<const N: usize>(parts: [String; N], columns: usize) -> String {
    let parts = || parts.iter().filter(|part| !part.is_empty());
    let line = parts().map(String::as_str).collect::<Vec<_>>().join("  ");
    if width(&line) <= columns {
        return line;
    }
    let lines = parts().flat_map(|part| wrap(part, columns));
    lines.flat_map(|line| broken(&line, columns)).collect::<Vec<_>>().join("\n")
}

/// Lines of at most `columns`, broken at any blank: the number of a session is no quantity, which
/// stays beside its unit.
fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Room beside the first column, of `lead` characters, in a table whose columns are stacked.
pub(crate) fn room_beside(lead: usize) -> usize {
    const GAP: usize = 2;
    columns().saturating_sub(lead + GAP)
}

/// Width of the output.
pub(crate) fn columns() -> usize {
    width_or(WIDTH)
}

/// The terminal's width; elsewhere that in the environment variable COLUMNS, or `default`.
pub(crate) fn width_or(default: usize) -> usize {
    if io::stdout().is_terminal() {
        return crate::watch::terminal_size().0;
    }
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    asked.filter(|columns| *columns > 0).unwrap_or(default)
}

/// A number in thousands, such as `12 345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number of things, such as `1 message` or `12 345 messages`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A rate in messages per second, such as `1.25 M/s`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 1e6 => format!("{:.2} M/s", r / 1e6),
        r if r >= 1e3 => format!("{:.1} k/s", r / 1e3),
        r => format!("{r:.1} /s"),
    }
}

/// A rate in bytes per second, such as `12.3 MB/s`.
pub(crate) fn byte_rate(per_second: f64) -> String {
    match per_second {
        r if r >= 1e9 => format!("{:.2} GB/s", r / 1e9),
        r if r >= 1e6 => format!("{:.1} MB/s", r / 1e6),
        r if r >= 1e3 => format!("{:.1} kB/s", r / 1e3),
        r => format!("{r:.0} B/s"),
    }
}

/// A length, such as `12.3 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    let (kib, mib) = (bytes as f64 / 1024.0, bytes as f64 / (1024.0 * 1024.0));
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{kib:.1} KiB"),
        _ => format!("{mib:.1} MiB"),
    }
}

/// A time, such as `12.3 us`.
pub(crate) fn time(ns: u64) -> String {
    match ns {
        0..=9_999 => format!("{ns} ns"),
        10_000..=9_999_999 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..=9_999_999_999 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// A moment, such as `2026-11-21 16:03:21.123`, in coordinated universal time.
pub(crate) fn utc(unix_ns: u64) -> String {
    let (ms, seconds) = (unix_ns / 1_000_000 % 1000, unix_ns / 1_000_000_000);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Years that start in March have their odd day at the end: 400 of them are an era.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = 400 * era + year + u64::from(month < 3);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        assert_eq!(["0", "999", "1 000", "1 234 567"], [0, 999, 1000, 1_234_567].map(grouped));
        assert_eq!(
            ["0 keys", "1 key", "1 000 keys"],
            [0, 1, 1000].map(|many| counted(many, "key"))
        );
        assert_eq!([rate(12.34), rate(12_340.0)], ["12.3 /s", "12.3 k/s"]);
        let bytes = [12.0, 12_340.0, 2_500_000_000.0].map(byte_rate);
        assert_eq!(bytes, ["12 B/s", "12.3 kB/s", "2.50 GB/s"]);
        assert_eq!([size(64), size(1536), size(3 << 19)], ["64 B", "1.5 KiB", "1.5 MiB"]);
        assert_eq!([time(180), time(12_300), time(45_600_000)], ["180 ns", "12.3 us", "45.6 ms"]);
    }

    #[test]
    fn a_heading_is_one_line_or_one_for_each_part() {
        let parts = || ["a session".to_owned(), String::new(), "(pid 7 name)".to_owned()];
        assert_eq!(heading_within(parts(), 23), "a session  (pid 7 name)");
        assert_eq!(heading_within(parts(), 22), "a session\n(pid 7 name)");
        assert_eq!(heading_within(parts(), 8), "a\nsession\n(pid 7\nname)");
        let session = ["subscriber 08271b46f8a5ad11 ru 127.0.0.1:58741".to_owned()];
        let lines = "subscriber 08271b46f8a5ad11 ru\n127.0.0.1:58741";
        assert_eq!(heading_within(session, 40), lines);
    }

    #[test]
    fn moments_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00.000");
        assert_eq!(utc(1_709_164_799_999_000_000), "2024-02-28 23:59:59.999");
        assert_eq!(utc(1_709_164_800_000_000_000), "2024-02-29 00:00:00.000");
        assert_eq!(utc(1_709_251_200_000_000_000), "2024-03-01 00:00:00.000");
        assert_eq!(utc(4_102_444_799_000_000_000), "2099-12-31 23:59:59.000");
        assert_eq!(utc(u64::MAX), "2554-07-21 23:34:33.709");
    }
}
