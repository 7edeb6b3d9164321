//! lanecast, through its own measuring tools. Everything that knows their command line and their
//! output is in this file.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{Repetition, Side, run_stream};
use crate::cell::Cell;
use crate::measurement::{Latency, Measurement, Percentiles};
use crate::process::Program;
use crate::row::Row;
use crate::scratch::Domain;

const TOPIC: &str = "rivals";
const LINGER_MS: u64 = 200;
/// Bit of the publisher's `-f` that stamps each message.
const STAMPED: u32 = 1;
/// Variable that selects the folder of the domain.
const FOLDER_VARIABLE: &str = "LANECAST_SHM__DIRECTORY";

/// lanecast.
#[derive(Debug)]
pub struct Lanecast {
    program: PathBuf,
    version: String,
}

/// Fields of the subscriber's line.
#[derive(Debug, Deserialize)]
struct SubscriberResult {
    received: u64,
    #[serde(default)]
    warmup: u64,
    lost: u64,
    #[serde(default)]
    reported_lost: u64,
    #[serde(default)]
    damaged: u64,
    rate: f64,
    latency: Option<LatencyResult>,
    #[serde(default)]
    clock: serde_json::Value,
    #[serde(default)]
    clock_cost_ns: f64,
}

#[derive(Debug, Deserialize)]
struct LatencyResult {
    actual: Distribution,
    intended: Distribution,
}

#[derive(Debug, Deserialize)]
struct Distribution {
    min_ns: f64,
    p50_ns: f64,
    p90_ns: f64,
    p99_ns: f64,
    #[serde(default)]
    p99_9_ns: Option<f64>,
    max_ns: f64,
    samples: u64,
}

impl Lanecast {
    /// The program at a path.
    ///
    /// # Errors
    ///
    /// When it is not there or cannot be run.
    pub fn new(program: &Path) -> Result<Self> {
        ensure!(program.is_file(), "not built: no {}", program.display());
        let output = Command::new(program).arg("--version").output()?;
        ensure!(output.status.success(), "{} does not run", program.display());
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().last().unwrap_or("unknown").to_owned();
        Ok(Self { program: program.to_owned(), version })
    }

    fn tool(&self, name: &'static str, tool: &str, domain: &Domain) -> Program {
        let folder = domain.folder().display().to_string();
        let mut program =
            Program::new(name, &self.program).args(["perf", tool, "-t", TOPIC, "--json"]);
        program.environment.push((FOLDER_VARIABLE.to_owned(), folder));
        program
    }

    fn subscriber(&self, repetition: &Repetition, domain: &Domain) -> Program {
        let cell = &repetition.cell;
        let cpu = repetition.cpus.subscriber;
        let program = self
            .tool("lanecast's subscriber", "sub", domain)
            .args(["-a", &cpu.to_string(), "--once"])
            .args(["--touch", &cell.touch().to_string()])
            .args(wait(cell));
        if cell.stamped() { program } else { program.args(["-f"]) }
    }

    fn publisher(&self, repetition: &Repetition, domain: &Domain) -> Program {
        let cell = &repetition.cell;
        let flags = if cell.stamped() { STAMPED } else { 0 };
        let share = repetition.warmup_s() / repetition.seconds;
        let warmup = (repetition.messages as f64 * share) as u64;
        self.tool("lanecast's publisher", "pub", domain)
            .args(["-a", &repetition.cpus.publisher.to_string()])
            .args(["-m", &cell.size.to_string(), "-n", &repetition.messages.to_string()])
            .args(["-r", &cell.rate.to_string(), "-w", &warmup.to_string()])
            .args(["--warmup-rate", &cell.rate.to_string()])
            .args(["-l", &LINGER_MS.to_string(), "-f", &flags.to_string()])
            .args(["--wait-subscribers", &cell.subscribers.to_string()])
            .args(["--touch", &cell.touch().to_string()])
            .args(wait(cell))
    }
}

impl Side for Lanecast {
    fn name(&self) -> &str {
        "lanecast"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn takes(&self, cell: &Cell) -> bool {
        cell.row.is_between_processes()
    }

    fn likely_rate(&self, cell: &Cell) -> f64 {
        let one = if cell.size <= 256 { 40e6 } else { 10e6 };
        one / (cell.subscribers * cell.subscribers) as f64
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let domain = Domain::new();
        std::fs::create_dir(domain.folder()).context("no folder for the domain")?;
        let subscriber = self.subscriber(repetition, &domain);
        let publisher = self.publisher(repetition, &domain);
        let printed = run_stream(&subscriber, &publisher, repetition, false)?;
        let expected = repetition.messages;
        let each: Result<Vec<_>> = printed.iter().map(|text| read(text, expected)).collect();
        Measurement::joined(each?)
    }
}

/// Spinning by default; shared CPUs and sleeping subscribers need their own strategy.
fn wait(cell: &Cell) -> Vec<&'static str> {
    match cell.row {
        Row::Fanout => vec!["--wait", "spin-park"],
        Row::Wake => vec!["--wait", "park"],
        _ => vec!["--wait", "spin"],
    }
}

/// Reads the subscriber's result; every message that did not arrive counts as lost.
fn read(text: &str, expected: u64) -> Result<Measurement> {
    let result: SubscriberResult = serde_json::from_str(text.trim())
        .with_context(|| format!("not the expected result: {text}"))?;
    let received = result.received.saturating_sub(result.warmup);
    let noticed = result.lost + result.reported_lost;
    Ok(Measurement {
        rate: result.rate,
        received,
        lost: noticed.max(expected.saturating_sub(received)),
        damaged: result.damaged,
        lost_in_warmup: 0,
        latency: result.latency.map(|latency| Latency {
            actual: latency.actual.into(),
            intended: latency.intended.into(),
        }),
        clock: result.clock.as_str().unwrap_or_default().to_owned(),
        clock_cost_ns: result.clock_cost_ns,
        way: String::new(),
    })
}

impl From<Distribution> for Percentiles {
    fn from(distribution: Distribution) -> Self {
        let Distribution { min_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, samples } =
            distribution;
        Self { min_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_arrive_is_lost() {
        let text = r#"{"received":103,"warmup":10,"lost":2,"duration_ns":5,"rate":7.5,
            "latency":{"actual":{"min_ns":1,"p50_ns":2,"p90_ns":3,"p99_ns":4,"max_ns":5,
            "mean_ns":2.5,"samples":93},"intended":{"min_ns":1,"p50_ns":2,"p90_ns":3,
            "p99_ns":4,"max_ns":6,"mean_ns":2.5,"samples":93}}}"#;
        let measurement = read(text, 100).expect("complete result");
        assert_eq!((measurement.received, measurement.lost), (93, 7));
        assert_eq!(measurement.latency.expect("stamped").intended.max_ns, 6.0);
    }

    #[test]
    fn text_that_is_no_result_is_an_error() {
        assert!(read("rate=5, ", 1).is_err());
    }
}
