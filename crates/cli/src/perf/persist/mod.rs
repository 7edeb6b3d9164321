//! `lanecast perf persist-report`: the UM throughput document's series, with and without stores.
//!
//! This process starts the measured ones, a set for each test, and waits for their lines; before
//! the tests it measures itself what the disk can do.

mod arguments;
mod runner;

pub(crate) use arguments::PersistReportArgs;

use super::files::{Files, Times};
use super::progress::Progress;
use super::record::Record;
use crate::output::{INCOMPLETE, warn, words};
use anyhow::bail;
use lanecast_measure::persistent::PERSIST_CASES;
use runner::{Measured, Runner};
use std::process::ExitCode;

pub(super) fn run(
    arguments: &PersistReportArgs,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let flight = arguments.flight()?;
    let files = Files::open(&arguments.output(), Times::None("rates have no times: use .jsonl"))?;
    let mut record = Record::default();
    let each = arguments.expected();
    let count = u32::try_from(PERSIST_CASES.len()).unwrap_or(u32::MAX);
    let all = each.saturating_mul(count.saturating_mul(arguments.repetitions));
    let mut progress = Progress::new(all);
    let mut runner = Runner::new(arguments, flight)?;
    for repetition in (1..=arguments.repetitions).take_while(|_| !stop()) {
        runner.begin(repetition);
        let what = |case: &str| format!("{case} ({repetition}/{})", arguments.repetitions);
        let found = runner.ceiling(stop);
        note(&mut record, &runner, &what("ceiling"), found, stop)?;
        for case in PERSIST_CASES.iter().take_while(|_| !stop()) {
            let what = what(case.case);
            progress.begin(&what, each);
            let found = runner.measure(case, stop);
            note(&mut record, &runner, &what, found, stop)?;
        }
    }
    progress.finish();
    record.publish(arguments.json, files)?;
    if stop() {
        bail!("interrupted: the figures so far are written");
    }
    Ok(ExitCode::from(if record.failed == 0 { 0 } else { INCOMPLETE }))
}

/// Records a measurement or its failure; nothing of one that was interrupted.
fn note(
    record: &mut Record,
    runner: &Runner<'_>,
    what: &str,
    found: anyhow::Result<Measured>,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    match found {
        Ok((line, is_complete)) => record.keep(line, is_complete),
        Err(_) if stop() => {}
        Err(error) => {
            let why = format!("{what}: {}", words(&error));
            warn(&why);
            record.fail(runner.skipped(why)?);
        }
    }
    Ok(())
}
