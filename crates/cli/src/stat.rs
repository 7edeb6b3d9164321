//! `lanecast stat`.

use crate::context::DomainArgs;
use crate::output::{print, print_json, print_line};
use crate::table::{grouped, render, table};
use lanecast_stats::{StatsReport, files, read};
use serde_json::json;
use std::process::ExitCode;

/// Arguments of `stat`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    domain: DomainArgs,
}

pub(crate) fn run(arguments: &StatArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.domain.directory()?;
    let mut reports = Vec::new();
    for path in files(&directory)? {
        match read(&path) {
            Ok(report) => reports.push(report),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => eprintln!("lanecast: {}: {error}", path.display()),
        }
    }
    reports.sort_by_key(|report| report.process.pid);
    if arguments.json {
        print_json(&reports.iter().map(to_json).collect::<Vec<_>>())?;
    } else {
        print_text(&reports)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(report: &StatsReport) -> serde_json::Value {
    let counters = report.counters.iter().map(|c| json!({"label": c.label, "value": c.value}));
    let errors = report.errors.iter().map(|e| {
        json!({"text": e.text, "count": e.count, "first_unix_ns": e.first_unix_ns,
               "last_unix_ns": e.last_unix_ns})
    });
    json!({"pid": report.process.pid, "name": report.name, "is_alive": report.is_alive,
           "counters": counters.collect::<Vec<_>>(), "errors": errors.collect::<Vec<_>>()})
}

fn print_text(reports: &[StatsReport]) -> std::io::Result<()> {
    let mut counters = table(&[">pid", "process", "counter", ">value"]);
    let mut errors = table(&[">pid", "process", ">times", "error"]);
    for report in reports {
        let (pid, name) = (report.process.pid.to_string(), report.name.clone());
        for counter in &report.counters {
            let row = [pid.clone(), name.clone(), counter.label.clone(), grouped(counter.value)];
            counters.add_row(row);
        }
        for error in &report.errors {
            errors.add_row([pid.clone(), name.clone(), grouped(error.count), error.text.clone()]);
        }
    }
    if counters.row_count() == 0 {
        return print_line("no process has counters here");
    }
    print(&render(&counters))?;
    if errors.row_count() > 0 {
        print(&format!("\n{}", render(&errors)))?;
    }
    Ok(())
}
