//! Latencies of one run: from the real send time and from the intended one.
//!
//! A sender that stalls sends late and so hides the stall from the first figure, not from the
//! second: both are kept.

use lanecast_measure::LatencyRecorder;

use crate::line::Line;

/// Records both kinds of latency without allocating.
#[derive(Debug, Default)]
pub struct Recorder {
    latency: LatencyRecorder,
    /// Allocated and touched beforehand, so that the first measured message waits for neither.
    measured: LatencyRecorder,
}

impl Recorder {
    /// Records one message: nanoseconds since it was sent and since it was due.
    #[inline]
    pub fn record(&mut self, since_sent_ns: u64, since_due_ns: u64) {
        self.latency.record(since_sent_ns, since_due_ns);
    }

    /// Drops the records of the warm-up. To be called once.
    pub fn end_warm_up(&mut self) {
        std::mem::swap(&mut self.latency, &mut self.measured);
    }

    /// Adds both kinds to a result line; the intended one under keys with `_intended`.
    pub fn describe(&self, line: &mut Line) {
        let latency = self.latency.latency();
        let (actual, intended) =
            latency.map(|both| (both.actual, both.intended)).unwrap_or_default();
        line.add("samples", actual.samples);
        for (infix, times) in [("", actual), ("_intended", intended)] {
            line.add(&format!("p50{infix}_ns"), times.p50_ns);
            line.add(&format!("p90{infix}_ns"), times.p90_ns);
            line.add(&format!("p99{infix}_ns"), times.p99_ns);
            line.add(&format!("p99_9{infix}_ns"), times.p99_9_ns);
            line.add(&format!("min{infix}_ns"), times.min_ns);
            line.add(&format!("max{infix}_ns"), times.max_ns);
        }
    }
}
