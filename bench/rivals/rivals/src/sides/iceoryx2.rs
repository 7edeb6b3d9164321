//! iceoryx2, through the two programs of this workspace.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Repetition, Side, run_stream};
use crate::cell::Cell;
use crate::measurement::Measurement;
use crate::options::Row;
use crate::process::Program;
use crate::scratch::Domain;

/// Version that the workspace builds.
const VERSION: &str = "0.10.0";
const WARMUP_MS: u64 = 300;

/// iceoryx2.
#[derive(Debug)]
pub struct Iceoryx2 {
    folder: PathBuf,
}

impl Iceoryx2 {
    /// The programs that lie in a folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn program(
        &self,
        name: &'static str,
        repetition: &Repetition,
        domain: &Domain,
        cpu: usize,
    ) -> Program {
        Program::new(name, &self.folder.join(name))
            .args(repetition.load_arguments(domain, cpu))
            .args([format!("--wait={}", repetition.cell.wait())])
            .args([format!("--warmup-ms={WARMUP_MS}")])
    }
}

impl Side for Iceoryx2 {
    fn name(&self) -> &'static str {
        "iceoryx2"
    }

    fn version(&self) -> String {
        VERSION.into()
    }

    fn takes(&self, cell: &Cell) -> bool {
        cell.row != Row::Wake
    }

    fn likely_rate(&self, cell: &Cell) -> f64 {
        1.2e6 / cell.subscribers as f64
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let (domain, cpus) = (Domain::new(), repetition.cpus);
        let subscriber = self.program("rivals-iceoryx2-sub", repetition, &domain, cpus.subscriber);
        let publisher = self.program("rivals-iceoryx2-pub", repetition, &domain, cpus.publisher);
        let printed = run_stream(&subscriber, &publisher, repetition, true)?;
        let each: Result<Vec<_>> =
            printed.iter().map(|text| Measurement::from_line(text)).collect();
        Measurement::joined(each?)
    }
}
