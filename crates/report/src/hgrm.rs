//! HdrHistogram's text by percentile, which its plotter and others read.

use crate::distribution::Distribution;
use crate::hlog::histogram;
use std::fmt::Write;

/// Steps on the way to each halving of what remains, as HdrHistogram's own tools take them.
const TICKS: u32 = 5;
/// Sub-buckets of the library's histogram at its number of digits.
const SUB_BUCKETS: u32 = 32_768;

/// `times` in nanoseconds, by percentile.
pub(crate) fn write(times: &Distribution) -> String {
    let mut text = String::new();
    render(times, &mut text).expect("a string grows");
    text
}

fn render(times: &Distribution, text: &mut String) -> std::fmt::Result {
    let [value, percentile, total_count] = ["Value", "Percentile", "TotalCount"];
    writeln!(text, "{value:>12} {percentile:>14} {total_count:>10} 1/(1-Percentile)\n")?;
    let counted = times.counted();
    for share in shares(counted) {
        let Some(ns) = times.quantile(share) else { break };
        let total = if share < 1.0 { times.count_up_to(ns) } else { counted };
        write!(text, "{:>12.3} {share:>14.12} {total:>10}", ns as f64)?;
        if share < 1.0 {
            write!(text, " {:>14.2}", 1.0 / (1.0 - share))?;
        }
        writeln!(text)?;
    }
    let histogram = histogram(times);
    let mean = times.mean_ns.unwrap_or_else(|| histogram.mean());
    let (deviation, most) = (histogram.stdev(), times.most().unwrap_or(0) as f64);
    let (total, buckets) = (times.samples.unwrap_or(counted), histogram.buckets());
    writeln!(text, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]")?;
    writeln!(text, "#[Max     = {most:>12.3}, Total count    = {total:>12}]")?;
    writeln!(text, "#[Buckets = {buckets:>12}, SubBuckets     = {SUB_BUCKETS:>12}]")?;
    writeln!(text, "# Values are nanoseconds.")
}

/// Shares of the samples, in steps that get smaller towards all of them, until less than one
/// sample is left; then all.
fn shares(counted: u64) -> impl Iterator<Item = f64> {
    let left = (0..64).flat_map(|halving| {
        let left = 0.5f64.powi(halving);
        (0..TICKS).map(move |tick| left - left / 2.0 * f64::from(tick) / f64::from(TICKS))
    });
    let counted = counted as f64;
    left.take_while(move |left| left * counted >= 1.0).map(|left| 1.0 - left).chain([1.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plotter's view of a line: the first and the last of four columns.
    fn plotted(text: &str) -> Vec<(f64, f64)> {
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        rows.filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let [value, _, _, inverse] = columns[..] else { return None };
            Some((inverse.parse().ok()?, value.parse().ok()?))
        })
        .collect()
    }

    #[test]
    fn the_plotter_reads_it() {
        let times = Distribution {
            min_ns: Some(100),
            max_ns: Some(70_000),
            mean_ns: Some(112.5),
            samples: Some(1000),
            buckets: vec![(100, 500), (110, 400), (120, 90), (4100, 9), (70_016, 1)],
        };
        let text = write(&times);
        let points = plotted(&text);
        assert_eq!(points[0], (1.0, 100.0));
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert!(points.contains(&(10.0, 110.0)), "90 % are at most 110 ns: {points:?}");
        assert!(text.contains("\n   70000.000 1.000000000000       1000\n"), "{text}");
        assert!(text.contains("#[Max     =    70000.000, Total count    =         1000]"));
    }

    #[test]
    fn an_empty_histogram_has_no_rows() {
        assert!(plotted(&write(&Distribution::default())).is_empty());
    }
}
