//! Latencies of one run: from the real send time and from the intended one.
//!
//! A sender that stalls sends late and so hides the stall from the first figure, not from the
//! second: both are kept.

use hdrhistogram::Histogram;

use crate::clock::Clock;
use crate::line::Line;

/// Longest latency that is told apart from longer ones, in ticks: more than a minute.
const LONGEST_TICKS: u64 = 1 << 38;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Percentiles of one kind of latency, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Shortest.
    pub min_ns: f64,
    /// Half are not longer.
    pub p50_ns: f64,
    /// Nine of ten are not longer.
    pub p90_ns: f64,
    /// 99 of 100 are not longer.
    pub p99_ns: f64,
    /// 999 of 1000 are not longer.
    pub p99_9_ns: f64,
    /// Longest.
    pub max_ns: f64,
}

/// Records both kinds of latency without allocating.
#[derive(Debug)]
pub struct Recorder {
    actual: Histogram<u64>,
    intended: Histogram<u64>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { actual: histogram(), intended: histogram() }
    }
}

impl Recorder {
    /// Records one message: ticks since it was sent and since it was due.
    #[inline]
    pub fn record(&mut self, since_sent: u64, since_due: u64) {
        self.actual.saturating_record(since_sent);
        self.intended.saturating_record(since_due);
    }

    /// Forgets what was recorded.
    pub fn clear(&mut self) {
        self.actual.clear();
        self.intended.clear();
    }

    /// Latency from the real send time.
    pub fn actual(&self, clock: &Clock) -> Spread {
        spread(&self.actual, clock)
    }

    /// Latency from the intended send time.
    pub fn intended(&self, clock: &Clock) -> Spread {
        spread(&self.intended, clock)
    }

    /// Adds both kinds to a result line; the intended one under keys with `_intended`.
    pub fn describe(&self, clock: &Clock, line: &mut Line) {
        line.add("samples", self.actual.len());
        for (infix, spread) in [("", self.actual(clock)), ("_intended", self.intended(clock))] {
            line.add(&format!("p50{infix}_ns"), format_args!("{:.0}", spread.p50_ns));
            line.add(&format!("p90{infix}_ns"), format_args!("{:.0}", spread.p90_ns));
            line.add(&format!("p99{infix}_ns"), format_args!("{:.0}", spread.p99_ns));
            line.add(&format!("p99_9{infix}_ns"), format_args!("{:.0}", spread.p99_9_ns));
            line.add(&format!("min{infix}_ns"), format_args!("{:.0}", spread.min_ns));
            line.add(&format!("max{infix}_ns"), format_args!("{:.0}", spread.max_ns));
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_TICKS, SIGNIFICANT_DIGITS)
        .expect("constant bounds that the histogram accepts")
}

fn spread(histogram: &Histogram<u64>, clock: &Clock) -> Spread {
    let at = |quantile| clock.ns(histogram.value_at_quantile(quantile));
    Spread {
        min_ns: clock.ns(histogram.min()),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p99_9_ns: at(0.999),
        max_ns: clock.ns(histogram.max()),
    }
}
