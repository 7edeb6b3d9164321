//! Cases of a series, their lengths and repetitions.

use super::case::{Case, Experiment};
use crate::expected::expected_time;
use std::fmt;
use std::time::Duration;

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// Duration of the measured part.
    Time(Duration),
    /// Number of messages, for cases whose receiver sets the pace.
    Messages(u64),
}

/// One case and its length; a jitter test has no case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Experiment of the case.
    pub experiment: Experiment,
    /// The publisher's and the receivers' settings.
    pub case: Option<Case>,
    /// Length of the run.
    pub length: RunLength,
}

/// Starting processes, joining, warming up and ending, beside the measured time.
const OVERHEAD: Duration = Duration::from_millis(250);
/// Approximate rate of the slow receiver, for the expected duration.
const SLOW_RATE: u64 = 60_000;
/// Messages to the slow receiver for each second of a case's time. From 100 ms on they are more
/// than the window of 1 MiB holds, so that the publisher is held back.
const SLOW_MESSAGES: u128 = 100_000;

const SIZES: [usize; 11] = [25, 64, 65, 100, 112, 113, 128, 129, 200, 500, 1500];
const LATENCY_SIZES: [usize; 3] = [100, 500, 1500];
const LATENCY_RATES: [u64; 4] = [250_000, 1_000_000, 5_000_000, 10_000_000];
const WORKLOAD_SIZES: [usize; 4] = [25, 64, 100, 200];
const MOST_SPIN: u64 = 8;
const SLOW: Case = Case::working(128, 10_000);
const FAN_OUT_SIZES: [usize; 4] = [25, 100, 500, 1500];
const OTHER_SIZES: [usize; 3] = [25, 128, 1500];

/// The steps of a series, repeated from first to last.
///
/// All cases run once before any is repeated, so that changes of the machine affect all of them
/// alike.
#[derive(Clone, Debug)]
pub struct Series {
    /// The steps of one repetition.
    pub steps: Vec<Step>,
    /// Number of repetitions.
    pub repetitions: u32,
}

impl Series {
    /// The document's series, each case measured for `time`.
    pub fn full(time: Duration, repetitions: u32) -> Self {
        let steps = [
            jitter(time),
            flat(Experiment::Size, SIZES.map(Case::flat_out), time),
            flat(Experiment::Workload, workload(&WORKLOAD_SIZES, 1), time),
            slow(time),
            flat(Experiment::Latency, latency(&LATENCY_RATES), time),
            flat(Experiment::Generic, generic(&OTHER_SIZES), time),
            flat(Experiment::Receivers, fan_out(&FAN_OUT_SIZES), time),
            flat(Experiment::Numa, across_nodes(), time),
        ];
        Self { steps: steps.concat(), repetitions }
    }

    /// A shorter one, of every experiment, in less than a minute: fewer cases of the workload,
    /// the copying call and several receivers.
    pub fn quick(time: Duration, repetitions: u32) -> Self {
        let steps = [
            jitter(time),
            flat(Experiment::Size, SIZES.map(Case::flat_out), time),
            flat(Experiment::Workload, workload(&[25, 64, 100], 2), time),
            slow(time),
            flat(Experiment::Latency, latency(&LATENCY_RATES), time),
            flat(Experiment::Generic, generic(&[25, 1500]), time),
            flat(Experiment::Receivers, fan_out(&[100]), time),
            flat(Experiment::Numa, across_nodes(), time),
        ];
        Self { steps: steps.concat(), repetitions }
    }

    /// Keeps only the experiments of `wanted`; all, if it is empty.
    #[must_use]
    pub fn only(mut self, wanted: &[Experiment]) -> Self {
        self.steps.retain(|step| wanted.is_empty() || wanted.contains(&step.experiment));
        self
    }

    /// Leaves an experiment out.
    #[must_use]
    pub fn without(mut self, experiment: Experiment) -> Self {
        self.steps.retain(|step| step.experiment != experiment);
        self
    }

    /// Whether it has steps of `experiment`.
    pub fn has(&self, experiment: Experiment) -> bool {
        self.steps.iter().any(|step| step.experiment == experiment)
    }

    /// Every step of every repetition, in the order in which they run.
    pub fn turns(&self) -> impl Iterator<Item = Turn> {
        let repetitions = self.repetitions;
        (1..=repetitions).flat_map(move |repetition| {
            self.steps.iter().map(move |&step| Turn { step, repetition, repetitions })
        })
    }

    /// Expected duration of the series.
    pub fn expected(&self) -> Duration {
        self.steps.iter().map(Step::expected).sum::<Duration>() * self.repetitions
    }
}

impl Step {
    /// Expected duration of one repetition.
    pub fn expected(&self) -> Duration {
        let measured = match self.length {
            RunLength::Time(time) => time,
            RunLength::Messages(messages) => expected_time(messages, SLOW_RATE as f64),
        };
        measured + OVERHEAD
    }
}

/// Such as `size: 64 B`.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.experiment.fmt(f)?;
        self.case.map_or(Ok(()), |case| write!(f, ": {case}"))
    }
}

/// One repetition of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The step.
    pub step: Step,
    /// Which repetition, counted from 1.
    pub repetition: u32,
    /// Number of repetitions.
    pub repetitions: u32,
}

fn flat(
    experiment: Experiment,
    cases: impl IntoIterator<Item = Case>,
    time: Duration,
) -> Vec<Step> {
    let step = |case| Step { experiment, case: Some(case), length: RunLength::Time(time) };
    cases.into_iter().map(step).collect()
}

fn jitter(time: Duration) -> Vec<Step> {
    vec![Step { experiment: Experiment::Jitter, case: None, length: RunLength::Time(time) }]
}

fn slow(time: Duration) -> Vec<Step> {
    let messages = (time.as_millis() * SLOW_MESSAGES / 1_000).max(1);
    let length = RunLength::Messages(u64::try_from(messages).unwrap_or(u64::MAX));
    vec![Step { experiment: Experiment::Slow, case: Some(SLOW), length }]
}

fn workload(sizes: &[usize], every: usize) -> Vec<Case> {
    let spins = || (0..=MOST_SPIN).step_by(every);
    sizes.iter().flat_map(|&size| spins().map(move |spin| Case::working(size, spin))).collect()
}

fn latency(rates: &[u64]) -> Vec<Case> {
    let at = |size| rates.iter().map(move |&rate| Case::paced(size, rate));
    LATENCY_SIZES.into_iter().flat_map(at).collect()
}

/// Rates, and latencies of the smallest and the largest message of the latency table.
fn generic(sizes: &[usize]) -> Vec<Case> {
    let rates = sizes.iter().map(|&size| Case::flat_out(size).copying());
    rates.chain([100, 1500].map(|size| Case::paced(size, 1_000_000).copying())).collect()
}

fn fan_out(sizes: &[usize]) -> Vec<Case> {
    let to = |receivers| {
        let rates = sizes.iter().map(|&size| Case::flat_out(size));
        rates
            .chain([Case::paced(100, 250_000)])
            .map(move |case| case.with_receivers(receivers))
            .collect::<Vec<_>>()
    };
    [to(2), to(3)].concat()
}

fn across_nodes() -> Vec<Case> {
    let rates = OTHER_SIZES.into_iter().map(Case::flat_out);
    let latencies = LATENCY_SIZES.into_iter().map(|size| Case::paced(size, 1_000_000));
    rates.chain(latencies).map(Case::across_nodes).collect()
}

#[cfg(test)]
mod tests {
    use super::super::reference::Reference;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn count(series: &Series, experiment: Experiment) -> usize {
        series.steps.iter().filter(|step| step.experiment == experiment).count()
    }

    #[test]
    fn the_full_series_has_every_case_of_the_document() {
        let series = Series::full(SECOND, 5);
        for (experiment, cases) in [
            (Experiment::Jitter, 1),
            (Experiment::Size, 11),
            (Experiment::Workload, 4 * 9),
            (Experiment::Slow, 1),
            (Experiment::Latency, 12),
            (Experiment::Receivers, 10),
        ] {
            assert_eq!(count(&series, experiment), cases, "{experiment}");
        }
        let of_tables = [Experiment::Size, Experiment::Slow, Experiment::Latency];
        for step in series.steps.iter().filter(|step| of_tables.contains(&step.experiment)) {
            assert!(Reference::of(&step.case.unwrap()).is_some(), "{step}");
        }
    }

    #[test]
    fn the_quick_series_has_every_experiment_and_fits_into_a_minute() {
        let series = Series::quick(Duration::from_millis(200), 2);
        for experiment in Experiment::ALL {
            assert!(count(&series, experiment) > 0, "{experiment}");
        }
        assert!(series.expected() < Duration::from_secs(60), "{:?}", series.expected());
    }

    #[test]
    fn experiments_can_be_chosen_and_left_out() {
        let series = Series::full(SECOND, 2).only(&[Experiment::Size, Experiment::Numa]);
        assert_eq!(series.steps.len(), 11 + 6);
        assert!(series.has(Experiment::Numa) && !series.has(Experiment::Slow));
        assert_eq!(series.without(Experiment::Numa).steps.len(), 11);
        assert!(Series::full(SECOND, 2).only(&[]).steps.len() > 60);
    }

    #[test]
    fn repetitions_take_turns() {
        let series = Series::full(SECOND, 2).only(&[Experiment::Slow, Experiment::Jitter]);
        let turns: Vec<_> = series
            .turns()
            .map(|turn| (turn.step.experiment, turn.repetition, turn.repetitions))
            .collect();
        let of = |repetition| {
            [Experiment::Jitter, Experiment::Slow].map(|experiment| (experiment, repetition, 2))
        };
        assert_eq!(turns, [of(1), of(2)].concat());
    }
}
