//! A store as a process of its own, for one run of a series.

use super::transport_name::TransportName;
use crate::child::ChildProcess;
use crate::temp_domain::TempDomain;
use std::path::{Path, PathBuf};

/// Arguments of a store: those of the ends that it serves.
pub(super) struct StoreArguments<'a> {
    pub(super) transport: TransportName,
    /// Directory of the domain.
    pub(super) domain: PathBuf,
    pub(super) config: &'a [PathBuf],
    pub(super) interface: Option<&'a str>,
    pub(super) io: Option<&'a str>,
    /// The CPU of all its threads; none leaves them to the system.
    pub(super) cpu: Option<usize>,
}

/// A running store, killed with this value; its data are removed then.
#[derive(Debug)]
pub(super) struct StoreProcess {
    // Before its data.
    _child: ChildProcess,
    _data: TempDomain,
}

impl StoreProcess {
    /// Starts the store `name` with its data in a new directory below `parent`. Its clients wait
    /// until it answers.
    pub(super) fn start(
        name: &str,
        arguments: &StoreArguments<'_>,
        parent: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let data = TempDomain::on_disk("store", parent)?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut words = vec!["store".to_owned(), name.to_owned(), "--quiet".to_owned()];
        words.extend(["--data".to_owned(), path(&data.path("data"))]);
        words.extend(["--directory".to_owned(), path(&arguments.domain)]);
        words.extend(["--transports", arguments.transport.name()].map(str::to_owned));
        for file in arguments.config {
            words.extend(["-c".to_owned(), path(file)]);
        }
        for (option, value) in [("--interface", arguments.interface), ("--io", arguments.io)] {
            words.extend(value.into_iter().flat_map(|value| [option, value]).map(str::to_owned));
        }
        let child = match arguments.cpu {
            None => ChildProcess::start("store", &words)?,
            Some(cpu) => ChildProcess::start_on(cpu, "store", &words)?,
        };
        Ok(Self { _child: child, _data: data })
    }
}
