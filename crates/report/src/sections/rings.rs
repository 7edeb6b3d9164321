//! Messages between threads through rings of every shape.

use super::batches::{self, Curve, density, rate};
use super::rate::figure;
use crate::cases::Cases;
use crate::document::{Block, Figure, Section, Table, Voice, Words};
use crate::line::{Line, Record};
use crate::number;
use crate::spread::{Spread, words};
use crate::threads::{Outcome, PublishedRate, Rings, RingsCase, Thread};
use std::collections::BTreeMap;

/// The repetitions of each case of each file, in the order of the rows.
type Groups<'a> = BTreeMap<(usize, &'a str, &'a RingsCase), Vec<(&'a Line, &'a Rings)>>;

/// The rows of the table, and what they are called there.
const ROWS: [(&str, &str); 6] = [
    ("1p-1c", "1P-1C"),
    ("1p-1c-singly", "1P-1C, taken singly"),
    ("1p-3c-multicast", "1P-3C multicast"),
    ("1p-3c-diamond", "1P-3C diamond"),
    ("2p-2c", "2P-2C"),
    ("4p-4c", "4P-4C"),
];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let mut groups = Groups::new();
    for line in cases.lines {
        let Record::Rings(rings) = &line.record else { continue };
        let key = (place(&rings.case), line.file.as_str(), &rings.case);
        groups.entry(key).or_default().push((line, rings));
    }
    if groups.is_empty() {
        return None;
    }
    let intro = "Producers send as many messages as they can, consumers check each of them. AMPS \
                 and LMAX are the figures of the AMPS slides, of another machine, which do not \
                 say how many messages were published together.";
    let tables = [table(&groups), places(&groups)].map(Block::Table);
    let mut blocks: Vec<Block> = [Block::Words(intro.into())].into_iter().chain(tables).collect();
    blocks.extend(batches::charts("through rings", &curves(cases, &groups)));
    Some(Section::new("rings", "Rings between threads", blocks))
}

fn place(case: &RingsCase) -> usize {
    let known = ROWS.iter().position(|(row, _)| Some(*row) == case.row.as_deref());
    known.unwrap_or(ROWS.len())
}

fn name(case: &RingsCase) -> String {
    let named = ROWS.get(place(case)).map(|(_, name)| (*name).to_owned());
    named.or_else(|| case.row.clone()).unwrap_or_else(|| "unknown".to_owned())
}

fn table(groups: &Groups<'_>) -> Table {
    let columns =
        ["row", ">batch", "file", ">rate", ">time", ">AMPS", ">to AMPS", ">LMAX", ">to LMAX"];
    let mut table = Table::new("Messages a second, beside the slides' figures", &columns);
    let several =
        groups.keys().any(|(_, file, _)| Some(*file) != groups.keys().next().map(|k| k.1));
    for ((_, file, case), group) in groups {
        let lines = || group.iter().map(|(line, _)| *line);
        let found = rate(lines());
        let amps = document(group, "rate", |published| published.rate);
        let lmax = document(group, "lmax_rate", |published| published.lmax_rate);
        table.rows.push(vec![
            name(case).into(),
            count(case.batch),
            if several { (*file).into() } else { Words::new() },
            words(found.clone()),
            words(density(lines())),
            amps.clone().map(figure).unwrap_or_default(),
            times(&found, &amps),
            lmax.clone().map(figure).unwrap_or_default(),
            times(&found, &lmax),
        ]);
    }
    table.without_empty_columns()
}

/// Where the threads of each row were, whatever the batch.
fn places(groups: &Groups<'_>) -> Table {
    let columns =
        ["row", ">size", ">capacity", "wait", "threads", "producers → consumers", "nodes"];
    let mut table =
        Table::new("The threads, and the CPUs and memory nodes that they had", &columns);
    let mut told = Vec::new();
    for ((.., case), group) in groups {
        let any_batch = RingsCase { batch: None, ..(*case).clone() };
        if told.contains(&any_batch) {
            continue;
        }
        told.push(any_batch);
        let outcome = &group[0].1.outcome;
        table.rows.push(vec![
            name(case).into(),
            case.size.map(|size| Words::from(format!("{size} B"))).unwrap_or_default(),
            count(case.capacity),
            case.wait.as_deref().unwrap_or_default().into(),
            threads(outcome, case).into(),
            cpus(outcome).into(),
            nodes(outcome).into(),
        ]);
    }
    table.without_empty_columns()
}

fn count(number: Option<u64>) -> Words {
    number.map(|number| Words::from(number.to_string())).unwrap_or_default()
}

/// What the slides say, and the line that says so.
fn document(
    group: &[(&Line, &Rings)],
    member: &str,
    pick: fn(&PublishedRate) -> Option<f64>,
) -> Option<Figure> {
    group.iter().find_map(|(line, rings)| {
        let value = pick(rings.published.as_ref()?)?;
        Some(Figure::new(value, number::rate(value), line.id, format!("published.{member}")))
    })
}

fn times(found: &Option<Spread>, document: &Option<Figure>) -> Words {
    let Some((found, document)) = found.as_ref().zip(document.as_ref()) else {
        return Words::new();
    };
    let times = found.median.value / document.value;
    let member = format!("rate / {}", document.member);
    let shown = Figure::new(times, number::ratio(times), found.median.line, member);
    if times.is_finite() { figure(shown) } else { Words::new() }
}

/// Such as `4 on 2 CPUs, split`: said of every row, because threads that take turns are slower.
fn threads(outcome: &Outcome, case: &RingsCase) -> String {
    let mut cpus: Vec<u64> = outcome.threads().iter().filter_map(|thread| thread.cpu).collect();
    let threads = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    if threads == 0 {
        return String::new();
    }
    let cpus = number::plural(cpus.len(), "CPU", "CPUs");
    match case.placement.as_deref() {
        Some("own") | None => format!("{threads} on {cpus}"),
        Some(placement) => format!("{threads} on {cpus}, {placement}"),
    }
}

/// The CPUs of the producers, then those of the consumers: `1 → 0 0 0`.
fn cpus(outcome: &Outcome) -> String {
    let of = |role: &str| {
        let threads = outcome.threads().iter().filter(|one| one.role.as_deref() == Some(role));
        let cpus = threads.filter_map(|thread| Some(thread.cpu?.to_string()));
        cpus.collect::<Vec<_>>().join(" ")
    };
    let (producers, consumers) = (of("producer"), of("consumer"));
    if producers.is_empty() { String::new() } else { format!("{producers} → {consumers}") }
}

fn nodes(outcome: &Outcome) -> String {
    let mut nodes: Vec<u64> =
        outcome.threads().iter().filter_map(|thread: &Thread| thread.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// A curve for each row, local sockets if there are any, and the slides' figures, which say
/// nothing of batches, at the left.
fn curves(cases: &Cases<'_>, groups: &Groups<'_>) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (at, (_, name)) in ROWS.iter().enumerate() {
        let lines = groups.iter().filter(|((place, ..), _)| *place == at);
        let lines = lines.flat_map(|((.., case), group)| {
            group.iter().filter_map(|(line, _)| Some((case.batch?, *line)))
        });
        curves.extend(batches::curve((*name).to_owned(), Voice::Own(at), lines));
    }
    curves.extend(batches::sockets(cases.lines));
    for (at, (_, name)) in ROWS.iter().enumerate() {
        let of_row = groups.iter().find(|((place, ..), _)| *place == at);
        let published = of_row.and_then(|(_, group)| document(group, "rate", |one| one.rate));
        if let Some(rate) = published.filter(|rate| rate.value > 0.0) {
            let ns = 1e9 / rate.value;
            let figure = Figure::new(ns, number::time(ns), rate.line, "1 / published.rate");
            curves.push(Curve::mark(format!("AMPS slides: {name}"), 1, figure));
        }
    }
    curves
}
