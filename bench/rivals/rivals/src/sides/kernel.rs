//! Unix sockets and pipes, through the two programs of this workspace.
//!
//! What is chosen here was chosen because it was quickest; the README has the reasons.

use std::path::Path;

use anyhow::Result;

use rivals_kit::Wait;

use super::programs::Programs;
use super::{Repetition, Side};
use crate::cell::Cell;
use crate::measurement::Measurement;
use crate::row::Row;

/// Flat out: bytes that are written at once, and that the kernel holds.
const FLAT_OUT: (u64, u64) = (256 << 10, 1 << 20);
/// At a fixed rate: a publisher that fell behind writes at once what falls due in 10 µs, and
/// little is held, because what is held is late.
const BATCHES_PER_S: u64 = 100_000;
const PACED_HELD: u64 = 64 << 10;
/// Below this rate a packet for each message is quicker than a stream.
const SLOW: u64 = 500_000;

/// A transport of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// A Unix socket.
    Unix,
    /// A pipe.
    Pipe,
}

/// Unix sockets or pipes.
#[derive(Debug)]
pub struct Kernel {
    programs: Programs,
    means: Means,
    release: String,
}

impl Kernel {
    /// The programs that lie in a folder.
    ///
    /// # Errors
    ///
    /// When they have not been built.
    pub fn new(folder: &Path, means: Means, release: Option<&str>) -> Result<Self> {
        let mut programs = Programs::new(folder, "rivals-kernel-pub", "rivals-kernel-sub")?;
        programs.subscribers_first = false;
        Ok(Self { programs, means, release: release.unwrap_or("unknown").to_owned() })
    }

    fn over(&self, cell: &Cell) -> &'static str {
        match self.means {
            Means::Pipe => "pipe",
            Means::Unix if cell.rate > 0 && cell.rate < SLOW => "packets",
            Means::Unix => "stream",
        }
    }
}

impl Side for Kernel {
    fn name(&self) -> &str {
        match self.means {
            Means::Unix => "unix",
            Means::Pipe => "pipe",
        }
    }

    fn version(&self) -> String {
        format!("Linux {}", self.release)
    }

    fn takes(&self, cell: &Cell) -> bool {
        cell.row.is_between_processes()
    }

    fn likely_rate(&self, cell: &Cell) -> f64 {
        let bytes_per_s = if self.means == Means::Unix { 5e9 } else { 3e9 };
        bytes_per_s / (cell.size * cell.subscribers * cell.subscribers) as f64
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let cell = &repetition.cell;
        let both = [format!("--over={}", self.over(cell)), format!("--wait={}", wait(cell))];
        let (batch, held) = room(cell);
        let [over, wait] = both.clone();
        let publisher = [over, wait, format!("--batch={batch}"), format!("--held={held}")];
        self.programs.measure(repetition, &publisher, &both)
    }
}

/// With several readers on one CPU the kernel knows best whose turn it is.
fn wait(cell: &Cell) -> Wait {
    if matches!(cell.row, Row::Fanout | Row::Wake) { Wait::Block } else { Wait::Spin }
}

/// Bytes that are gathered, and bytes that are held.
fn room(cell: &Cell) -> (u64, u64) {
    match cell.rate {
        0 => FLAT_OUT,
        rate => (rate * cell.size as u64 / BATCHES_PER_S, PACED_HELD),
    }
}
