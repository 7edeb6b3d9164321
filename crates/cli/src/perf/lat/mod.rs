//! `lanecast perf lat-report`: the UM latency document's streaming tests, over every transport.
//!
//! This process starts the measured ones, one pair at a time, and waits for their lines. Bare
//! sockets, the floor under the same load, are measured by such pairs, too. Paths with kernel
//! bypass need two networks: they are measured between two namespaces, which it makes and removes.

mod arguments;
mod lat_run;
mod runner;

pub(crate) use arguments::LatArgs;

use super::files::{Files, Times};
use super::progress::Progress;
use super::record::Record;
use crate::output::{INCOMPLETE, warn, words};
use anyhow::bail;
use lanecast_measure::smx::Placement;
use lanecast_measure::{Head, PriorityChange, PriorityRequest};
use lat_run::LatRun;
use runner::Runner;
use std::process::ExitCode;

pub(super) fn run(arguments: &LatArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let cpus = Placement::cpus(&arguments.cpus)?;
    let files = Files::open(&arguments.output(), Times::Several)?;
    PriorityChange::by(PriorityRequest::Auto);
    let (mut runs, mut record) = (arguments.runs(cpus.len()), Record::default());
    let mut runner = Runner::new(Head::now(), arguments, cpus)?;
    if runs.iter().any(LatRun::is_over_veth)
        && let Err(error) = runner.build_network()
    {
        if let Some(option) = arguments.over_veth_only() {
            let why = format!("{option} measures between two network namespaces");
            return Err(error.context(why));
        }
        let why = format!("rows between namespaces (kernel bypass) left out: {}", words(&error));
        warn(&why);
        record.keep(runner.skipped(why)?, true);
        runs.retain(|lat_run| !lat_run.is_over_veth());
    }
    let each = arguments.expected();
    let count = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    let mut progress =
        Progress::new(each.saturating_mul(count.saturating_mul(arguments.repetitions)));
    let all = (1..=arguments.repetitions).flat_map(|at| runs.iter().map(move |turn| (at, turn)));
    for (repetition, turn) in all.take_while(|_| !stop()) {
        let what = format!("{turn} ({repetition}/{})", arguments.repetitions);
        progress.begin(&what, each);
        match runner.measure(turn, repetition, stop) {
            Ok(measured) => {
                for (line, is_complete) in measured {
                    record.keep(line, is_complete);
                }
            }
            Err(_) if stop() => {}
            Err(error) => {
                let why = format!("{what}: {}", words(&error));
                warn(&why);
                record.fail(runner.skipped(why)?);
            }
        }
    }
    progress.finish();
    record.publish(arguments.json, files)?;
    if stop() {
        bail!("interrupted: the figures so far are written");
    }
    Ok(ExitCode::from(if record.failed == 0 { 0 } else { INCOMPLETE }))
}
