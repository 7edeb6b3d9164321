//! Aeron IPC, through the Java programs beside this workspace.
//!
//! What is chosen here was chosen because Aeron did best with it; the README has the reasons.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use rivals_kit::Wait;

use super::{READY_LIMIT, Repetition, Side, run_stream};
use crate::cell::Cell;
use crate::measurement::Measurement;
use crate::process::Program;
use crate::row::Row;
use crate::scratch::Domain;

/// Flat-out load before the measured part: the compiler has then seen the loops long enough.
const WARMUP: Duration = Duration::from_secs(2);
/// Up to this size the driver does best on the subscribers' CPU, above it on the publisher's.
const SMALL: usize = 256;
const JAVA_OPTIONS: [&str; 13] = [
    "-Xms64m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:+PerfDisableSharedMem",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:GuaranteedSafepointInterval=300000",
    "-Dagrona.disable.bounds.checks=true",
    "--add-opens",
    "java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens",
    "java.base/java.util.zip=ALL-UNNAMED",
    "--add-opens",
    "java.base/sun.nio.ch=ALL-UNNAMED",
];

/// Advice where Aeron cannot run.
const NEEDS: &str = "it needs a JDK from 17 and Maven (apt-get install default-jdk-headless maven)";

/// Aeron IPC.
#[derive(Debug)]
pub struct Aeron {
    classes: PathBuf,
    jars: PathBuf,
    version: String,
}

impl Aeron {
    /// The programs that Maven has built into a folder.
    ///
    /// # Errors
    ///
    /// When they are not there, or there is no Java to run them.
    pub fn new(folder: &Path) -> Result<Self> {
        let (classes, jars) = (folder.join("classes"), folder.join("lib"));
        let java = Command::new("java").arg("-version").output();
        ensure!(java.is_ok_and(|output| output.status.success()), "no Java: {NEEDS}");
        let jar = std::fs::read_dir(&jars).ok().and_then(|entries| {
            let names = entries.flatten().map(|entry| entry.file_name());
            names.filter_map(|name| name.into_string().ok()).find(|n| n.starts_with("aeron-all-"))
        });
        ensure!(jar.is_some() && classes.is_dir(), "not built: {NEEDS}");
        let jar = jar.unwrap_or_default();
        let version = jar.trim_start_matches("aeron-all-").trim_end_matches(".jar").to_owned();
        Ok(Self { classes, jars, version })
    }

    fn program(&self, name: &'static str, class: &str) -> Program {
        let path = format!("{}:{}/*", self.classes.display(), self.jars.display());
        Program::new(name, Path::new("java"))
            .args(["-cp", &path])
            .args(JAVA_OPTIONS)
            .args([format!("lanecast.rivals.{class}")])
    }

    fn client(
        &self,
        (name, class): (&'static str, &str),
        repetition: &Repetition,
        domain: &Domain,
        cpu: usize,
    ) -> Program {
        let arguments = repetition.load_arguments(domain, cpu);
        let wait = if class == "Publisher" { Wait::Yield } else { reader_wait(&repetition.cell) };
        let words = arguments.iter().flat_map(|argument| argument.split('='));
        self.program(name, class)
            .args(words)
            .args(["--wait", &wait.to_string()])
            .args(["--warmup-ms", &WARMUP.as_millis().to_string()])
    }
}

impl Side for Aeron {
    fn name(&self) -> &str {
        "aeron"
    }

    fn version(&self) -> String {
        format!("{} (Java)", self.version)
    }

    fn takes(&self, cell: &Cell) -> bool {
        cell.row != Row::Wake && cell.row.is_between_processes()
    }

    fn likely_rate(&self, cell: &Cell) -> f64 {
        let one = if cell.size <= SMALL { 25e6 } else { 5e6 };
        one / cell.subscribers as f64
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let (domain, cpus) = (Domain::new(), repetition.cpus);
        let names = (("Aeron's publisher", "Publisher"), ("Aeron's subscriber", "Subscriber"));
        let mut driver = self.program("Aeron's driver", "Driver").args(["--domain", domain.name()]);
        driver.confined_to = Some(if driver_beside_publisher(&repetition.cell) {
            cpus.publisher
        } else {
            cpus.subscriber
        });
        let mut driver = driver.start()?;
        driver.wait_ready(READY_LIMIT)?;
        let subscriber = self.client(names.1, repetition, &domain, cpus.subscriber);
        let publisher = self.client(names.0, repetition, &domain, cpus.publisher);
        let printed = run_stream(&subscriber, &publisher, repetition, true);
        driver.stop();
        let each: Result<Vec<_>> =
            printed?.iter().map(|text| Measurement::from_line(text)).collect();
        Measurement::joined(each?)
    }
}

/// A publisher that may not send, and flat out a subscriber that has nothing to read, let the
/// driver have the CPU: the limit of what may be sent moves only when the driver runs. At a fixed
/// rate a spinning subscriber is quicker.
fn reader_wait(cell: &Cell) -> Wait {
    if cell.rate == 0 { Wait::Yield } else { Wait::Spin }
}

fn driver_beside_publisher(cell: &Cell) -> bool {
    cell.rate > 0 || cell.size > SMALL
}
