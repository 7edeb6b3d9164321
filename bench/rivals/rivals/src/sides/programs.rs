//! The two programs of a peer that this workspace builds.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::{Repetition, run_stream};
use crate::measurement::Measurement;
use crate::process::Program;
use crate::scratch::Domain;

/// A publisher and a subscriber that share the command line of the kit.
#[derive(Debug)]
pub struct Programs {
    folder: PathBuf,
    publisher: &'static str,
    subscriber: &'static str,
    /// Whether the subscribers wait for the publisher, and not it for them.
    pub subscribers_first: bool,
}

impl Programs {
    /// The programs in a folder.
    ///
    /// # Errors
    ///
    /// When they have not been built.
    pub fn new(folder: &Path, publisher: &'static str, subscriber: &'static str) -> Result<Self> {
        for name in [publisher, subscriber] {
            ensure!(folder.join(name).is_file(), "not built: no {name}");
        }
        Ok(Self { folder: folder.to_owned(), publisher, subscriber, subscribers_first: true })
    }

    /// The file of the publisher.
    pub fn publisher(&self) -> PathBuf {
        self.folder.join(self.publisher)
    }

    /// Runs one repetition; each program gets words of its own beside the load.
    ///
    /// # Errors
    ///
    /// When a program fails, hangs or reports nothing.
    pub fn measure(
        &self,
        repetition: &Repetition,
        publisher: &[String],
        subscriber: &[String],
    ) -> Result<Measurement> {
        let (domain, cpus) = (Domain::new(), repetition.cpus);
        let program = |name: &'static str, cpu, words: &[String]| {
            Program::new(name, &self.folder.join(name))
                .args(repetition.load_arguments(&domain, cpu))
                .args([repetition.warmup_argument()])
                .args(words)
        };
        let subscriber = program(self.subscriber, cpus.subscriber, subscriber);
        let publisher = program(self.publisher, cpus.publisher, publisher);
        let printed = run_stream(&subscriber, &publisher, repetition, self.subscribers_first)?;
        let each: Result<Vec<_>> =
            printed.iter().map(|text| Measurement::from_line(text)).collect();
        Measurement::joined(each?)
    }
}
