//! iceoryx2, through the two programs of this workspace.

use std::path::Path;

use anyhow::Result;

use super::programs::Programs;
use super::{Repetition, Side};
use crate::cell::Cell;
use crate::measurement::Measurement;
use crate::row::Row;

/// Version that the workspace builds.
const VERSION: &str = "0.10.0";

/// iceoryx2.
#[derive(Debug)]
pub struct Iceoryx2 {
    programs: Programs,
}

impl Iceoryx2 {
    /// The programs that lie in a folder.
    ///
    /// # Errors
    ///
    /// When they have not been built.
    pub fn new(folder: &Path) -> Result<Self> {
        let programs = Programs::new(folder, "rivals-iceoryx2-pub", "rivals-iceoryx2-sub")?;
        Ok(Self { programs })
    }
}

impl Side for Iceoryx2 {
    fn name(&self) -> &str {
        "iceoryx2"
    }

    fn version(&self) -> String {
        VERSION.into()
    }

    fn takes(&self, cell: &Cell) -> bool {
        cell.row != Row::Wake && cell.row.is_between_processes()
    }

    fn likely_rate(&self, cell: &Cell) -> f64 {
        1.2e6 / cell.subscribers as f64
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let words = [format!("--wait={}", repetition.cell.busy_wait())];
        self.programs.measure(repetition, &words, &words)
    }
}
