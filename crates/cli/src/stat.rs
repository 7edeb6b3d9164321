//! `lanecast stat`.

use crate::context::DomainArgs;
use crate::counters::{Process, errors, since};
use crate::printable::printable;
use crate::table::{grouped, rate, render, table};
use crate::watch::{Block, WatchArgs};
use lanecast_stats::Look;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `stat`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatArgs {
    /// Show only processes, counters and errors whose name contains this, or a process's number
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Print one JSON array; with --watch, one for each look, on a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    watch: WatchArgs,

    #[command(flatten)]
    domain: DomainArgs,
}

pub(crate) fn run(arguments: &StatArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.domain.directory()?;
    let mut before = None;
    arguments.watch.run(!arguments.json, || {
        let now = Look::take(&directory)?;
        let mut processes = since(before.as_ref(), &now);
        if let Some(text) = &arguments.filter {
            processes.iter_mut().for_each(|process| process.retain(text));
            processes.retain(|process| !process.is_empty());
        }
        let with_rates = arguments.watch.is_on();
        let text = if arguments.json {
            arguments.watch.json_line(processes.iter().map(|p| to_json(p, with_rates)))
        } else if processes.is_empty() {
            let such = if now.reports.is_empty() { "counters" } else { "such counters" };
            format!("no process has {such} here\n")
        } else {
            to_text(&processes, with_rates)
        };
        let errors = errors(&now);
        before = Some(now);
        Ok(Block { text, errors })
    })
}

fn to_json(process: &Process, with_rates: bool) -> Value {
    let report = &process.report;
    let counters = report.counters.iter().enumerate().map(|(index, counter)| {
        let mut value = json!({"label": counter.label, "value": counter.value});
        if with_rates {
            value["per_second"] = process.rate(index).into();
        }
        value
    });
    let errors = report.errors.iter().map(|e| {
        json!({"text": e.text, "count": e.count, "first_unix_ns": e.first_unix_ns,
               "last_unix_ns": e.last_unix_ns})
    });
    json!({"pid": report.process.pid, "name": report.name, "is_alive": report.is_alive,
           "counters": counters.collect::<Vec<_>>(), "errors": errors.collect::<Vec<_>>()})
}

fn to_text(processes: &[Process], with_rates: bool) -> String {
    let columns = [">pid", "process", "counter", ">value", ">rate"];
    let shown = if with_rates { 5 } else { 4 };
    let mut counters = table(&columns[..shown]);
    let mut errors = table(&[">pid", "process", ">times", "error"]);
    for process in processes {
        let report = &process.report;
        let (pid, name) = (report.process.pid.to_string(), printable(&report.name));
        for (index, counter) in report.counters.iter().enumerate() {
            let growth = process.rate(index).map_or_else(|| "-".into(), rate);
            let label = printable(&counter.label);
            let row = [pid.clone(), name.clone(), label, grouped(counter.value), growth];
            counters.add_row(row.into_iter().take(shown));
        }
        for error in &report.errors {
            let text = printable(&error.text);
            errors.add_row([pid.clone(), name.clone(), grouped(error.count), text]);
        }
    }
    let tables = [counters, errors];
    let filled = tables.iter().filter(|table| table.row_count() > 0);
    filled.map(render).collect::<Vec<_>>().join("\n")
}
