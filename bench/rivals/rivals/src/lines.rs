//! The record of a run: one line of JSON for each repetition, in the form that
//! `docs/protocol/measurements.md` of the product describes and `lanecast report` reads.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::campaign::{Outcome, Run, SideRuns};
use crate::host::Host;
use crate::measurement::{Measurement, Percentiles};
use crate::options::Options;

const SCHEMA: u32 = 1;
/// Command that repeats the measurement.
const COMMAND: &str = "bench/rivals/run.sh";

/// A file that grows by the lines of each row, so that a run which is cut short leaves what it had.
#[derive(Debug)]
pub struct Lines {
    file: File,
    head: Map<String, Value>,
    load: Map<String, Value>,
}

impl Lines {
    /// Makes the file.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn create(path: &Path, version: &str, host: &Host, options: &Options) -> Result<Self> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let words = [COMMAND.to_owned()].into_iter().chain(std::env::args().skip(1));
        let head = members(json!({
            "schema": SCHEMA,
            "version": version,
            "command": words.collect::<Vec<_>>().join(" "),
            "host": host.members(),
        }));
        let load = members(json!({
            "pairs": options.pairs(),
            "publisher_cpu": options.publisher_cpu,
            "subscriber_cpu": options.subscriber_cpu,
            "raised": host.raised,
        }));
        Ok(Self { file, head, load })
    }

    /// Adds what was measured in some cells.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn add(&mut self, outcomes: &[Outcome]) -> Result<()> {
        for outcome in outcomes {
            for side in &outcome.sides {
                for (pair, run) in (1..).zip(&side.runs) {
                    self.write(run.started_unix_ns, self.repetition(outcome, side, pair, run))?;
                }
            }
        }
        Ok(())
    }

    /// Adds that something was not measured.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn skip(&mut self, started_unix_ns: u64, experiment: &str, why: &str) -> Result<()> {
        self.write(started_unix_ns, skipped(experiment, why))
    }

    fn repetition(&self, outcome: &Outcome, side: &SideRuns, pair: u32, run: &Run) -> Value {
        let (cell, row) = (&outcome.cell, outcome.cell.row_name());
        let measurement = match &run.result {
            Ok(measurement) => measurement,
            Err(reason) => {
                let why = format!("{}, {} B, pair {pair}: {reason}", side.side, cell.size);
                return skipped(&row, &why);
            }
        };
        let between_threads = cell.row.is_between_threads();
        let mut line = members(json!({
            "kind": "rival",
            "peer": side.side,
            "peer_version": side.version,
            "row": row,
            "size": cell.size,
            "rate_asked": cell.rate,
            "subscribers": cell.subscribers,
            "producers": between_threads.then_some(cell.producers),
            "batch": between_threads.then_some(cell.batch),
            "one_cpu": between_threads.then_some(cell.one_cpu),
            "way": (!measurement.way.is_empty()).then_some(&measurement.way),
            "touch": cell.touch().to_string(),
            "pair": pair,
            "stolen_share": run.disturbance.stolen_share,
            "involuntary_switches": run.disturbance.involuntary_switches,
        }));
        line.extend(self.load.clone());
        line.extend(figures(measurement));
        Value::Object(line)
    }

    fn write(&mut self, started_unix_ns: u64, line: Value) -> Result<()> {
        let mut whole = self.head.clone();
        whole.insert("started_unix_ns".into(), started_unix_ns.into());
        whole.extend(members(line));
        writeln!(self.file, "{}", Value::Object(whole)).context("cannot write the lines")
    }
}

fn skipped(experiment: &str, why: &str) -> Value {
    json!({ "kind": "skipped", "experiment": experiment, "why": why })
}

fn figures(measurement: &Measurement) -> Map<String, Value> {
    members(json!({
        "rate": measurement.rate,
        "received": measurement.received,
        "lost": measurement.lost,
        "damaged": measurement.damaged,
        "clock": measurement.clock,
        "clock_cost_ns": measurement.clock_cost_ns,
        "actual": measurement.latency.map(|latency| percentiles(&latency.actual)),
        "intended": measurement.latency.map(|latency| percentiles(&latency.intended)),
    }))
}

/// Whole nanoseconds, as everywhere in these lines.
fn percentiles(of: &Percentiles) -> Value {
    let whole = |ns: f64| ns.round() as u64;
    json!({
        "min_ns": whole(of.min_ns),
        "p50_ns": whole(of.p50_ns),
        "p90_ns": whole(of.p90_ns),
        "p99_ns": whole(of.p99_ns),
        "p99_9_ns": of.p99_9_ns.map(whole),
        "max_ns": whole(of.max_ns),
        "samples": of.samples,
    })
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::disturbance::Disturbance;
    use crate::measurement::Latency;
    use crate::row::Row;
    use crate::sides::Standing;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    fn run(result: Result<Measurement, String>) -> Run {
        let disturbance = Disturbance { stolen_share: 0.25, involuntary_switches: 3 };
        Run { started_unix_ns: 77, disturbance, result }
    }

    fn outcome() -> Outcome {
        let times = Percentiles {
            min_ns: 1.4,
            p50_ns: 2.6,
            p90_ns: 3.0,
            p99_ns: 4.0,
            p99_9_ns: Some(4.4),
            max_ns: 5.0,
            samples: 10,
        };
        let measurement = Measurement {
            rate: 7.5,
            received: 10,
            lost: 1,
            damaged: 2,
            lost_in_warmup: 0,
            latency: Some(Latency { actual: times, intended: times }),
            clock: "tsc".into(),
            clock_cost_ns: 15.0,
            way: "written".into(),
        };
        let runs = vec![run(Ok(measurement)), run(Err("no room".into()))];
        Outcome {
            cell: Cell { size: 100, rate: 1000, ..Cell::alone(Row::Latency) },
            sides: vec![SideRuns {
                side: "pipe".into(),
                version: "Linux 6".into(),
                standing: Standing::default(),
                runs,
            }],
        }
    }

    #[test]
    fn each_repetition_is_a_line_with_its_head() {
        let path = std::env::temp_dir().join(format!("rivals-lines-{}.jsonl", std::process::id()));
        let options = Cli::parse_from(["rivals", "--pairs", "2"]).options;
        let mut lines = Lines::create(&path, "1.2.3", &Host::look(), &options).expect("a file");
        lines.add(&[outcome()]).expect("written");
        lines.skip(78, "zmq", "not built").expect("written");
        let text = std::fs::read_to_string(&path).expect("there");
        std::fs::remove_file(&path).expect("there");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 3);
        for line in &lines {
            assert_eq!((&line["schema"], &line["version"]), (&json!(1), &json!("1.2.3")));
            assert!(line["command"].is_string() && line["host"]["architecture"].is_string());
        }
        let done = &lines[0];
        assert_eq!((&done["kind"], &done["peer"]), (&json!("rival"), &json!("pipe")));
        assert_eq!((&done["pair"], &done["pairs"]), (&json!(1), &json!(2)));
        assert_eq!((&done["way"], &done["batch"]), (&json!("written"), &json!(null)));
        assert_eq!((&done["row"], &done["rate_asked"]), (&json!("latency"), &json!(1000)));
        assert_eq!((&done["started_unix_ns"], &done["rate"]), (&json!(77), &json!(7.5)));
        let times = json!({ "min_ns": 1, "p50_ns": 3, "p90_ns": 3, "p99_ns": 4, "p99_9_ns": 4,
            "max_ns": 5, "samples": 10 });
        assert_eq!((&done["actual"], &done["intended"]), (&times, &times));
        assert_eq!((&lines[1]["kind"], &lines[2]["kind"]), (&json!("skipped"), &json!("skipped")));
        assert_eq!(lines[1]["why"], "pipe, 100 B, pair 2: no room");
    }
}
