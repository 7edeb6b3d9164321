//! The jitter test: reads the clock back to back and records the gaps.
//!
//! Gaps of up to a few microseconds are counted in a table, one addition each, so that counting
//! does not lengthen the gaps; rarer, longer ones go to a recorder.

use crate::interference::{CounterSnapshot, Watched, load_average};
use crate::outcome::JitterResult;
use crate::pinning::{Cpus, Pinning, PinningError};
use crate::priority::PriorityChange;
use crate::real_time::RealTime;
use crate::recorder::Recorder;
use lanecast_base::clock::{Clock, Source};
use std::hint::black_box;
use std::time::Instant;

/// Gaps before the counted ones: they fill caches and map pages.
const WARM_UP: u64 = 10_000;
/// Gaps, in ticks, below which the table counts.
const TABLE: usize = 8192;
/// Readings between two checks of the stop flag.
const STRETCH: u64 = 1 << 16;
/// Gaps longer than this are interruptions.
const LONG_NS: u64 = 1000;

/// Which clock is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Read {
    /// The clock of latencies: the cheapest reliable one.
    #[default]
    Host,
    /// `CLOCK_MONOTONIC`, which the documents' tools read.
    Monotonic,
}

/// Parameters of the jitter test.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of gaps.
    pub loops: u64,
    /// CPU of the thread.
    pub place: Pinning,
    /// Which clock is read.
    pub read: Read,
    /// Change of the process's priority.
    pub raise: PriorityChange,
}

/// Watches for interruptions of the calling thread; `stop` ends it early.
///
/// # Errors
/// If the CPU asked for cannot be taken.
pub fn run(settings: &Settings, stop: &dyn Fn() -> bool) -> Result<JitterResult, PinningError> {
    let mut place = settings.place;
    place.take()?;
    let clock = Clock::host();
    let clock_cost_ns = clock.cost_ns();
    let monotonic_cost_ns = monotonic_cost_ns();
    let origin = Instant::now();
    let monotonic = || u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut raise = settings.raise;
    let real_time = raise.prepare();
    let load = load_average();
    let baseline = CounterSnapshot::take(place.cpu);
    if let Some(real_time) = &real_time {
        real_time.begin();
    }
    let reads_monotonic = settings.read == Read::Monotonic || clock.source() == Source::Monotonic;
    let (gaps, name, cost_ns) = if reads_monotonic {
        (watch(settings.loops, monotonic, |ns| ns, stop), "monotonic", monotonic_cost_ns)
    } else {
        let gaps = watch(settings.loops, || clock.ticks(), |ticks| clock.ns(ticks), stop);
        (gaps, clock.name(), clock_cost_ns)
    };
    let mut interference = baseline.since();
    if real_time.is_some_and(RealTime::end) {
        interference.doubt_short_real_time();
    }
    let distribution = gaps.recorder.distribution().unwrap_or_default();
    let cpus = Cpus::now(place);
    interference.set_gap(distribution.max_ns, Watched::During);
    interference.doubt_cpu(&cpus, load);
    Ok(JitterResult {
        loops: gaps.recorder.samples(),
        ts_min_ns: distribution.min_ns,
        ts_max_ns: distribution.max_ns,
        gaps: distribution,
        long_gaps: gaps.long,
        lost_share: gaps.long_ns as f64 / gaps.duration_ns.max(1) as f64,
        duration_ns: gaps.duration_ns,
        clock: name,
        clock_cost_ns: cost_ns,
        monotonic_cost_ns,
        cpus,
        raise,
        interference,
    })
}

#[derive(Debug, Default)]
struct Gaps {
    recorder: Recorder,
    long: u64,
    long_ns: u64,
    duration_ns: u64,
}

impl Gaps {
    fn count(&mut self, ns: u64, times: u64) {
        self.recorder.record_many(ns, times);
        if ns > LONG_NS {
            self.long += times;
            self.long_ns = self.long_ns.saturating_add(ns.saturating_mul(times));
        }
    }
}

/// Records `loops` gaps between readings of `now`, in ticks that `ns` converts.
fn watch(
    loops: u64,
    now: impl Fn() -> u64,
    ns: impl Fn(u64) -> u64,
    stop: &dyn Fn() -> bool,
) -> Gaps {
    let mut table = vec![0u64; TABLE];
    let mut gaps = Gaps::default();
    let mut last = now();
    for _ in 0..WARM_UP.min(loops) {
        last = black_box(now());
    }
    let start = last;
    let mut left = loops;
    while left > 0 && !stop() {
        let stretch = left.min(STRETCH);
        for _ in 0..stretch {
            let read = now();
            let gap = read.saturating_sub(last);
            last = read;
            match usize::try_from(gap).ok().and_then(|gap| table.get_mut(gap)) {
                Some(count) => *count += 1,
                None => gaps.count(ns(gap), 1),
            }
        }
        left -= stretch;
    }
    gaps.duration_ns = ns(last.saturating_sub(start));
    for (gap, times) in (0..).zip(table) {
        gaps.count(ns(gap), times);
    }
    gaps
}

/// Cost of reading `CLOCK_MONOTONIC`: a median.
pub(crate) fn monotonic_cost_ns() -> f64 {
    const READS: u32 = 1000;
    let mut rounds: Vec<u128> = (0..31)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..READS {
                black_box(Instant::now());
            }
            start.elapsed().as_nanos()
        })
        .collect();
    rounds.sort_unstable();
    rounds[rounds.len() / 2] as f64 / f64::from(READS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A clock that goes through `gaps` again and again.
    fn clock(gaps: &[u64]) -> impl Fn() -> u64 {
        let (now, reading) = (Cell::new(0), Cell::new(0));
        move || {
            now.set(now.get() + gaps[reading.get() % gaps.len()]);
            reading.set(reading.get() + 1);
            now.get()
        }
    }

    #[test]
    fn gaps_are_told_from_interruptions() {
        // 100 readings of 20 ticks, one of 3000 (in the table), one of 50 000 (beyond it).
        let mut pattern = vec![20; 98];
        pattern.extend([3000, 50_000]);
        let gaps = watch(100_000, clock(&pattern), |ticks| ticks / 2, &|| false);
        let found = gaps.recorder.distribution().unwrap();
        assert_eq!((found.samples, found.min_ns, found.max_ns), (100_000, 10, 25_000));
        assert_eq!((gaps.long, gaps.long_ns), (2000, 1000 * (1500 + 25_000)));
        assert_eq!(found.p90_ns, 10);
        assert_eq!(gaps.duration_ns, 1000 * (98 * 10 + 1500 + 25_000));
    }

    #[test]
    fn a_stop_ends_the_test_early() {
        let looks = Cell::new(0);
        let stop = || {
            looks.set(looks.get() + 1);
            looks.get() > 3
        };
        let gaps = watch(u64::MAX, clock(&[20]), |ticks| ticks, &stop);
        assert_eq!(gaps.recorder.samples(), 3 * STRETCH);
    }

    #[test]
    fn this_host_s_clocks_can_be_watched() {
        for read in [Read::Host, Read::Monotonic] {
            let place = Pinning::choose(Some(-1), 0, &[]).unwrap();
            let raise = PriorityChange::NotPermitted;
            let settings = Settings { loops: 20_000, place, read, raise };
            let result = run(&settings, &|| false).unwrap();
            assert_eq!(result.loops, 20_000);
            assert!(result.ts_min_ns <= result.gaps.p50_ns && result.duration_ns > 0);
            assert!(result.ts_max_ns >= result.gaps.p50_ns && result.clock_cost_ns > 0.0);
        }
    }
}
