//! `lanecast clean`.

use crate::context::DomainArgs;
use crate::output::{print, print_json, print_line};
use crate::table::{render, size};
use crate::temp_domain::{StaleRun, parents};
use lanecast::shm::StaleFile;
use lanecast_report::TextTable;
use serde_json::json;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Arguments of `clean`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Files of living processes are never touched; every opening of the domain \
    cleans up too. Directories lanecast-run-* of killed demonstrations and reports, in /dev/shm \
    and where temporary files are, are removed if they are this user's and no process holds \
    them.\nExit status: 0 done or nothing to do, 1 something could not be removed.")]
pub(crate) struct CleanArgs {
    /// Only show what would be removed
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Print one JSON array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    domain: DomainArgs,
}

pub(crate) fn run(arguments: &CleanArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.domain.directory()?;
    let mut removed: Vec<_> = lanecast::shm::clean(&directory, arguments.dry_run)?
        .into_iter()
        .map(|file| Removed::file(file, arguments.dry_run))
        .collect();
    for parent in parents() {
        removed.extend(runs(&parent, arguments.dry_run));
    }
    if arguments.json {
        let list = removed.iter().map(|it| {
            json!({"path": it.path, "bytes": it.bytes, "run": it.is_run, "verdict": it.verdict})
        });
        print_json(&list.collect::<Vec<_>>())?;
    } else if removed.is_empty() {
        print_line(&format!("nothing to clean in {}", directory.display()))?;
    } else {
        let mut table = TextTable::new(&["file", ">size", "verdict"]);
        for it in &removed {
            let of = if it.is_run { ", a killed run's directory" } else { "" };
            table.row([it.path.clone(), size(it.bytes), format!("{}{of}", it.verdict)]);
        }
        print(&render(&table))?;
    }
    let failed = removed.iter().any(|it| it.has_failed);
    Ok(ExitCode::from(u8::from(failed)))
}

/// A file, or a directory of a killed run, that was removed or is to be.
#[derive(Debug)]
struct Removed {
    path: String,
    bytes: u64,
    is_run: bool,
    verdict: String,
    has_failed: bool,
}

impl Removed {
    fn file(file: StaleFile, dry_run: bool) -> Self {
        Self::new(&file.path, file.bytes, file.error, dry_run)
    }

    fn run(run: StaleRun, dry_run: bool) -> Self {
        let (path, bytes) = (run.path.clone(), run.bytes());
        let removed = if dry_run { Ok(()) } else { run.remove() };
        let error = removed.err().map(|error: io::Error| error.to_string());
        Self { is_run: true, ..Self::new(&path, bytes, error, dry_run) }
    }

    fn new(path: &Path, bytes: u64, error: Option<String>, dry_run: bool) -> Self {
        let has_failed = error.is_some();
        let done = if dry_run { "would be removed" } else { "removed" };
        let verdict = error.unwrap_or_else(|| done.to_owned());
        Self { path: path.display().to_string(), bytes, is_run: false, verdict, has_failed }
    }
}

/// The directories of killed runs in `parent`.
fn runs(parent: &Path, dry_run: bool) -> Vec<Removed> {
    StaleRun::all(parent).into_iter().map(|run| Removed::run(run, dry_run)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temp_domain::TempDomain;

    #[test]
    fn the_directory_of_a_killed_run_is_shown_then_removed_and_a_living_one_kept() {
        let parent = tempfile::tempdir().unwrap();
        let killed = parent.path().join("lanecast-run-lat-1");
        let living = TempDomain::on_disk("lat", Some(parent.path())).unwrap();
        std::fs::create_dir(&killed).unwrap();
        std::fs::write(killed.join("ring"), [0; 100]).unwrap();
        for (dry_run, verdict) in [(true, "would be removed"), (false, "removed")] {
            assert!(killed.exists());
            let [run] = <[_; 1]>::try_from(runs(parent.path(), dry_run)).unwrap();
            assert_eq!((run.path, run.bytes), (killed.display().to_string(), 100));
            assert_eq!((run.verdict.as_str(), run.has_failed), (verdict, false));
        }
        assert!(!killed.exists() && living.path("").exists());
        assert!(runs(parent.path(), false).is_empty());
    }
}
