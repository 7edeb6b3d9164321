//! Distributions of times with their buckets: quantiles, curves and histograms.

use serde::Deserialize;

/// A distribution of times, in nanoseconds. A member that is missing or null is not known.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Distribution {
    pub(crate) min_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) samples: Option<u64>,
    /// `(upper bound, samples)`, in rising order.
    pub(crate) buckets: Vec<(u64, u64)>,
}

/// A bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bin {
    /// Exclusive, except in the first bin.
    pub(crate) from_ns: f64,
    /// Inclusive.
    pub(crate) to_ns: f64,
    pub(crate) count: u64,
}

/// The spacing of bin edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    Even,
    Logarithmic,
}

impl Distribution {
    /// Whether a histogram can be drawn.
    pub(crate) fn has_buckets(&self) -> bool {
        self.counted() > 0
    }

    /// Samples in all buckets.
    pub(crate) fn counted(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// The minimum: exact if known, else from the buckets.
    pub(crate) fn least(&self) -> Option<u64> {
        let occupied = self.buckets.iter().find(|(_, count)| *count > 0);
        self.min_ns.or_else(|| occupied.map(|(ns, _)| *ns))
    }

    /// The maximum: exact if known, else from the buckets.
    pub(crate) fn most(&self) -> Option<u64> {
        let occupied = self.buckets.iter().rev().find(|(_, count)| *count > 0);
        self.max_ns.or_else(|| occupied.map(|(ns, _)| *ns))
    }

    /// The quantile `share`, from the buckets.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        let counted = self.counted();
        let exact = counted as f64 * share;
        // 0.9 is not exact in binary: without the correction it could ask for one sample more.
        let wanted = ((exact - exact * 1e-12).ceil() as u64).clamp(1, counted.max(1));
        let mut sum = 0u64;
        let found = self.buckets.iter().find(|(_, count)| {
            sum = sum.saturating_add(*count);
            sum >= wanted
        });
        let (least, most) = (self.least()?, self.most()?);
        found.map(|(ns, _)| (*ns).max(least).min(most.max(least)))
    }

    /// Samples of at most `ns`.
    pub(crate) fn count_up_to(&self, ns: u64) -> u64 {
        if self.most().is_some_and(|most| ns >= most) {
            return self.counted();
        }
        let until = self.buckets.iter().take_while(|(bucket, _)| *bucket <= ns);
        until.fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// Points `(1/(1-p), ns)` of the plot by percentile: eight for each nine.
    pub(crate) fn curve(&self) -> Vec<(f64, u64)> {
        let counted = self.counted() as f64;
        let steps = (0..).map(|step| 10f64.powf(f64::from(step) / 8.0));
        steps
            .take_while(|inverse| *inverse <= counted)
            .filter_map(|inverse| Some((inverse, self.quantile(1.0 - 1.0 / inverse)?)))
            .collect()
    }

    /// At most `bins` bins from the minimum to `to_ns`, and the number of samples beyond.
    pub(crate) fn bins(&self, bins: usize, to_ns: u64, spacing: Spacing) -> (Vec<Bin>, u64) {
        let Some(least) = self.least() else { return (Vec::new(), 0) };
        let edges = edges(least, to_ns.max(least), bins, spacing);
        let mut found: Vec<Bin> = edges
            .windows(2)
            .map(|pair| Bin { from_ns: pair[0], to_ns: pair[1], count: 0 })
            .collect();
        let mut beyond = 0u64;
        for &(ns, count) in &self.buckets {
            let at = found.partition_point(|bin| bin.to_ns < ns as f64);
            match found.get_mut(at) {
                Some(bin) => bin.count = bin.count.saturating_add(count),
                None => beyond = beyond.saturating_add(count),
            }
        }
        (found, beyond)
    }
}

/// Rising edges of bins from below `least` to `most`, none narrower than a nanosecond.
fn edges(least: u64, most: u64, bins: usize, spacing: Spacing) -> Vec<f64> {
    let (least, most) = (least as f64, most as f64);
    let below = (least - 1.0).max(0.0);
    let edge = |at: usize| {
        let share = at as f64 / bins as f64;
        match spacing {
            Spacing::Even => below + (most - below) * share,
            Spacing::Logarithmic => below.max(1.0) * (most / below.max(1.0)).max(1.0).powf(share),
        }
    };
    let mut edges = vec![below];
    for at in 1..bins {
        let next = edge(at).round();
        if next >= edges[edges.len() - 1] + 1.0 && next < most {
            edges.push(next);
        }
    }
    // The last edge is the longest time itself, so that nothing within it counts as beyond.
    edges.push(most.max(below + 1.0));
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Distribution {
        Distribution {
            min_ns: Some(100),
            max_ns: Some(9000),
            buckets: vec![(100, 50), (101, 40), (200, 9), (9001, 1)],
            ..Distribution::default()
        }
    }

    #[test]
    fn quantiles_are_the_least_times_that_suffice() {
        let sample = sample();
        let found = [0.0, 0.5, 0.51, 0.9, 0.99, 1.0].map(|share| sample.quantile(share).unwrap());
        assert_eq!(found, [100, 100, 101, 101, 200, 9000]);
        assert_eq!(Distribution::default().quantile(0.5), None);
    }

    #[test]
    fn a_curve_ends_where_samples_do() {
        let curve = sample().curve();
        assert_eq!(curve[0], (1.0, 100));
        assert_eq!(curve.len(), 17, "8 steps for each of two nines, and the start");
        assert_eq!(curve[16].1, 200);
    }

    #[test]
    fn bins_hold_every_sample() {
        for spacing in [Spacing::Even, Spacing::Logarithmic] {
            for (bins, to) in [(1, 9000), (7, 9000), (60, 9000), (60, 150), (5, 0), (60, 9001)] {
                let (found, beyond) = sample().bins(bins, to, spacing);
                let inside: u64 = found.iter().map(|bin| bin.count).sum();
                assert_eq!(inside + beyond, 100, "{spacing:?} {bins} {to}");
                assert!(found.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
                assert!(found.iter().all(|bin| bin.to_ns > bin.from_ns && bin.to_ns.is_finite()));
            }
        }
    }

    #[test]
    fn an_empty_distribution_draws_nothing() {
        let empty = Distribution { buckets: vec![(5, 0)], ..Distribution::default() };
        assert!(!empty.has_buckets() && empty.curve().is_empty());
        assert_eq!(empty.least(), None);
        assert_eq!(empty.bins(10, 100, Spacing::Even), (vec![], 0));
    }
}
