//! Text of single table cells.

use crate::campaign::{Outcome, Run, SideRuns};
use crate::measurement::{Measurement, Percentiles};
use crate::summary::{Summary, figure};

/// A line for a side that gave no figure at all; the reasons are listed at the end.
pub(super) fn failed(outcome: &Outcome, runs: &SideRuns, columns: usize) -> Vec<String> {
    let mut row = vec![outcome.cell.size.to_string(), runs.side.clone(), "failed".into()];
    row.resize(columns, String::new());
    row
}

pub(super) fn actual(runs: &SideRuns, pick: impl Fn(&Percentiles) -> f64) -> String {
    nanoseconds(runs, |measurement| measurement.latency.map(|latency| pick(&latency.actual)))
}

pub(super) fn intended(runs: &SideRuns, pick: impl Fn(&Percentiles) -> f64) -> String {
    nanoseconds(runs, |measurement| measurement.latency.map(|latency| pick(&latency.intended)))
}

fn nanoseconds(runs: &SideRuns, pick: impl Fn(&Measurement) -> Option<f64>) -> String {
    figure(runs, pick).map_or_else(String::new, |summary| whole(summary.median))
}

pub(super) fn lost(runs: &SideRuns) -> String {
    let lost: u64 = runs.runs.iter().filter_map(Run::measurement).map(|run| run.lost).sum();
    lost.to_string()
}

pub(super) fn clock(runs: &SideRuns) -> String {
    let first = runs.runs.iter().find_map(Run::measurement);
    first.map_or_else(String::new, |run| format!("{} {:.0}", run.clock, run.clock_cost_ns))
}

pub(super) fn ratio_text(ratio: Option<Summary>, runs: &SideRuns) -> String {
    match ratio {
        Some(ratio) if runs.side != "lanecast" => {
            // A small ratio needs more places to tell it from nothing.
            let places = if ratio.median < 0.1 { 4 } else { 2 };
            let Summary { min, median, max } = ratio;
            format!("{median:.places$} ({min:.places$}..{max:.places$})")
        }
        _ => String::new(),
    }
}

pub(super) fn range(summary: &Summary, print: impl Fn(f64) -> String) -> String {
    format!("({}..{})", print(summary.min), print(summary.max))
}

pub(super) fn millions(rate: f64) -> String {
    format!("{:.2}", rate / 1e6)
}

pub(super) fn whole(ns: f64) -> String {
    format!("{ns:.0}")
}
