//! All cases of all tables, again and again: every repetition measures each case once, so that a
//! change of the machine's speed meets all sides alike.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::report::{self, Run};
use crate::rows::Table;
use crate::run;
use crate::side::{Case, Peer, Programs};

/// Messages of the first run that only finds how many `lanecast perf group` can send in the time,
/// their growth from one such run to the next, and the time from which a run's rate counts.
const FIRST_MESSAGES: u64 = 5_000;
const GROWTH: u64 = 8;
const FOUND_AFTER: f64 = 0.1;
/// Failures in a row without a success after which a case is left out: each may take half a minute.
const FAILURES_MAX: usize = 2;

/// A series of repetitions.
#[derive(Debug)]
pub struct Series {
    /// The programs.
    pub programs: Programs,
    /// The tables.
    pub tables: Vec<Table>,
    /// Repetitions asked for.
    pub pairs: usize,
    /// No repetition begins that would end later, by the longest one so far.
    pub limit: Option<Duration>,
    /// A line for each run.
    pub json: Option<File>,
}

/// The runs of a case.
#[derive(Debug, Default)]
struct Done {
    runs: Vec<Run>,
    /// Messages of each member, for a side that is not run by time.
    messages: Option<u64>,
}

impl Series {
    /// Runs all, and prints the tables; false if lanecast broke a promise, or was not measured.
    pub fn run(mut self) -> bool {
        let mut all: Vec<Vec<Done>> = Vec::new();
        for table in &self.tables {
            all.push(table.cases.iter().map(|_| Done::default()).collect());
        }
        let begun = Instant::now();
        let mut longest = Duration::ZERO;
        for repetition in 0..self.pairs {
            if self.limit.is_some_and(|limit| begun.elapsed() + longest > limit) {
                eprintln!("no time for repetition {} of {}", repetition + 1, self.pairs);
                break;
            }
            let since = Instant::now();
            for (table, done) in self.tables.iter().zip(&mut all) {
                for (case, done) in table.cases.iter().zip(done) {
                    let since = Instant::now();
                    let run = repeat(&self.programs, case, done, repetition);
                    let figure = match &run {
                        Ok(outcome) => {
                            let figure = table.figure.of(outcome);
                            let ready = outcome.ready_ns as f64 / 1e9;
                            format!("{:.0}, warm after {ready:.1} s", figure.unwrap_or(0.0))
                        }
                        Err(why) => format!("failed: {why}"),
                    };
                    let (turn, name) = (repetition + 1, report::name(case));
                    let seconds = since.elapsed().as_secs_f64();
                    eprintln!(
                        "{turn}/{} {}; {name}; {figure}; {seconds:.1} s",
                        self.pairs, table.title
                    );
                    if let Some(file) = &mut self.json
                        && let Err(error) =
                            writeln!(file, "{}", line(table, case, repetition, &run))
                    {
                        eprintln!("the file of lines ends here: {error}");
                        self.json = None;
                    }
                    done.runs.push(run);
                }
            }
            longest = longest.max(since.elapsed());
        }
        let mut is_good = !self.tables.is_empty();
        for (table, done) in self.tables.iter().zip(&all) {
            let runs: Vec<Vec<Run>> = done.iter().map(|done| done.runs.clone()).collect();
            report::show(table, &runs, self.pairs);
            is_good &= table.cases.iter().zip(&runs).all(|(case, runs)| is_kept(table, case, runs));
        }
        println!("\n{:.1} minutes", begun.elapsed().as_secs_f64() / 60.0);
        is_good
    }
}

/// Whether lanecast was measured and has kept its promises; of peers nothing is asked.
fn is_kept(table: &Table, case: &Case, runs: &[Run]) -> bool {
    let is_good = |run: &Run| {
        let outcome = run.as_ref().ok();
        outcome.is_some_and(|it| it.faults().is_empty() && table.figure.of(it).is_some())
    };
    case.side.peer() != Peer::Lanecast || (!runs.is_empty() && runs.iter().all(is_good))
}

/// One run of a case.
fn repeat(programs: &Programs, case: &Case, done: &mut Done, repetition: usize) -> Run {
    if done.runs.len() >= FAILURES_MAX && done.runs.iter().all(Result::is_err) {
        return Err("left out, as it failed before".into());
    }
    let measure = |messages| {
        let measured = run::measure(programs, case, messages, repetition);
        measured.map_err(|error| format!("{error:#}"))
    };
    if !case.side.is_tool() {
        return measure(0);
    }
    let messages = match done.messages {
        Some(messages) => messages,
        None => find(case, measure)?,
    };
    done.messages = Some(messages);
    measure(messages)
}

/// Messages of each member that fill the time: a few first, then more while those take no time.
fn find(case: &Case, measure: impl Fn(u64) -> Run) -> Result<u64, String> {
    let mut messages = FIRST_MESSAGES;
    loop {
        // Every member receives what all have sent.
        let each = measure(messages)?.rate / case.members as f64;
        if each <= 0.0 {
            return Err("nothing was received in the run that finds the rate".into());
        }
        if messages as f64 / each >= FOUND_AFTER {
            return Ok(((each * case.send_ms as f64 / 1e3) as u64).max(1000));
        }
        messages *= GROWTH;
    }
}

/// The line of one run.
fn line(table: &Table, case: &Case, repetition: usize, run: &Run) -> Value {
    json!({
        "experiment": "groups",
        "row": table.title,
        "repetition": repetition,
        "case": case,
        "outcome": run.as_ref().ok(),
        "failure": run.as_ref().err(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::rows::{Row, Wanted};
    use crate::side::Side;

    #[test]
    fn nothing_measured_is_no_success() {
        let wanted = Wanted {
            members: vec![2],
            scale: vec![4],
            sizes: vec![1000],
            losses: vec![1],
            warm_ms: 1,
            send_ms: 1,
            rounds: 1,
        };
        let table = &wanted.tables(Row::Rate, |side| side == Side::LanecastRm)[0];
        let case = &table.cases[0];
        let measured = Outcome { rate: 1.0, received: 1, ..Outcome::default() };
        assert!(is_kept(table, case, &[Ok(measured.clone())]));
        assert!(!is_kept(table, case, &[]));
        assert!(!is_kept(table, case, &[Ok(Outcome::default())]));
        let failed = Err("no".to_owned());
        assert!(!is_kept(table, case, &[Ok(measured.clone()), failed.clone()]));
        let lost = Outcome { lost: 1, ..measured };
        assert!(!is_kept(table, case, &[Ok(lost)]));
        let found = |rate: f64| {
            find(case, |_| Ok(Outcome { rate, ..Outcome::default() })).map(|it| (it, rate))
        };
        assert_eq!(found(4e6), Ok((2_000, 4e6)), "half of it in a millisecond");
        assert!(found(0.0).is_err());
        let tables = wanted.tables(Row::Rate, |side| side == Side::JgroupsUdp);
        assert!(is_kept(&tables[0], &tables[0].cases[0], &[failed]), "a peer may fail");
    }
}
