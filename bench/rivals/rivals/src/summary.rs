//! Medians and spreads, and ratios that are taken pair by pair.

use crate::campaign::{Outcome, Run, SideRuns};
use crate::measurement::Measurement;

/// Median and spread of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Smallest.
    pub min: f64,
    /// Half are not larger; the mean of the middle two of an even number.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Summarises figures; `None` without any.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len().is_multiple_of(2) {
            f64::midpoint(figures[middle - 1], figures[middle])
        } else {
            figures[middle]
        };
        Some(Self { min, median, max })
    }
}

/// One figure of the repetitions of a side that gave one.
pub fn figure(runs: &SideRuns, pick: impl Fn(&Measurement) -> Option<f64>) -> Option<Summary> {
    Summary::of(runs.runs.iter().filter_map(Run::measurement).filter_map(pick))
}

/// lanecast's figure divided by a side's, for each pair in which both have one.
pub fn ratio(
    outcome: &Outcome,
    side: &str,
    pick: impl Fn(&Measurement) -> Option<f64>,
) -> Option<Summary> {
    let find = |name: &str| outcome.sides.iter().find(|runs| runs.side == name);
    ratio_between(find("lanecast")?, find(side)?, pick)
}

/// One side's figure divided by another's, for each pair in which both have one.
pub fn ratio_between(
    own: &SideRuns,
    other: &SideRuns,
    pick: impl Fn(&Measurement) -> Option<f64>,
) -> Option<Summary> {
    let pairs = own.runs.iter().zip(&other.runs);
    Summary::of(pairs.filter_map(|(own, other)| {
        let (own, other) = (pick(own.measurement()?)?, pick(other.measurement()?)?);
        (other > 0.0).then_some(own / other)
    }))
}

/// Messages per second.
pub fn rate(measurement: &Measurement) -> Option<f64> {
    Some(measurement.rate)
}

/// Median latency from the real send, ns.
pub fn p50(measurement: &Measurement) -> Option<f64> {
    measurement.latency.map(|latency| latency.actual.p50_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::disturbance::Disturbance;
    use crate::row::Row;
    use crate::sides::Standing;

    fn runs(side: &'static str, rates: &[Option<f64>]) -> SideRuns {
        let disturbance = Disturbance { stolen_share: 0.0, involuntary_switches: 0 };
        let run = |rate: &Option<f64>| {
            let measurement = rate.map(|rate| Measurement {
                rate,
                received: 1,
                lost: 0,
                damaged: 0,
                lost_in_warmup: 0,
                latency: None,
                clock: String::new(),
                clock_cost_ns: 0.0,
                way: String::new(),
            });
            Run { started_unix_ns: 0, disturbance, result: measurement.ok_or("no".into()) }
        };
        SideRuns {
            side: side.to_owned(),
            version: "1".into(),
            standing: Standing::default(),
            runs: rates.iter().map(run).collect(),
        }
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        let summary = Summary::of([3.0, 1.0, 2.0]).expect("three");
        assert_eq!((summary.min, summary.median, summary.max), (1.0, 2.0, 3.0));
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 3.0]).expect("four").median, 2.5);
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn ratios_are_taken_within_pairs() {
        let outcome = Outcome {
            cell: Cell::alone(Row::Rate),
            sides: vec![
                runs("lanecast", &[Some(10.0), Some(100.0), Some(30.0), None]),
                runs("aeron", &[Some(5.0), Some(25.0), None, Some(1.0)]),
            ],
        };
        let ratio = ratio(&outcome, "aeron", rate).expect("two pairs");
        assert_eq!((ratio.min, ratio.median, ratio.max), (2.0, 3.0, 4.0));
    }
}
