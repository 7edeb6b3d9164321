//! LMAX Disruptor, through the Java program beside this workspace. The wait strategy of a consumer
//! decides the figures, so each strategy is a side of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Repetition, Side};
use crate::cell::Cell;
use crate::measurement::Measurement;
use crate::process::Program;
use crate::row::Row;

const JAVA_OPTIONS: [&str; 5] = [
    "-Xms64m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:GuaranteedSafepointInterval=300000",
];

/// Advice where it cannot run.
const NEEDS: &str = "it needs a JDK from 17 and Maven (apt-get install default-jdk-headless maven)";

/// Wait strategy of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    BusySpin,
    Yielding,
    Blocking,
}

/// LMAX Disruptor with one way of waiting.
#[derive(Debug)]
pub struct Lmax {
    classes: PathBuf,
    jars: PathBuf,
    version: String,
    waiting: Waiting,
}

/// Every way of waiting, of what Maven has built into a folder.
///
/// # Errors
///
/// When it is not there, or there is no Java to run it.
pub fn all(folder: &Path) -> Result<Vec<Lmax>> {
    let (classes, jars) = (folder.join("classes"), folder.join("lib"));
    let java = Command::new("java").arg("-version").output();
    ensure!(java.is_ok_and(|output| output.status.success()), "no Java: {NEEDS}");
    let jar = std::fs::read_dir(&jars).ok().and_then(|entries| {
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.into_string().ok()).find(|n| n.starts_with("disruptor-"))
    });
    ensure!(jar.is_some() && classes.is_dir(), "not built: {NEEDS}");
    let jar = jar.unwrap_or_default();
    let version = jar.trim_start_matches("disruptor-").trim_end_matches(".jar").to_owned();
    let with = |waiting| {
        let (classes, jars, version) = (classes.clone(), jars.clone(), version.clone());
        Lmax { classes, jars, version, waiting }
    };
    Ok([Waiting::BusySpin, Waiting::Yielding, Waiting::Blocking].map(with).into())
}

impl Side for Lmax {
    fn name(&self) -> &str {
        match self.waiting {
            Waiting::BusySpin => "lmax",
            Waiting::Yielding => "lmax-yield",
            Waiting::Blocking => "lmax-block",
        }
    }

    fn version(&self) -> String {
        format!("{} (Java)", self.version)
    }

    fn takes(&self, cell: &Cell) -> bool {
        match (self.waiting, cell.row) {
            (Waiting::BusySpin, Row::Queue | Row::Pop | Row::Batch | Row::Pingpong) => true,
            (Waiting::Yielding, Row::Queue | Row::Pop | Row::Batch | Row::Pingpong) => true,
            // More threads than CPUs: one that spins without yielding takes them from the rest.
            (Waiting::Yielding, Row::Multicast | Row::Diamond) => true,
            (Waiting::Blocking, row) => row == Row::PingpongPark,
            _ => false,
        }
    }

    fn likely_rate(&self, cell: &Cell) -> f64 {
        super::slow_queue_rate(cell)
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let Cell { row, batch, subscribers, .. } = repetition.cell;
        let path = format!("{}:{}/*", self.classes.display(), self.jars.display());
        let waiting = match self.waiting {
            Waiting::BusySpin => "busy-spin",
            Waiting::Yielding => "yield",
            Waiting::Blocking => "block",
        };
        let text = Program::new("LMAX Disruptor", Path::new("java"))
            .args(["-cp", &path])
            .args(JAVA_OPTIONS)
            .args(["lanecast.rivals.disruptor.Run", "--row", &row.to_string(), "--wait", waiting])
            .args(["--batch", &batch.to_string(), "--consumers", &subscribers.to_string()])
            .args(["--messages", &repetition.messages.to_string()])
            .args(["--producer-cpu", &repetition.cpus.publisher.to_string()])
            .args(["--consumer-cpu", &repetition.cpus.subscriber.to_string()])
            .start()?
            .wait(repetition.deadline())?;
        Measurement::joined(vec![Measurement::from_line(&text)?])
    }
}
