//! Messages between two threads through pipes, beside local sockets.

use super::batches::{self, Curve, density, rate, with_batch};
use crate::cases::Cases;
use crate::document::{Block, Figure, Origin, Section, Table, Words, cell};
use crate::line::{Kind, Line};
use crate::number;
use crate::spread::{Spread, words};
use serde::Deserialize;
use std::collections::BTreeMap;

const SOCKETS: &str = "socketpair";

/// The parameters of a run.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(default)]
struct Case {
    experiment: Option<String>,
    seats: Option<String>,
    batch: Option<u64>,
    transport: Option<String>,
    wait: Option<String>,
}

/// The repetitions of each case of each file, in the order of [`place`].
type Groups<'a> = BTreeMap<(Place, &'a str, Case), Vec<&'a Line>>;

/// Position of a case in tables: by CPUs, then by transport.
type Place = [usize; 2];

const SEATS: [&str; 2] = ["two", "one"];
const TRANSPORTS: [(&str, &str); 4] = [
    (SOCKETS, "local sockets"),
    ("pollset", "pipe, pollset"),
    ("semaphore", "pipe, semaphore"),
    ("socket-signal", "pipe, socket signal"),
];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let groups = cases.grouped(Kind::Pipes, Line::members::<Case>).into_iter();
    let groups: Groups<'_> =
        groups.map(|((case, file), lines)| ((place(&case), file, case), lines)).collect();
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
    let several = cases.has_several_files(Kind::Pipes);
    blocks.extend(table(&groups, several, ping_pong, |case| is(&case.experiment, "ping-pong")));
    blocks.extend(table(&groups, several, one_by_one, |case| {
        is(&case.experiment, "throughput") && case.batch == Some(1)
    }));
    blocks.extend(by_batch(&groups));
    blocks.extend(batches::charts("between two threads on two CPUs", &curves(cases, &groups)));
    Some(Section::new("pipes", "Pipes between two threads", blocks))
}

fn is(member: &Option<String>, name: &str) -> bool {
    member.as_deref() == Some(name)
}

fn place(case: &Case) -> Place {
    let seats = SEATS.iter().position(|name| is(&case.seats, name));
    let transport = TRANSPORTS.iter().position(|(name, _)| is(&case.transport, name));
    [seats.unwrap_or(SEATS.len()), transport.unwrap_or(TRANSPORTS.len())]
}

/// The transport, in the document's words.
fn transport(case: &Case) -> &str {
    let known = TRANSPORTS.iter().find(|(name, _)| is(&case.transport, name));
    let other = || case.transport.as_deref().unwrap_or("unknown");
    known.map_or_else(other, |(_, words)| words)
}

/// The ratio of the sockets' density to that of the group, repetition by repetition.
fn to_sockets(groups: &Groups<'_>, (file, case): (&str, &Case), group: &[&Line]) -> Option<Spread> {
    let beside = |known: &Case| {
        let is_alike = known.experiment == case.experiment && known.seats == case.seats;
        is(&known.transport, SOCKETS) && is_alike && known.batch == case.batch
    };
    let sockets = groups.iter().find(|((_, name, known), _)| *name == file && beside(known))?.1;
    let ratios = group.iter().filter_map(|line| {
        let repetition = line.whole("repetition");
        let beside = sockets.iter().find(|one| one.whole("repetition") == repetition)?;
        let times = beside.real("density_ns")? / line.real("density_ns")?;
        let member = format!("{} density_ns / density_ns", beside.place());
        let figure = Figure::new(times, number::ratio(times), line.id, member);
        times.is_finite().then_some(figure)
    });
    Spread::of(ratios.collect::<Vec<_>>())
}

/// The document's density.
fn reference(group: &[&Line]) -> Option<Figure> {
    group.iter().find_map(|line| line.figure("reference.density_ns", number::time))
}

/// The same ratio of the document's own figures.
fn reference_ratio(groups: &Groups<'_>, case: &Case, group: &[&Line]) -> Option<Figure> {
    let own = reference(group)?;
    let mut sockets = groups.iter().filter(|((.., known), _)| {
        is(&known.transport, SOCKETS) && known.experiment == case.experiment
    });
    let times = sockets.find_map(|(_, group)| reference(group))?.value / own.value;
    let member = "reference.density_ns, of sockets / own";
    Some(Figure::new(times, number::ratio(times), own.line, member))
}

/// Wake-ups of a reader for each message.
fn wakes(group: &[&Line]) -> Option<Spread> {
    Spread::of(group.iter().filter_map(|line| {
        let messages = line.whole("messages").filter(|count| *count > 0)?;
        let share = line.whole("signals")? as f64 / messages as f64;
        Some(Figure::new(share, number::share(share), line.id, "signals / messages"))
    }))
}

fn table(
    groups: &Groups<'_>,
    several: bool,
    caption: &str,
    wanted: fn(&Case) -> bool,
) -> Option<Block> {
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
    for ((_, file, case), group) in groups.iter().filter(|((.., case), _)| wanted(case)) {
        table.rows.push(vec![
            case.seats.as_deref().unwrap_or_default().into(),
            transport(case).into(),
            case.wait.as_deref().unwrap_or_default().into(),
            if several { (*file).into() } else { Words::new() },
            words(density(group.iter().copied())),
            words(rate(group.iter().copied())),
            if is(&case.transport, SOCKETS) {
                Words::new()
            } else {
                words(to_sockets(groups, (file, case), group))
            },
            words(wakes(group)),
            cell(reference(group)),
            cell(reference_ratio(groups, case, group)),
        ]);
    }
    table.block()
}

/// Cases that differ in their batch size only.
type Family<'a> = (Place, &'a str, Case);

fn families<'a>(groups: &Groups<'a>) -> BTreeMap<Family<'a>, Vec<(u64, &'a Line)>> {
    let mut families: BTreeMap<Family<'a>, Vec<(u64, &'a Line)>> = BTreeMap::new();
    for ((place, file, case), group) in groups {
        let Some(batch) = case.batch.filter(|_| is(&case.experiment, "throughput")) else {
            continue;
        };
        let family = families.entry((*place, file, Case { batch: None, ..case.clone() }));
        family.or_default().extend(group.iter().map(|line| (batch, *line)));
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
        let origin = Origin::Own(curves.len());
        curves.extend(batches::curve(family_name(family), origin, found));
    }
    let ring = cases.of_kind(Kind::Rings).filter(|line| line.is("row", "1p-1c"));
    let origin = Origin::Own(curves.len());
    curves.extend(batches::curve("ring, 1P-1C".to_owned(), origin, ring.filter_map(with_batch)));
    curves.extend(batches::sockets(cases.lines));
    let mut told: Vec<String> = Vec::new();
    for ((.., case), group) in groups {
        let name = format!("document: {}", transport(case));
        if let (Some(figure), true) = (reference(group), is(&case.experiment, "throughput"))
            && !told.contains(&name)
        {
            told.push(name.clone());
            curves.push(Curve::mark(name, case.batch.unwrap_or(1), figure));
        }
    }
    curves
}
