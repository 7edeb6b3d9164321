//! `lanecast perf persist-report`: the UM throughput document's series, and the latency of the live
//! path, with and without stores.
//!
//! This process starts the measured ones, a set for each test, and waits for their lines; before
//! the rates it measures itself what the disk can do.

mod arguments;
mod runner;

pub(crate) use arguments::PersistReportArgs;

use super::files::Files;
use super::progress::Progress;
use super::record::Record;
use crate::output::{INCOMPLETE, warn, words};
use anyhow::bail;
use arguments::PersistTests;
use lanecast_measure::persistent::{LIVE_CASES, PERSIST_CASES};
use runner::{Measured, Runner};
use std::process::ExitCode;
use std::time::Duration;

pub(super) fn run(
    arguments: &PersistReportArgs,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let flight = arguments.flight()?;
    let cpus = arguments.cpus()?;
    let files = Files::open(&arguments.output(), arguments.times())?;
    let mut record = Record::default();
    let (each, live) = (arguments.expected(None), arguments.expected(Some(arguments.rate)));
    let tests = [
        (PersistTests::Rates, each, PERSIST_CASES.len()),
        (PersistTests::Latency, live, LIVE_CASES.len()),
    ];
    let tests = tests.into_iter().filter(|(tests, ..)| arguments.wants(*tests));
    let all = tests.map(|(_, each, count)| each.saturating_mul(count as u32));
    let all = all.fold(Duration::ZERO, Duration::saturating_add);
    let mut progress = Progress::new(all.saturating_mul(arguments.repetitions));
    let mut runner = Runner::new(arguments, flight, cpus)?;
    for repetition in (1..=arguments.repetitions).take_while(|_| !stop()) {
        runner.begin(repetition);
        let what = |case: &str| format!("{case} ({repetition}/{})", arguments.repetitions);
        if arguments.wants(PersistTests::Rates) {
            let found = runner.ceiling(stop);
            note(&mut record, &runner, &what("ceiling"), found, stop)?;
            for case in PERSIST_CASES.iter().take_while(|_| !stop()) {
                let what = what(case.case);
                progress.begin(&what, each);
                let found = runner.measure(case, stop);
                note(&mut record, &runner, &what, found, stop)?;
            }
        }
        if arguments.wants(PersistTests::Latency) && !stop() {
            progress.begin(&what("live path"), live.saturating_mul(2));
            for (case, found) in LIVE_CASES.iter().zip(runner.measure_live(stop)) {
                note(&mut record, &runner, &what(case.case), found, stop)?;
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
