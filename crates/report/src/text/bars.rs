//! A small histogram of characters; the counts are logarithmic, so that single outliers show.

use crate::distribution::Bin;
use crate::document::Histogram;
use crate::number;
use std::fmt::Write;

/// Rows, at most.
const ROWS: usize = 16;
/// Eighths of a character, from none to all.
const EIGHTHS: [Option<char>; 8] =
    [None, Some('▏'), Some('▎'), Some('▍'), Some('▌'), Some('▋'), Some('▊'), Some('▉')];

/// One row for each bin: its time, its count, a bar.
pub(super) fn render(histogram: &Histogram, width: usize) -> String {
    let bins = merged(&histogram.all, ROWS);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    let names: Vec<(String, String)> = bins
        .iter()
        .map(|bin| (number::time(bin.to_ns).text(), number::count(bin.count).text()))
        .collect();
    let widest = |pick: fn(&(String, String)) -> &String| {
        names.iter().map(|row| pick(row).chars().count()).max().unwrap_or(0)
    };
    let (times, counts) = (widest(|row| &row.0), widest(|row| &row.1));
    let room = width.saturating_sub(times + counts + 8).max(8);
    let mut text = String::new();
    for (bin, (time, count)) in bins.iter().zip(&names) {
        let bar = bar(bin.count, most, room);
        let row = format!("  ≤ {time:>times$}  {count:>counts$}  {bar}");
        writeln!(text, "{}", row.trim_end()).expect("a string grows");
    }
    text
}

/// `bins`, neighbours put together until there are at most `rows`.
fn merged(bins: &[Bin], rows: usize) -> Vec<Bin> {
    let step = bins.len().div_ceil(rows).max(1);
    let together = bins.chunks(step).map(|part| Bin {
        from_ns: part[0].from_ns,
        to_ns: part[part.len() - 1].to_ns,
        count: part.iter().fold(0, |sum, bin| sum.saturating_add(bin.count)),
    });
    together.collect()
}

/// A bar as long as the logarithm of `count`; a single sample can be seen.
fn bar(count: u64, most: u64, room: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let share = (count as f64 + 1.0).ln() / (most as f64 + 1.0).ln().max(1.0);
    let eighths = ((share.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize).max(1);
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(EIGHTHS[eighths % 8]);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_logarithmic_and_fit() {
        let bins = [(1.0, 1u64), (2.0, 1000), (3.0, 0), (4.0, u64::MAX)];
        let all = bins.map(|(to_ns, count)| Bin { from_ns: to_ns - 1.0, to_ns, count }).to_vec();
        let histogram = Histogram { title: String::new(), line: 1, bulk: vec![], beyond: 0, all };
        let text = render(&histogram, 60);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row.chars().count() <= 60), "{text}");
        let bars = rows.iter().map(|row| row.chars().filter(|c| *c >= '▀').count());
        let bars: Vec<usize> = bars.collect();
        assert!(bars[0] == 1 && bars[1] > 3 && bars[2] == 0 && bars[3] > 2 * bars[1], "{text}");
    }

    #[test]
    fn many_bins_make_few_rows() {
        let bin = |at: usize| Bin { from_ns: at as f64, to_ns: at as f64 + 1.0, count: 2 };
        let bins: Vec<Bin> = (0..48).map(bin).collect();
        let rows = merged(&bins, 16);
        assert_eq!((rows.len(), rows[15].to_ns), (16, 48.0));
        assert!(rows.iter().all(|row| row.count == 6));
    }
}
