//! The machine, and the commands that ran on it.

use crate::cases::Cases;
use crate::document::{Block, Section, Table, Words};
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

/// The first line of each machine. Machines differ if a property does; the load may change.
pub(super) fn machines(lines: &[Line]) -> Vec<&Line> {
    let mut machines: Vec<&Line> = Vec::new();
    for line in lines.iter().filter(|line| line.at("host").is_some()) {
        let is_same =
            |known: &&Line| PROPERTIES.iter().all(|(_, path, _)| known.at(path) == line.at(path));
        if !machines.iter().any(is_same) {
            machines.push(line);
        }
    }
    machines
}

/// A property of a machine: its name, its member, and how a number is shown.
type Property = (&'static str, &'static str, Option<fn(f64) -> Quantity>);

const PROPERTIES: [Property; 12] = [
    ("processor", "host.cpu", None),
    ("architecture", "host.architecture", None),
    ("CPUs", "host.cpus", Some(number::whole)),
    ("threads per core", "host.threads_per_core", Some(number::whole)),
    ("memory nodes", "host.numa_nodes", Some(number::whole)),
    ("L2 cache", "host.l2_bytes", Some(memory)),
    ("L3 cache", "host.l3_bytes", Some(memory)),
    ("memory", "host.memory_bytes", Some(memory)),
    ("kernel", "host.kernel", None),
    ("hypervisor", "host.hypervisor", None),
    ("frequency governor", "host.governor", None),
    ("clock source", "host.clock_source", None),
];

fn memory(bytes: f64) -> Quantity {
    number::bytes(bytes as u64)
}

fn table(machines: &[&Line]) -> Table {
    let mut table = Table::new("The machine", &["property"]);
    for line in machines {
        table.column(if machines.len() == 1 { "value" } else { &line.file });
    }
    for (name, path, show) in PROPERTIES {
        let cells = machines.iter().map(|line| match show {
            Some(show) => line.cell(path, show),
            None => line.text(path).map(Words::from).unwrap_or_default(),
        });
        let cells: Vec<Words> = cells.collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            table.rows.push([vec![Words::from(name)], cells].concat());
        }
    }
    table
}

/// Each command once, with a link to its first line.
fn commands(lines: &[Line]) -> Vec<Words> {
    let mut commands: Vec<(&str, Vec<&Line>)> = Vec::new();
    for line in lines {
        let Some(command) = line.text("command") else { continue };
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
        let version = first.text("version").map(|version| format!("version {version}"));
        let moment = first.whole("started_unix_ns").map(|at| format!("{} UTC", number::moment(at)));
        let said: Vec<String> = [version, moment].into_iter().flatten().collect();
        if said.is_empty() { words } else { words.quiet(format!(" · {}", said.join(", "))) }
    });
    words.collect()
}
