//! `lanecast stat`.

mod arguments;
mod losses;
mod session_losses;

pub(crate) use arguments::StatArgs;

use crate::counters::{Process, errors, since};
use crate::printable::{printable, topics};
use crate::table::{columns, grouped, heading, rate, render};
use crate::watch::Block;
use lanecast_report::TextTable;
use lanecast_stats::{Role, StatsSnapshot};
use serde_json::{Value, json};
use std::process::ExitCode;

pub(crate) fn run(arguments: &StatArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.domain.directory()?;
    let mut before = None;
    arguments.watch.run(!arguments.json, || {
        let now = StatsSnapshot::take(&directory)?;
        if arguments.losses {
            return Ok(losses::show(&now, arguments));
        }
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
            format!("no process has {such} in {}\n", printable(&directory.to_string_lossy()))
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
    let mut object = json!({
        "pid": report.process.pid, "name": report.name, "is_alive": report.is_alive,
        "role": report.role.name(),
        "counters": counters.collect::<Vec<_>>(), "errors": errors.collect::<Vec<_>>(),
    });
    if report.role != Role::Process {
        object["session"] = format!("{:016x}", report.session).into();
        object["transport"] = report.transport.as_str().into();
        object["address"] = report.address.as_str().into();
        object["group"] = (!report.group.is_empty()).then_some(report.group.as_str()).into();
        object["topics"] = report.topics.as_slice().into();
        object["opened_unix_ns"] = report.opened_unix_ns.into();
    }
    object
}

/// The processes' counters, those of each session, and the errors.
fn to_text(processes: &[Process], with_rates: bool) -> String {
    let columns = [">pid", "process", "counter", ">value", ">rate"];
    let shown = if with_rates { 5 } else { 4 };
    let mut counters = TextTable::new(&columns[..shown]);
    let mut errors = TextTable::new(&[">pid", "process", ">times", "error"]);
    for process in processes {
        let report = &process.report;
        let (pid, name) = (report.process.pid.to_string(), printable(&report.name));
        if report.role == Role::Process {
            for row in rows(process) {
                let row = [pid.clone(), name.clone()].into_iter().chain(row);
                counters.row(row.take(shown));
            }
        }
        for error in &report.errors {
            let text = printable(&error.text);
            errors.row([pid.clone(), name.clone(), grouped(error.count), text]);
        }
    }
    let filled = |table: &TextTable| (!table.is_empty()).then(|| render(table));
    let sessions = processes.iter().filter(|process| !process.report.counters.is_empty());
    let sessions = sessions.filter_map(|process| session(process, &columns[2..shown]));
    let blocks = filled(&counters).into_iter().chain(sessions).chain(filled(&errors));
    blocks.collect::<Vec<_>>().join("\n")
}

/// A session's counters below its name; nothing for a process as a whole.
fn session(process: &Process, titles: &[&str]) -> Option<String> {
    let (report, subject) = (&process.report, printable(&process.subject()?));
    let mut counters = TextTable::new(titles);
    for row in rows(process) {
        counters.row(row.into_iter().take(titles.len()));
    }
    let (pid, name) = (report.process.pid, printable(&report.name));
    let topics = topics(&report.topics, columns());
    let heading = heading([subject, topics, format!("(pid {pid} {name})")]);
    Some(format!("{heading}\n{}", render(&counters)))
}

fn rows(process: &Process) -> impl Iterator<Item = [String; 3]> {
    process.report.counters.iter().enumerate().map(|(index, counter)| {
        let growth = process.rate(index).map_or_else(|| "-".into(), rate);
        [printable(&counter.label), grouped(counter.value), growth]
    })
}
