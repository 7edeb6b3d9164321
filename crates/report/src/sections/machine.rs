//! The machine, and the commands that ran on it.

use super::rate::figure;
use crate::cases::Cases;
use crate::conditions::Host;
use crate::document::{Block, Figure, Section, Table, Words};
use crate::line::Line;
use crate::number::{self, Quantity};

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let machines = machines(cases.lines);
    let mut blocks: Vec<Block> = Vec::new();
    if !machines.is_empty() {
        blocks.push(Block::Table(table(&machines)));
    }
    let commands = commands(cases.lines);
    if !commands.is_empty() {
        blocks.push(Block::Commands(commands));
    }
    (!blocks.is_empty()).then(|| Section::new("machine", "Machine and commands", blocks))
}

/// Each machine once, with the first line from it.
pub(super) fn machines(lines: &[Line]) -> Vec<(&Line, &Host)> {
    let mut machines: Vec<(&Line, &Host)> = Vec::new();
    for line in lines {
        let Some(host) = &line.head.host else { continue };
        if !machines.iter().any(|(_, known)| known.is_same_machine(host)) {
            machines.push((line, host));
        }
    }
    machines
}

type Property = (&'static str, fn(&Host) -> Option<Shown>);

/// A property of a machine: in words, or a number of the member that is named.
enum Shown {
    Text(String),
    Number(f64, Quantity, &'static str),
}

const PROPERTIES: [Property; 12] = [
    ("processor", |host| Some(Shown::Text(host.cpu.clone()?))),
    ("architecture", |host| Some(Shown::Text(host.architecture.clone()?))),
    ("CPUs", |host| count(host.cpus, "host.cpus")),
    ("threads per core", |host| count(host.threads_per_core, "host.threads_per_core")),
    ("memory nodes", |host| count(host.numa_nodes, "host.numa_nodes")),
    ("L2 cache", |host| memory(host.l2_bytes, "host.l2_bytes")),
    ("L3 cache", |host| memory(host.l3_bytes, "host.l3_bytes")),
    ("memory", |host| memory(host.memory_bytes, "host.memory_bytes")),
    ("kernel", |host| Some(Shown::Text(host.kernel.clone()?))),
    ("hypervisor", |host| Some(Shown::Text(host.hypervisor.clone()?))),
    ("frequency governor", |host| Some(Shown::Text(host.governor.clone()?))),
    ("clock source", |host| Some(Shown::Text(host.clock_source.clone()?))),
];

fn count(value: Option<u64>, member: &'static str) -> Option<Shown> {
    value.map(|value| Shown::Number(value as f64, number::count(value), member))
}

fn memory(value: Option<u64>, member: &'static str) -> Option<Shown> {
    value.map(|value| Shown::Number(value as f64, number::bytes(value), member))
}

fn table(machines: &[(&Line, &Host)]) -> Table {
    let mut table = Table::new("The machine", &["property"]);
    for (line, _) in machines {
        table.column(if machines.len() == 1 { "value" } else { &line.file });
    }
    for (name, property) in PROPERTIES {
        let cells: Vec<Words> = machines
            .iter()
            .map(|(line, host)| match property(host) {
                Some(Shown::Text(text)) => Words::from(text),
                Some(Shown::Number(value, shown, member)) => {
                    figure(Figure::new(value, shown, line.id, member))
                }
                None => Words::new(),
            })
            .collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            table.rows.push([vec![Words::from(name)], cells].concat());
        }
    }
    table
}

/// Each command once, with the lines it wrote.
fn commands(lines: &[Line]) -> Vec<Words> {
    let mut commands: Vec<(&str, Vec<&Line>)> = Vec::new();
    for line in lines {
        let Some(command) = line.head.command.as_deref() else { continue };
        match commands.iter_mut().find(|(known, _)| *known == command) {
            Some((_, lines)) => lines.push(line),
            None => commands.push((command, vec![line])),
        }
    }
    let words = commands.into_iter().map(|(command, lines)| {
        let first = lines[0];
        let words = Words::new().code(command).text(" ").line(first.id, first.place());
        let more = lines.len() - 1;
        let words = if more == 0 { words } else { words.quiet(format!(" and {more} more")) };
        let version = first.head.version.as_deref().map(|version| format!("version {version}"));
        let moment = first.head.started_unix_ns.map(|at| format!("{} UTC", number::moment(at)));
        let said: Vec<String> = [version, moment].into_iter().flatten().collect();
        if said.is_empty() { words } else { words.quiet(format!(" · {}", said.join(", "))) }
    });
    words.collect()
}
