//! Sizes, times and shares in few digits.

use std::fmt::Display;

/// A size such as `23.5 GiB`.
pub(super) fn size(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{} {name}", digits(bytes as f64 / *unit as f64)),
        None => format!("{bytes} B"),
    }
}

/// A time such as `4.1 ms`.
pub(super) fn time(ns: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    let (name, unit) = units.iter().find(|(_, unit)| ns >= *unit).unwrap_or(&("ns", 1.0));
    format!("{} {name}", digits(ns / unit))
}

/// A share such as `1.2 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 0.01 {
        return if percent > 0.0 { "under 0.01 %" } else { "0 %" }.to_owned();
    }
    let decimals = if percent < 0.1 { 2 } else { 1 };
    format!("{percent:.decimals$} %")
}

/// `one` or `many`, after the count.
pub(super) fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Items with commas.
pub(super) fn joined(items: impl IntoIterator<Item = impl Display>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn digits(number: f64) -> String {
    let decimals = usize::from(number < 100.0 && number.fract() >= 0.05);
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        assert_eq!(["12 B", "1 KiB", "23.5 GiB"], [12, 1024, (47 << 30) / 2].map(size));
        assert_eq!(["16.5 ns", "130 ns", "4.1 ms"], [16.5, 130.4, 4.1e6].map(time));
        assert_eq!(
            ["0 %", "under 0.01 %", "0.05 %", "45.6 %"],
            [0.0, 1e-5, 5e-4, 0.456].map(percent)
        );
        assert_eq!([count(1, "node", "nodes"), count(2, "node", "nodes")], ["1 node", "2 nodes"]);
    }
}
