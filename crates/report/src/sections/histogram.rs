//! Histograms of a line's times.

use crate::distribution::{Bin, Distribution, Spacing};
use crate::document::{Block, Histogram};
use crate::outcome::Linear;

/// Bars side by side: as many as a phone can show.
const BARS: usize = 48;
/// The even histogram ends here; what is beyond is in the logarithmic one.
const BULK: f64 = 0.999;

/// Of `times`, on the line `line`.
pub(super) fn of(title: String, line: usize, times: &Distribution) -> Option<Block> {
    let (end, most) = (times.quantile(BULK)?, times.most()?);
    let (bulk, beyond) = times.bins(BARS, end, Spacing::Even);
    let (all, _) = times.bins(BARS, most, Spacing::Logarithmic);
    Some(Block::Histogram(Histogram { title, line, bulk, beyond, all }))
}

/// Of evenly spaced buckets, as the UM latency tools print them.
pub(super) fn of_linear(title: String, line: usize, linear: &Linear) -> Option<Block> {
    let counts = linear.counts.as_deref()?;
    let width = linear.width_ns.filter(|width| *width > 0)? as f64;
    let first = counts.iter().position(|count| *count > 0)?;
    let last = counts.iter().rposition(|count| *count > 0)?;
    // Neighbours are put together where there are more buckets than bars.
    let step = (last + 1 - first).div_ceil(2 * BARS).max(1);
    let bulk: Vec<Bin> = (first..=last)
        .step_by(step)
        .map(|at| Bin {
            from_ns: at as f64 * width,
            to_ns: (at + step) as f64 * width,
            count: counts.iter().skip(at).take(step).fold(0, |sum, n| sum.saturating_add(*n)),
        })
        .collect();
    let beyond = linear.overflows.unwrap_or(0);
    Some(Block::Histogram(Histogram { title, line, all: bulk.clone(), bulk, beyond }))
}
