//! Histograms of a line's times.

use crate::distribution::{Bin, Spacing};
use crate::document::{Block, Histogram};
use crate::line::Line;
use serde::Deserialize;

/// Bars side by side: as many as a phone can show.
const BARS: usize = 48;
/// The quantile at which the even histogram ends; the logarithmic one shows all samples.
const BULK: f64 = 0.999;

/// The distribution at `path`; none without buckets.
pub(super) fn of(title: String, line: &Line, path: &str) -> Option<Block> {
    let times = line.times(path)?;
    let (end, most) = (times.quantile(BULK)?, times.most()?);
    let (bulk, beyond) = times.bins(BARS, end, Spacing::Even);
    let (all, _) = times.bins(BARS, most, Spacing::Logarithmic);
    Some(Block::Histogram(Histogram { title, line: line.id, bulk, beyond, all }))
}

/// A histogram of evenly spaced buckets, as the UM latency tools print it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Linear {
    pub(super) buckets: u64,
    pub(super) width_ns: u64,
    counts: Vec<u64>,
    overflows: u64,
    /// `(per cent, ns)`; −1 ns if overflows hide the percentile.
    pub(super) percentiles: Vec<(f64, i64)>,
}

impl Linear {
    /// The histogram at `path`.
    pub(super) fn at(line: &Line, path: &str) -> Option<Self> {
        Self::deserialize(line.at(path)?).ok()
    }

    /// The histogram as bars; none if nothing was counted.
    pub(super) fn histogram(&self, title: String, line: usize) -> Option<Block> {
        let Self { counts, overflows, .. } = self;
        let width = Some(self.width_ns).filter(|width| *width > 0)? as f64;
        let first = counts.iter().position(|count| *count > 0)?;
        let last = counts.iter().rposition(|count| *count > 0)?;
        // Neighbours are merged where there are more buckets than bars.
        let step = (last + 1 - first).div_ceil(2 * BARS).max(1);
        let bulk: Vec<Bin> = (first..=last)
            .step_by(step)
            .map(|at| Bin {
                from_ns: at as f64 * width,
                to_ns: (at + step) as f64 * width,
                count: counts.iter().skip(at).take(step).fold(0, |sum, n| sum.saturating_add(*n)),
            })
            .collect();
        let (all, beyond) = (bulk.clone(), *overflows);
        Some(Block::Histogram(Histogram { title, line, bulk, beyond, all }))
    }
}
