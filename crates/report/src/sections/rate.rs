//! The experiments that ask how many messages a second there are.

use super::chart;
use crate::axis;
use crate::cases::{Cases, EXPERIMENTS, Group};
use crate::document::{Block, Figure, Marks, Origin, Point, Section, Series, Table, Words, cell};
use crate::number;
use crate::sections::rivals;
use crate::since::Since;
use crate::spread::{Spread, words};

/// The rate by message size.
pub(super) fn size(cases: &Cases<'_>) -> Option<Section> {
    let groups = cases.of("size");
    if groups.is_empty() {
        return skipped(cases, "size", "Message sizes");
    }
    let peers = rivals::rates(cases);
    let mut table = Table::new(
        "The most messages a second, by message size",
        &[">size", "file", ">rate", ">document", ">to the document"],
    );
    peers.iter().for_each(|peer| table.column(&format!(">{}", peer.name)));
    for group in groups {
        let mut row = start(cases, group, vec![bytes(group)]);
        row.extend(peers.iter().map(|peer| peer.cell(group.case.size)));
        table.rows.push(row);
    }
    let intro = "The publisher sends as fast as it can, one subscriber does as little as it can. \
                 Each figure is the median of its repetitions, with the range below it.";
    let chart = size_chart(cases, groups, &peers);
    let beside = " Beside other libraries' rates, ×: how many times as much lanecast's was when \
                  both ran in turns.";
    let intro = if peers.is_empty() { intro.to_owned() } else { format!("{intro}{beside}") };
    let blocks = vec![
        Block::Words(intro.into()),
        Block::Table(table.without_empty_columns()),
        Block::Charts(chart.into_iter().collect()),
    ];
    Some(Section::new("size", "Message sizes", blocks))
}

fn size_chart(
    cases: &Cases<'_>,
    groups: &[Group<'_>],
    peers: &[rivals::Peer],
) -> Option<crate::document::Chart> {
    let mut sizes: Vec<u64> = groups.iter().filter_map(|group| group.case.size).collect();
    sizes.extend(peers.iter().flat_map(|peer| peer.rates.keys()));
    sizes.sort_unstable();
    sizes.dedup();
    let place = |size: Option<u64>| sizes.iter().position(|known| Some(*known) == size);
    let mut series: Vec<Series> = Vec::new();
    for set in 0..cases.sets.len() {
        let own = groups.iter().filter(|group| group.set == set);
        let found = own.filter_map(|group| Some((place(group.case.size)?, group.rate()?.median)));
        let name = if cases.sets.len() > 1 { &cases.sets[set] } else { "lanecast" };
        series.push(dotted(name, Origin::Own(set), found));
    }
    let published =
        groups.iter().filter_map(|group| Some((place(group.case.size)?, document(group)?)));
    series.push(dotted("document", Origin::Document, published));
    for (at, peer) in peers.iter().enumerate() {
        let found = peer
            .rates
            .iter()
            .filter_map(|(size, rate)| Some((place(Some(*size))?, rate.0.median.clone())));
        series.push(dotted(&peer.name, Origin::Peer(at), found));
    }
    series.retain(|series| !series.points().is_empty());
    let names = sizes.iter().map(u64::to_string).collect();
    chart::rates("Rate by message size", axis::places("bytes", names), series)
}

/// A series of figures at places; the same place is taken once.
fn dotted(name: &str, origin: Origin, figures: impl Iterator<Item = (usize, Figure)>) -> Series {
    let mut points: Vec<Point> = figures
        .map(|(at, figure)| Point {
            x: at as f64,
            y: figure.value,
            line: figure.line,
            title: format!("{name}: {}", figure.shown.text()),
        })
        .collect();
    points.dedup_by_key(|point| point.x as usize);
    Series { name: name.to_owned(), origin, marks: Marks::Dotted(points) }
}

/// The rate by work per message.
pub(super) fn workload(cases: &Cases<'_>) -> Option<Section> {
    let groups = cases.of("workload");
    if groups.is_empty() {
        return skipped(cases, "workload", "Receiver workload");
    }
    let (mut sizes, mut spins): (Vec<_>, Vec<_>) =
        groups.iter().map(|group| (group.case.size, group.case.spin)).unzip();
    for list in [&mut sizes, &mut spins] {
        list.sort_unstable();
        list.dedup();
    }
    let mut table = Table::new("Messages a second, by the subscriber's work", &[">spin", "file"]);
    for size in &sizes {
        table.column(&format!(">{} B", size.unwrap_or(0)));
        table.column(">document");
    }
    for spin in &spins {
        for set in 0..cases.sets.len() {
            let mut row =
                vec![Words::from(spin.unwrap_or(0).to_string()), Words::from(cases.set_name(set))];
            if cases.sets.len() == 1 {
                row[1] = Words::new();
            }
            for size in &sizes {
                let group = groups.iter().find(|group| {
                    group.set == set && group.case.spin == *spin && group.case.size == *size
                });
                row.push(group.map(|group| words(group.rate())).unwrap_or_default());
                row.push(cell(group.and_then(document)));
            }
            if row[2..].iter().any(|cell| !cell.is_empty()) {
                table.rows.push(row);
            }
        }
    }
    let intro = "The subscriber runs so many empty iterations for each message. A little work can \
                 make the stream faster, because publisher and subscriber then no longer want the \
                 same cache line at the same moment.";
    let blocks = vec![
        Block::Words(intro.into()),
        Block::Table(table.without_empty_columns()),
        Block::Charts(workload_chart(cases, groups, &sizes, &spins).into_iter().collect()),
    ];
    Some(Section::new("workload", "Receiver workload", blocks))
}

fn workload_chart(
    cases: &Cases<'_>,
    groups: &[Group<'_>],
    sizes: &[Option<u64>],
    spins: &[Option<u64>],
) -> Option<crate::document::Chart> {
    let mut series = Vec::new();
    for set in 0..cases.sets.len() {
        for size in sizes {
            let own = groups.iter().filter(|group| group.set == set && group.case.size == *size);
            let found = own.filter_map(|group| {
                let place = spins.iter().position(|spin| *spin == group.case.spin)?;
                Some((place, group.rate()?.median))
            });
            let name = format!("{} B {}", size.unwrap_or(0), cases.set_name(set));
            series.push(dotted(name.trim_end(), Origin::Own(series.len()), found));
        }
    }
    let names = spins.iter().map(|spin| spin.unwrap_or(0).to_string()).collect();
    chart::rates("Rate by work per message", axis::places("empty iterations", names), series)
}

/// A subscriber that is slower than the publisher.
pub(super) fn slow(cases: &Cases<'_>) -> Option<Section> {
    let groups = cases.of("slow");
    if groups.is_empty() {
        return skipped(cases, "slow", "Slow receiver");
    }
    let mut table = Table::new(
        "A subscriber that works long on each message",
        &[">size", ">spin", "file", ">rate", ">document", ">to the document", ">lost"],
    );
    for group in groups {
        let spin = Words::from(group.case.spin.unwrap_or(0).to_string());
        let mut row = start(cases, group, vec![bytes(group), spin]);
        row.push(lost(group));
        table.rows.push(row);
    }
    let intro = "The publisher is held back to the subscriber's pace, and nothing is lost.";
    let blocks = vec![Block::Words(intro.into()), Block::Table(table.without_empty_columns())];
    Some(Section::new("slow", "Slow receiver", blocks))
}

/// The copying call beside the one that writes in place.
pub(super) fn generic(cases: &Cases<'_>) -> Option<Section> {
    let intro = "The generic call copies a message that lies somewhere else; with a claim it is \
                 written where subscribers read it.";
    varied(cases, "generic", "Generic call", intro)
}

/// Several subscribers of one publisher.
pub(super) fn receivers(cases: &Cases<'_>) -> Option<Section> {
    let intro = "Each subscriber gets every message, and the slowest sets the pace.";
    varied(cases, "receivers", "Several receivers", intro)
}

/// Publisher and subscriber on different memory nodes.
pub(super) fn numa(cases: &Cases<'_>) -> Option<Section> {
    let intro = "Publisher and subscriber run on CPUs of different memory nodes.";
    varied(cases, "numa", "Across memory nodes", intro)
}

/// Experiments that this version does not know by name.
pub(super) fn others(cases: &Cases<'_>) -> Option<Section> {
    let mut unknown: Vec<&str> = cases.all().map(|(experiment, _)| experiment).collect();
    unknown.dedup();
    unknown.retain(|experiment| !EXPERIMENTS.contains(experiment));
    if unknown.is_empty() {
        return None;
    }
    let blocks = unknown
        .iter()
        .map(|experiment| Block::Table(case_table(cases, cases.of(experiment), experiment)));
    Some(Section::new("others", "Other experiments", blocks.collect()))
}

fn varied(
    cases: &Cases<'_>,
    experiment: &'static str,
    title: &'static str,
    intro: &str,
) -> Option<Section> {
    let groups = cases.of(experiment);
    if groups.is_empty() {
        return skipped(cases, experiment, title);
    }
    let table = case_table(cases, groups, title);
    let blocks = vec![Block::Words(intro.into()), Block::Table(table)];
    Some(Section::new(experiment, title, blocks))
}

/// A table with a column for each parameter that differs between cases.
fn case_table(cases: &Cases<'_>, groups: &[Group<'_>], caption: &str) -> Table {
    let mut table = Table::new(
        caption,
        &[
            ">size",
            ">asked",
            "call",
            ">receivers",
            "nodes",
            "file",
            ">rate",
            ">document",
            ">to the document",
            ">p50",
            ">p99",
            ">lost",
        ],
    );
    for group in groups {
        let case = &group.case;
        let receivers =
            case.receivers.filter(|_| groups.iter().any(|g| g.case.receivers > Some(1)));
        let nodes = case.cross_numa.map(|cross| if cross { "two" } else { "one" });
        let asked = case.rate_asked.filter(|rate| !matches!(rate, 0 | 999_999_999));
        let first = vec![
            bytes(group),
            asked.map(|rate| Words::from(number::asked(rate))).unwrap_or_default(),
            case.api.as_deref().map(Words::from).unwrap_or_default(),
            receivers.map(|count| Words::from(count.to_string())).unwrap_or_default(),
            nodes.filter(|_| case.cross_numa == Some(true)).map(Words::from).unwrap_or_default(),
        ];
        let mut row = start(cases, group, first);
        row.push(words(group.time(Since::Intended, "p50_ns")));
        row.push(words(group.time(Since::Intended, "p99_ns")));
        row.push(lost(group));
        table.rows.push(row);
    }
    table.without_empty_columns()
}

/// `first`, the file, then the rate, the document's, and how many times that it is.
fn start(cases: &Cases<'_>, group: &Group<'_>, first: Vec<Words>) -> Vec<Words> {
    let set = cases.set_name(group.set);
    let (rate, document) = (group.rate(), document(group));
    let ratio = rate.as_ref().zip(document.as_ref()).and_then(|(rate, document)| {
        let times = rate.median.value / document.value;
        let member = "publisher.rate / reference.rate";
        times
            .is_finite()
            .then(|| Figure::new(times, number::ratio(times), rate.median.line, member))
    });
    let mut row = first;
    row.push(if set.is_empty() { Words::new() } else { set.into() });
    row.push(words(rate));
    row.push(cell(document));
    row.push(cell(ratio));
    row
}

/// The reference rate of the source document.
fn document(group: &Group<'_>) -> Option<Figure> {
    group.reference("rate", number::rate)
}

/// The size of the group's messages.
pub(super) fn bytes(group: &Group<'_>) -> Words {
    group.case.size.map(|size| Words::from(format!("{size} B"))).unwrap_or_default()
}

/// Messages lost, repeated or damaged, in the worst repetition.
fn lost(group: &Group<'_>) -> Words {
    let worst = Spread::of(group.runs.iter().map(|run| {
        let wrong = run.wrong();
        Figure::new(wrong as f64, number::count(wrong), run.id, "subscribers[..].lost")
    }));
    cell(worst.map(|spread| spread.most))
}

/// Only the reason, if the experiment was left out.
pub(super) fn skipped(
    cases: &Cases<'_>,
    experiment: &'static str,
    title: &'static str,
) -> Option<Section> {
    let line = cases.skipped(experiment)?;
    let why = line.text("why").unwrap_or("no reason is given");
    let words = Words::new().text("Left out: ").line(line.id, why);
    Some(Section::new(experiment, title, vec![Block::Words(words)]))
}
