//! `lanecast clean`.

use crate::context::DomainArgs;
use crate::output::{print, print_json, print_line};
use crate::table::{render, size};
use lanecast_report::TextTable;
use serde_json::json;
use std::process::ExitCode;

/// Arguments of `clean`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Files of living processes are never touched; every opening of the domain \
    cleans up too.\nExit status: 0 done or nothing to do, 1 something could not be removed.")]
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
    let files = lanecast::shm::clean(&directory, arguments.dry_run)?;
    let verdict = |error: &Option<String>| match error {
        Some(error) => error.clone(),
        None if arguments.dry_run => "would be removed".into(),
        None => "removed".into(),
    };
    if arguments.json {
        let files: Vec<_> = files
            .iter()
            .map(|f| json!({"path": f.path, "bytes": f.bytes, "verdict": verdict(&f.error)}))
            .collect();
        print_json(&files)?;
    } else if files.is_empty() {
        print_line(&format!("nothing to clean in {}", directory.display()))?;
    } else {
        let mut table = TextTable::new(&["file", ">size", "verdict"]);
        for file in &files {
            let path = file.path.display().to_string();
            table.row([path, size(file.bytes), verdict(&file.error)]);
        }
        print(&render(&table))?;
    }
    let failed = files.iter().any(|file| file.error.is_some());
    Ok(ExitCode::from(u8::from(failed)))
}
