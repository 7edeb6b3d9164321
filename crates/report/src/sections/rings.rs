//! Messages between threads through rings of every shape.

use super::batches::{self, Curve, density, rate};
use crate::cases::Cases;
use crate::document::{Block, Figure, Origin, Section, Table, Words, cell};
use crate::line::{Kind, Line};
use crate::number;
use crate::spread::{times, words};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The parameters of a run.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(default)]
struct Case {
    row: Option<String>,
    batch: Option<u64>,
    size: Option<u64>,
    capacity: Option<u64>,
    wait: Option<String>,
    placement: Option<String>,
}

/// The repetitions of each case of each file, in the order of [`ROWS`].
type Groups<'a> = BTreeMap<(usize, &'a str, Case), Vec<&'a Line>>;

/// The values of `row` in the order of the table, with the names there.
const ROWS: [(&str, &str); 6] = [
    ("1p-1c", "1P-1C"),
    ("1p-1c-singly", "1P-1C, taken singly"),
    ("1p-3c-multicast", "1P-3C multicast"),
    ("1p-3c-diamond", "1P-3C diamond"),
    ("2p-2c", "2P-2C"),
    ("4p-4c", "4P-4C"),
];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let groups = cases.grouped(Kind::Rings, Line::members::<Case>).into_iter();
    let groups: Groups<'_> =
        groups.map(|((case, file), lines)| ((place(&case), file, case), lines)).collect();
    if groups.is_empty() {
        return None;
    }
    let intro = "Producers send as many messages as they can, consumers check each of them. AMPS \
                 and LMAX are the figures of the AMPS slides, of another machine, which do not \
                 say how many messages were published together.";
    let several = cases.has_several_files(Kind::Rings);
    let tables = [table(&groups, several), places(&groups)].map(Block::Table);
    let mut blocks: Vec<Block> = [Block::Words(intro.into())].into_iter().chain(tables).collect();
    blocks.extend(batches::charts("through rings", &curves(cases, &groups)));
    Some(Section::new("rings", "Rings between threads", blocks))
}

fn place(case: &Case) -> usize {
    let known = ROWS.iter().position(|(row, _)| Some(*row) == case.row.as_deref());
    known.unwrap_or(ROWS.len())
}

fn name(case: &Case) -> String {
    let named = ROWS.get(place(case)).map(|(_, name)| (*name).to_owned());
    named.or_else(|| case.row.clone()).unwrap_or_else(|| "unknown".to_owned())
}

fn table(groups: &Groups<'_>, several: bool) -> Table {
    let columns =
        ["row", ">batch", "file", ">rate", ">time", ">AMPS", ">to AMPS", ">LMAX", ">to LMAX"];
    let mut table = Table::new("Messages a second, beside the slides' figures", &columns);
    for ((_, file, case), group) in groups {
        let found = rate(group.iter().copied());
        let amps = reference(group, "reference.rate");
        let lmax = reference(group, "reference.lmax_rate");
        table.rows.push(vec![
            name(case).into(),
            count(case.batch),
            if several { (*file).into() } else { Words::new() },
            words(found.clone()),
            words(density(group.iter().copied())),
            cell(amps.clone()),
            times(found.as_ref(), amps.as_ref()),
            cell(lmax.clone()),
            times(found.as_ref(), lmax.as_ref()),
        ]);
    }
    table.without_empty_columns()
}

/// The CPUs and nodes of the threads, for each row once: all its batches run in the same places.
fn places(groups: &Groups<'_>) -> Table {
    let columns =
        ["row", ">size", ">capacity", "wait", "threads", "producers → consumers", "nodes"];
    let mut table =
        Table::new("The threads, and the CPUs and memory nodes that they had", &columns);
    let mut told = Vec::new();
    for ((.., case), group) in groups {
        let any_batch = Case { batch: None, ..case.clone() };
        if told.contains(&any_batch) {
            continue;
        }
        told.push(any_batch);
        let line = group[0];
        table.rows.push(vec![
            name(case).into(),
            line.size("size"),
            count(case.capacity),
            case.wait.as_deref().unwrap_or_default().into(),
            threads(line, case).into(),
            cpus(line).into(),
            distinct(line, "node").iter().map(u64::to_string).collect::<Vec<_>>().join(" ").into(),
        ]);
    }
    table.without_empty_columns()
}

fn count(number: Option<u64>) -> Words {
    number.map(|number| Words::from(number.to_string())).unwrap_or_default()
}

/// A reference figure of the slides.
fn reference(group: &[&Line], path: &str) -> Option<Figure> {
    group.iter().find_map(|line| line.figure(path, number::rate))
}

/// Such as `4 on 2 CPUs, split`. Threads that share a CPU take turns and are slower.
fn threads(line: &Line, case: &Case) -> String {
    let threads = of_threads(line, "cpu").count();
    if threads == 0 {
        return String::new();
    }
    let cpus = number::plural(distinct(line, "cpu").len(), "CPU", "CPUs");
    match case.placement.as_deref() {
        Some("own") | None => format!("{threads} on {cpus}"),
        Some(placement) => format!("{threads} on {cpus}, {placement}"),
    }
}

/// The CPUs of the producers, then those of the consumers: `1 → 0 0 0`.
fn cpus(line: &Line) -> String {
    let of = |role: &str| {
        let threads = 0..line.list("threads").len();
        let threads = threads.filter(|at| line.is(&format!("threads[{at}].role"), role));
        let cpus = threads.filter_map(|at| line.whole(&format!("threads[{at}].cpu")));
        cpus.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(" ")
    };
    let (producers, consumers) = (of("producer"), of("consumer"));
    if producers.is_empty() { String::new() } else { format!("{producers} → {consumers}") }
}

/// The member `name` of all threads.
fn of_threads<'a>(line: &'a Line, name: &'a str) -> impl Iterator<Item = u64> + 'a {
    (0..line.list("threads").len())
        .filter_map(move |at| line.whole(&format!("threads[{at}].{name}")))
}

fn distinct(line: &Line, name: &str) -> Vec<u64> {
    let mut found: Vec<u64> = of_threads(line, name).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// A curve for each row, local sockets if there are any, and the slides' figures at the left: they
/// are given without a batch size.
fn curves(cases: &Cases<'_>, groups: &Groups<'_>) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (at, (_, name)) in ROWS.iter().enumerate() {
        let lines = groups.iter().filter(|((place, ..), _)| *place == at);
        let lines =
            lines.flat_map(|(_, group)| group.iter().filter_map(|line| batches::with_batch(line)));
        curves.extend(batches::curve((*name).to_owned(), Origin::Own(at), lines));
    }
    curves.extend(batches::sockets(cases.lines));
    for (at, (_, name)) in ROWS.iter().enumerate() {
        let of_row = groups.iter().find(|((place, ..), _)| *place == at);
        let rate = of_row.and_then(|(_, group)| reference(group, "reference.rate"));
        if let Some(rate) = rate.filter(|rate| rate.value > 0.0) {
            let ns = 1e9 / rate.value;
            let figure = Figure::new(ns, number::time(ns), rate.line, "1 / reference.rate");
            curves.push(Curve::mark(format!("AMPS slides: {name}"), 1, figure));
        }
    }
    curves
}
