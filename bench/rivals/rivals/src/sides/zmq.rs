//! ØMQ, through the two programs of this workspace.
//!
//! Each process has a thread of its own for input and output, and both want a CPU: where it runs
//! and how the others wait decides the figures. The choices are those with which ØMQ did best.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use rivals_kit::Wait;

use super::programs::Programs;
use super::{Cpus, Repetition, Side};
use crate::cell::Cell;
use crate::measurement::Measurement;
use crate::row::Row;

/// Up to this size a subscriber that sleeps does best flat out, above it one that yields.
const SMALL: usize = 256;
/// Below this rate both of ØMQ's threads do best on the subscriber's CPU.
const SLOW: u64 = 500_000;

/// ØMQ over `ipc`.
#[derive(Debug)]
pub struct Zmq {
    programs: Programs,
    version: String,
}

impl Zmq {
    /// The programs that lie in a folder.
    ///
    /// # Errors
    ///
    /// When they have not been built or do not run.
    pub fn new(folder: &Path) -> Result<Self> {
        let programs = Programs::new(folder, "rivals-zmq-pub", "rivals-zmq-sub")
            .context("it needs a C++ compiler (apt-get install g++)")?;
        let output = Command::new(programs.publisher()).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().last().context("its programs do not run")?.to_owned();
        Ok(Self { programs, version })
    }
}

impl Side for Zmq {
    fn name(&self) -> &str {
        "zmq"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn takes(&self, cell: &Cell) -> bool {
        cell.row.is_between_processes()
    }

    fn likely_rate(&self, cell: &Cell) -> f64 {
        let one = if cell.size <= SMALL { 4e6 } else { 0.8e6 };
        one / (cell.subscribers * cell.subscribers) as f64
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let words = |wait: Wait, cpu: usize| [format!("--wait={wait}"), format!("--io-cpu={cpu}")];
        let Cpus { publisher, subscriber } = repetition.cpus;
        let cell = &repetition.cell;
        let beside_publisher = if is_slow(cell) { subscriber } else { publisher };
        // A publisher that waits for the next message to be due lets ØMQ's thread run.
        let publisher = words(Wait::Yield, beside_publisher);
        self.programs.measure(repetition, &publisher, &words(reader_wait(cell), subscriber))
    }
}

fn is_slow(cell: &Cell) -> bool {
    cell.row == Row::Latency && cell.rate < SLOW
}

fn reader_wait(cell: &Cell) -> Wait {
    match cell.row {
        Row::Wake | Row::Fanout => Wait::Block,
        Row::Latency if is_slow(cell) => Wait::Yield,
        Row::Latency => Wait::Block,
        _ if cell.size <= SMALL => Wait::Block,
        _ => Wait::Yield,
    }
}
