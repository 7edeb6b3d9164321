//! Failure detection by silence: phi-accrual over the arrivals of any frame.
//!
//! Intervals of a member's frames are taken to be normally distributed. Phi is the negative decimal
//! logarithm of the probability that an interval as long as the present silence occurs: a member on
//! a steady link is suspected sooner than one that is often late. Two bounds hold whatever the
//! estimate says: no suspicion before [`EARLIEST_BEATS`] heartbeats, and none later than
//! `hang_timeout`.

use crate::Nanos;
use crate::settings::GroupSettings;

/// Heartbeats that must be missing before a member is suspected.
const EARLIEST_BEATS: Nanos = 5;
/// Phi at which a member is suspected: one interval in 10^12.
const PHI: f64 = 12.0;
/// Standard deviations above the mean at which phi is [`PHI`].
const DEVIATIONS: f64 = deviations(PHI);
/// Intervals before the estimate counts; until then only `hang_timeout` does.
const WARM: u32 = 20;
/// Weight of the latest interval.
const WEIGHT: f64 = 1.0 / 16.0;
/// Deviation that is assumed at least, as a share of a heartbeat: schedulers are late at times.
const LEAST_DEVIATION: f64 = 1.0;

/// For the tail of a normal distribution, `phi = deviations^2 / (2 ln 10)`, nearly.
const fn deviations(phi: f64) -> f64 {
    let square = phi * 2.0 * std::f64::consts::LN_10;
    // Newton's method: `sqrt` is not const.
    let (mut root, mut turn) = (square / 2.0, 0);
    while turn < 20 {
        root = (root + square / root) / 2.0;
        turn += 1;
    }
    root
}

/// Arrivals of one member's frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    last: Nanos,
    intervals: u32,
    mean: f64,
    variance: f64,
}

/// Estimates from the arrivals of a member's frames whether it lives.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    heartbeat: Nanos,
    latest: Nanos,
}

impl Detector {
    pub(crate) const fn new(settings: &GroupSettings) -> Self {
        Self { heartbeat: settings.heartbeat, latest: settings.hang_timeout }
    }

    /// A frame of a member arrived. Frames that follow each other within half of a heartbeat count
    /// as one: a burst of messages says nothing about the heartbeats to come.
    #[inline]
    pub(crate) fn heard(&self, now: Nanos, arrivals: &mut Arrivals) {
        let interval = now.saturating_sub(arrivals.last);
        if interval >= self.heartbeat / 2 {
            arrivals.add(interval as f64);
            arrivals.last = now;
        }
    }

    /// Whether a member has been silent for too long.
    pub(crate) fn is_silent(&self, now: Nanos, arrivals: &Arrivals) -> bool {
        now >= self.deadline(arrivals)
    }

    /// The time at which a member will have been silent for too long, unless it is heard before.
    pub(crate) fn deadline(&self, arrivals: &Arrivals) -> Nanos {
        // The last arrival may be half of a heartbeat later than noted.
        let earliest = EARLIEST_BEATS * self.heartbeat + self.heartbeat / 2;
        let patience = if arrivals.intervals < WARM {
            self.latest
        } else {
            let deviation = arrivals.variance.sqrt().max(LEAST_DEVIATION * self.heartbeat as f64);
            (arrivals.mean + DEVIATIONS * deviation) as Nanos
        };
        arrivals.last.saturating_add(patience.max(earliest).min(self.latest))
    }
}

impl Arrivals {
    /// The first frame.
    pub(crate) const fn new(now: Nanos) -> Self {
        Self { last: now, intervals: 0, mean: 0.0, variance: 0.0 }
    }

    /// This member was not run for a while: the silence was its own, and frames wait to be read.
    pub(crate) const fn rest(&mut self, now: Nanos) {
        self.last = now;
    }

    fn add(&mut self, interval: f64) {
        if self.intervals == 0 {
            (self.mean, self.variance) = (interval, interval * interval / 4.0);
        } else {
            let distance = interval - self.mean;
            self.mean += WEIGHT * distance;
            self.variance = (1.0 - WEIGHT) * (self.variance + WEIGHT * distance * distance);
        }
        self.intervals = self.intervals.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Nanos = 100_000_000;

    fn detector() -> Detector {
        Detector::new(&GroupSettings { heartbeat: BEAT, ..GroupSettings::default() })
    }

    /// The silence after which a member is suspected that was heard at these intervals.
    fn patience(detector: &Detector, intervals: impl Iterator<Item = Nanos>) -> Nanos {
        let mut now = 1;
        let mut arrivals = Arrivals::new(now);
        for interval in intervals {
            now += interval;
            assert!(!detector.is_silent(now, &arrivals), "a false alarm after {interval} ns");
            detector.heard(now, &mut arrivals);
        }
        let due = detector.deadline(&arrivals);
        assert!(!detector.is_silent(due - 1, &arrivals) && detector.is_silent(due, &arrivals));
        due - now
    }

    #[test]
    fn silence_is_noticed_sooner_on_a_steady_link() {
        let steady = patience(&detector(), (0..100).map(|_| BEAT));
        let few = patience(&detector(), (0..5).map(|_| BEAT));
        let late =
            patience(&detector(), (0..100).map(|n| if n % 5 == 0 { 6 * BEAT } else { BEAT }));
        assert!((5 * BEAT..12 * BEAT).contains(&steady), "{steady}");
        assert_eq!(few, 20 * BEAT, "an estimate of few intervals does not count");
        assert!(late > steady && late <= 20 * BEAT, "{late}");
    }

    #[test]
    fn no_suspicion_before_five_heartbeats_or_after_the_timeout() {
        // The estimate alone would be patient for longer than the timeout, and for less than five
        // beats.
        let settings =
            GroupSettings { heartbeat: BEAT, hang_timeout: 5 * BEAT, ..GroupSettings::default() };
        assert_eq!(patience(&Detector::new(&settings), (0..100).map(|_| BEAT)), 5 * BEAT);
        let wild = (0..100).map(|n| BEAT + (n % 10) * BEAT);
        assert_eq!(patience(&detector(), wild), 20 * BEAT);
    }

    #[test]
    fn bursts_do_not_shorten_the_patience() {
        let bursts = (0..1_000).map(|n| if n % 10 == 0 { BEAT } else { 1_000 });
        let patience = patience(&detector(), bursts);
        assert!(patience >= 5 * BEAT, "{patience}");
    }

    #[test]
    fn the_silence_of_a_rest_does_not_count() {
        let (detector, mut arrivals) = (detector(), Arrivals::new(1));
        assert!(detector.is_silent(30 * BEAT, &arrivals));
        arrivals.rest(30 * BEAT);
        assert!(!detector.is_silent(30 * BEAT, &arrivals));
        assert!(detector.is_silent(50 * BEAT, &arrivals));
    }

    #[test]
    fn random_loss_gives_no_false_alarm() {
        let mut random = 1_u64;
        let mut beats = || {
            let mut beats = 1;
            loop {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                if (random >> 33) % 100 >= 10 {
                    return beats * BEAT;
                }
                beats += 1;
            }
        };
        let intervals: Vec<_> = (0..5_000).map(|_| beats()).collect();
        assert!(intervals.iter().any(|interval| *interval >= 3 * BEAT));
        patience(&detector(), intervals.into_iter());
    }
}
