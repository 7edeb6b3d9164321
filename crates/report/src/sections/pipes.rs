//! Messages between two threads through pipes, beside local sockets.

use super::batches::{self, Curve, density, rate};
use super::rate::figure;
use crate::cases::Cases;
use crate::document::{Block, Figure, Section, Table, Voice, Words};
use crate::line::{Line, Record};
use crate::number;
use crate::spread::{Spread, words};
use crate::threads::{Pipes, PipesCase};
use std::collections::BTreeMap;

const SOCKETS: &str = "socketpair";

/// One repetition.
type One<'a> = (&'a Line, &'a Pipes);

/// The repetitions of each case of each file, in the order of [`place`].
type Groups<'a> = BTreeMap<(Place, &'a str, &'a PipesCase), Vec<One<'a>>>;

/// Where cases stand in tables: by CPUs, then by what carries the messages.
type Place = [usize; 2];

const SEATS: [&str; 2] = ["two", "one"];
const TRANSPORTS: [(&str, &str); 4] = [
    (SOCKETS, "local sockets"),
    ("pollset", "pipe, pollset"),
    ("semaphore", "pipe, semaphore"),
    ("socket-signal", "pipe, socket signal"),
];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let mut groups = Groups::new();
    for line in cases.lines {
        let Record::Pipes(pipes) = &line.record else { continue };
        groups
            .entry((place(&pipes.case), &line.file, &pipes.case))
            .or_default()
            .push((line, pipes));
    }
    if groups.is_empty() {
        return None;
    }
    let intro = "Messages of eight bytes go from one thread to another. To sockets: how many times \
                 as long local sockets took in the same repetition. Woken: how often a message \
                 found a reader asleep. The document, with its own ratio to its sockets, is the \
                 one on the Y-suite, whose pollset is \"with polling\" and whose semaphore is \
                 \"without\". It does not say whether its ping-pong counts one way or both: here a \
                 message is there and back.";
    let mut blocks = vec![Block::Words(intro.into())];
    let ping_pong = "One message there and back, no other under way";
    let one_by_one = "As many messages as possible, flushed one by one";
    blocks.extend(table(&groups, ping_pong, |case| is(&case.experiment, "ping-pong")));
    blocks.extend(table(&groups, one_by_one, |case| {
        is(&case.experiment, "throughput") && case.batch == Some(1)
    }));
    blocks.extend(by_batch(&groups));
    blocks.extend(batches::charts("between two threads on two CPUs", &curves(cases, &groups)));
    Some(Section::new("pipes", "Pipes between two threads", blocks))
}

fn is(member: &Option<String>, name: &str) -> bool {
    member.as_deref() == Some(name)
}

fn place(case: &PipesCase) -> Place {
    let seats = SEATS.iter().position(|name| is(&case.seats, name));
    let transport = TRANSPORTS.iter().position(|(name, _)| is(&case.transport, name));
    [seats.unwrap_or(SEATS.len()), transport.unwrap_or(TRANSPORTS.len())]
}

/// What carries the messages, in the document's words.
fn transport(case: &PipesCase) -> &str {
    let known = TRANSPORTS.iter().find(|(name, _)| is(&case.transport, name));
    let other = || case.transport.as_deref().unwrap_or("unknown");
    known.map_or_else(other, |(_, words)| words)
}

fn lines<'a>(group: &'a [One<'a>]) -> impl Iterator<Item = &'a Line> {
    group.iter().map(|(line, _)| *line)
}

/// How many times as long local sockets took, repetition by repetition.
fn to_sockets(groups: &Groups<'_>, group: &[One<'_>]) -> Option<Spread> {
    let (file, case) = group.first().map(|(line, pipes)| (&line.file, &pipes.case))?;
    let beside = |known: &PipesCase| {
        let is_alike = known.experiment == case.experiment && known.seats == case.seats;
        is(&known.transport, SOCKETS) && is_alike && known.batch == case.batch
    };
    let sockets = groups.iter().find(|((_, name, known), _)| name == file && beside(known))?.1;
    let ratios = group.iter().filter_map(|(line, pipes)| {
        let repetition = pipes.outcome.repetition;
        let beside = sockets.iter().find(|(_, one)| one.outcome.repetition == repetition)?;
        let times = beside.1.outcome.density_ns? / pipes.outcome.density_ns?;
        let member = format!("{} density_ns / density_ns", beside.0.place());
        let figure = Figure::new(times, number::ratio(times), line.id, member);
        times.is_finite().then_some(figure)
    });
    Spread::of(ratios.collect::<Vec<_>>())
}

/// What the document says, and the line that says so.
fn document(group: &[One<'_>]) -> Words {
    let found = group.iter().find_map(|(line, pipes)| {
        let ns = pipes.published.as_ref()?.density_ns?;
        Some(Figure::new(ns, number::time(ns), line.id, "published.density_ns"))
    });
    found.map(figure).unwrap_or_default()
}

/// How many times as long the document's sockets took.
fn document_ratio(groups: &Groups<'_>, group: &[One<'_>]) -> Words {
    let density = |group: &[One<'_>]| {
        group.iter().find_map(|(line, one)| Some((line.id, one.published.as_ref()?.density_ns?)))
    };
    let Some(((line, own), case)) = density(group).zip(group.first().map(|one| &one.1.case)) else {
        return Words::new();
    };
    let sockets = groups.iter().filter(|((.., known), _)| {
        is(&known.transport, SOCKETS) && known.experiment == case.experiment
    });
    let Some((_, sockets)) = sockets.filter_map(|(_, group)| density(group)).next() else {
        return Words::new();
    };
    let times = sockets / own;
    figure(Figure::new(times, number::ratio(times), line, "published.density_ns, of sockets / own"))
}

/// How often a reader was woken for a message.
fn wakes(group: &[One<'_>]) -> Option<Spread> {
    Spread::of(group.iter().filter_map(|(line, pipes)| {
        let share =
            pipes.signals? as f64 / pipes.outcome.messages.filter(|count| *count > 0)? as f64;
        Some(Figure::new(share, number::share(share), line.id, "signals / messages"))
    }))
}

fn table(groups: &Groups<'_>, caption: &str, wanted: fn(&PipesCase) -> bool) -> Option<Block> {
    let columns = [
        "CPUs",
        "through",
        "wait",
        "file",
        ">time",
        ">rate",
        ">to sockets",
        ">woken",
        ">document",
        ">to its",
    ];
    let mut table = Table::new(caption, &columns);
    let several =
        groups.keys().any(|(_, file, _)| Some(*file) != groups.keys().next().map(|k| k.1));
    for ((_, file, case), group) in groups.iter().filter(|((.., case), _)| wanted(case)) {
        table.rows.push(vec![
            case.seats.as_deref().unwrap_or_default().into(),
            transport(case).into(),
            case.wait.as_deref().unwrap_or_default().into(),
            if several { (*file).into() } else { Words::new() },
            words(density(lines(group))),
            words(rate(lines(group))),
            if is(&case.transport, SOCKETS) {
                Words::new()
            } else {
                words(to_sockets(groups, group))
            },
            words(wakes(group)),
            document(group),
            document_ratio(groups, group),
        ]);
    }
    (!table.rows.is_empty()).then(|| Block::Table(table.without_empty_columns()))
}

/// Cases that differ in nothing but their batch.
type Family<'a> = (Place, &'a str, PipesCase);

fn families<'a>(groups: &Groups<'a>) -> BTreeMap<Family<'a>, Vec<(u64, &'a Line)>> {
    let mut families: BTreeMap<Family<'a>, Vec<(u64, &'a Line)>> = BTreeMap::new();
    for ((place, file, case), group) in groups {
        let Some(batch) = case.batch.filter(|_| is(&case.experiment, "throughput")) else {
            continue;
        };
        let family = families.entry((*place, file, PipesCase { batch: None, ..(*case).clone() }));
        family.or_default().extend(group.iter().map(|(line, _)| (batch, *line)));
    }
    families.retain(|_, lines| lines.iter().any(|(batch, _)| *batch != lines[0].0));
    families
}

/// Such as `pipe, pollset, park`.
fn family_name((.., case): &Family<'_>) -> String {
    let one = if is(&case.seats, "one") { ", one CPU" } else { "" };
    match case.wait.as_deref() {
        Some(wait) if !is(&case.transport, SOCKETS) => format!("{}, {wait}{one}", transport(case)),
        _ => format!("{}{one}", transport(case)),
    }
}

fn by_batch(groups: &Groups<'_>) -> Option<Block> {
    let families = families(groups);
    let mut batches: Vec<u64> = families.values().flatten().map(|(batch, _)| *batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let mut table = Table::new("The time of a message, by batch size", &[">batch"]);
    families.keys().for_each(|family| table.column(&format!(">{}", family_name(family))));
    for batch in batches {
        let mut row = vec![Words::from(batch.to_string())];
        row.extend(families.values().map(|lines| {
            words(density(lines.iter().filter(|one| one.0 == batch).map(|one| one.1)))
        }));
        table.rows.push(row);
    }
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

/// The pipes, the ring if there is one, local sockets, and the document's figures.
fn curves(cases: &Cases<'_>, groups: &Groups<'_>) -> Vec<Curve> {
    let families = families(groups);
    let drawn = |(.., case): &&Family<'_>| !is(&case.transport, SOCKETS) && is(&case.seats, "two");
    let mut curves: Vec<Curve> = Vec::new();
    for family in families.keys().filter(drawn) {
        let found = families[family].iter().copied();
        let voice = Voice::Own(curves.len());
        curves.extend(batches::curve(family_name(family), voice, found));
    }
    let ring = cases.lines.iter().filter_map(|line| match &line.record {
        Record::Rings(rings) if is(&rings.case.row, "1p-1c") => Some((rings.case.batch?, line)),
        _ => None,
    });
    curves.extend(batches::curve("ring, 1P-1C".to_owned(), Voice::Own(curves.len()), ring));
    curves.extend(batches::sockets(cases.lines));
    let mut told: Vec<String> = Vec::new();
    for (line, pipes) in groups.values().flatten() {
        let density = pipes.published.as_ref().and_then(|published| published.density_ns);
        let case = &pipes.case;
        let name = format!("document: {}", transport(case));
        if let (Some(ns), true) = (density, is(&case.experiment, "throughput"))
            && !told.contains(&name)
        {
            told.push(name.clone());
            let figure = Figure::new(ns, number::time(ns), line.id, "published.density_ns");
            curves.push(Curve::mark(name, case.batch.unwrap_or(1), figure));
        }
    }
    curves
}
