//! The group test: every member receives all messages of all senders.

use super::chart;
use crate::axis;
use crate::cases::Cases;
use crate::document::{
    Axis, Block, Chart, Figure, Marks, Origin, Point, Section, Series, Table, Words, cell,
};
use crate::line::{Kind, Line};
use crate::number::{self, Quantity};
use crate::spread::{Spread, times, words};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The parameters of a run.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(default)]
struct Case {
    transport: Option<String>,
    size: Option<u64>,
    members: Option<u64>,
    senders: Option<u64>,
}

/// The repetitions of each case of each file.
type Groups<'a> = BTreeMap<(Case, &'a str), Vec<&'a Line>>;

/// Members of a line that are drawn by the number of members.
const PER_NODE: &str = "bytes_per_second";
const PER_CLUSTER: &str = "cluster_bytes_per_second";
const REFERENCE: &str = "reference.bytes_per_second";

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let groups: Groups<'_> = cases.grouped(Kind::Group, Line::members);
    if groups.is_empty() {
        return None;
    }
    let intro = "All senders of a group send to all members, which check every message. A member's \
                 rate runs from its first message to its last one; a node's figure is the mean of \
                 all members, the cluster's that times the members. Each figure is the median of \
                 its repetitions. Document: JGroups 2.6.4 in 2008, a host for each member, 1 Gbit \
                 Ethernet; its multicast stands beside udp and group-rm, its TCP beside tcp \
                 and group-tcp.";
    let several = cases.has_several_files(Kind::Group);
    let mut blocks = vec![Block::Words(intro.into()), Block::Table(table(&groups, several))];
    let charts = [
        by_members(
            "Throughput of a node, by members",
            (&groups, several),
            PER_NODE,
            Some(REFERENCE),
        ),
        by_members("Throughput of the cluster, by members", (&groups, several), PER_CLUSTER, None),
    ];
    let charts: Vec<Chart> = charts.into_iter().flatten().collect();
    if !charts.is_empty() {
        blocks.push(Block::Charts(charts));
    }
    blocks.extend(members(&groups).block());
    // One run is looked at; of a series, the intervals of every run would be too much.
    if let [line] = groups.values().flatten().copied().collect::<Vec<_>>()[..] {
        let charts: Vec<Chart> = intervals(line);
        if !charts.is_empty() {
            blocks.push(Block::Charts(charts));
        }
    }
    Some(Section::new("group", "Groups", blocks))
}

fn table(groups: &Groups<'_>, several: bool) -> Table {
    let columns = [
        "transport",
        ">size",
        ">members",
        ">senders",
        "file",
        ">rate of a node",
        ">throughput",
        ">document",
        ">to the document",
        ">rate of the cluster",
        ">cluster's throughput",
        ">per CPU second",
        ">lost",
        ">other errors",
    ];
    let mut table = Table::new("Messages a second", &columns);
    for ((case, file), group) in groups {
        let throughput = spread(group, PER_NODE, number::megabytes);
        let document = group.iter().find_map(|line| line.figure(REFERENCE, number::megabytes));
        table.rows.push(vec![
            case.transport.as_deref().unwrap_or_default().into(),
            case.size.map(|size| Words::from(format!("{size} B"))).unwrap_or_default(),
            count(case.members),
            count(case.senders),
            if several { (*file).into() } else { Words::new() },
            words(spread(group, "rate", number::rate)),
            words(throughput.clone()),
            cell(document.clone()),
            times(throughput.as_ref(), document.as_ref()),
            words(spread(group, "cluster_rate", number::rate)),
            words(spread(group, PER_CLUSTER, number::megabytes)),
            words(spread(group, "received_per_cpu_second", number::rate)),
            worst(group, &["lost"]),
            worst(group, &["duplicated", "disordered", "damaged"]),
        ]);
    }
    table.without_empty_columns()
}

/// Members that died or ended early, and senders of whose messages members have different numbers.
fn members(groups: &Groups<'_>) -> Table {
    let mut table = Table::new("What went wrong", &["run", "transport", "what"]);
    for line in groups.values().flatten() {
        let texts = |path: &str| {
            let list = line.list(path).iter().filter_map(|text| text.as_str());
            list.map(str::to_owned).collect::<Vec<_>>()
        };
        let ended = (0..line.list("results").len()).filter_map(|at| {
            let why = line.text(&format!("results[{at}].ended"))?;
            let name = line.text(&format!("results[{at}].name")).unwrap_or_default();
            Some(format!("{name} ended early: {why}"))
        });
        let missing = texts("missing").into_iter().map(|what| format!("no result: {what}"));
        let disagreements = texts("disagreements").into_iter();
        let disagreements = disagreements.map(|what| format!("members disagree on {what}"));
        for what in missing.chain(ended).chain(disagreements) {
            table.rows.push(vec![line.link(), line.word("transport"), what.into()]);
        }
    }
    table
}

fn count(number: Option<u64>) -> Words {
    number.map(|number| Words::from(number.to_string())).unwrap_or_default()
}

fn spread(group: &[&Line], path: &str, show: fn(f64) -> Quantity) -> Option<Spread> {
    Spread::of(group.iter().filter_map(|line| line.figure(path, show)))
}

/// The repetition with the most errors of these kinds.
fn worst(group: &[&Line], paths: &[&str]) -> Words {
    let sum =
        |line: &Line| paths.iter().filter_map(|path| line.whole(path)).fold(0, u64::saturating_add);
    let Some(line) = group.iter().max_by_key(|line| sum(line)) else { return Words::new() };
    let found = sum(line);
    Words::new().figure(Figure::new(found as f64, number::count(found), line.id, paths.join(" + ")))
}

/// Throughput by the number of members, a line for each transport and size; none for one number.
fn by_members(
    title: &str,
    (groups, several): (&Groups<'_>, bool),
    path: &str,
    reference: Option<&str>,
) -> Option<Chart> {
    let mut counts: Vec<u64> = groups.keys().filter_map(|(case, _)| case.members).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.len() < 2 {
        return None;
    }
    let mut lines: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    let mut documents: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for ((case, file), group) in groups {
        let place = counts.iter().position(|count| Some(*count) == case.members);
        let (Some(place), Some(size)) = (place, case.size) else { continue };
        let transport = case.transport.as_deref().unwrap_or_default();
        let name = format!("{transport}, {size} B");
        let point = |name: &str, figure: &Figure| Point {
            x: place as f64,
            y: figure.value,
            line: figure.line,
            title: format!("{name}: {}", figure.shown.text()),
        };
        if let Some(found) = spread(group, path, number::megabytes) {
            let name = if several { format!("{name}, {file}") } else { name };
            let points = lines.entry(name.clone()).or_default();
            points.push(point(&name, &found.median));
        }
        let figure = reference
            .and_then(|path| group.iter().find_map(|line| line.figure(path, number::megabytes)));
        if let Some(figure) = figure {
            // Both of the document's stacks, once each.
            let stack = if transport.ends_with("tcp") { "TCP" } else { "UDP" };
            let name = format!("document, {stack}, {size} B");
            let points = documents.entry(name.clone()).or_default();
            if points.iter().all(|known| known.x != place as f64) {
                points.push(point(&name, &figure));
            }
        }
    }
    let series = |(at, (name, points)): (usize, (String, Vec<Point>)),
                  origin: fn(usize) -> Origin| {
        Series { name, origin: origin(at), marks: Marks::Dotted(points) }
    };
    let own = lines.into_iter().enumerate().map(|line| series(line, Origin::Own));
    let documents =
        documents.into_iter().enumerate().map(|line| series(line, |_| Origin::Document));
    let series = own.chain(documents).collect();
    let names = counts.iter().map(u64::to_string).collect();
    throughput(title, axis::places("members", names), series)
}

fn throughput(title: &str, x: Axis, series: Vec<Series>) -> Option<Chart> {
    let chart = chart::rates(title, x, series)?;
    let most = chart.series.iter().flat_map(Series::points).map(|point| point.y);
    let most = most.reduce(f64::max)?;
    Some(Chart { y: axis::linear("bytes per second", most, number::megabytes), ..chart })
}

/// Rate, and memory, by time within the run, as the `-f` file has them.
fn intervals(line: &Line) -> Vec<Chart> {
    let count = line.list("intervals").len();
    let last = |path: &str| line.real(&format!("intervals[{}].{path}", count.wrapping_sub(1)));
    let Some(end) = last("elapsed_ns").filter(|_| count > 1) else { return Vec::new() };
    let curve = |name: &str, path: &str, at: usize, show: fn(f64) -> Quantity| {
        let points = (0..count).filter_map(|interval| {
            let value = line.real(&format!("intervals[{interval}].{path}"))?;
            let x = line.real(&format!("intervals[{interval}].elapsed_ns"))?;
            let title = format!("{name}: {}", show(value).text());
            Some(Point { x, y: value, line: line.id, title })
        });
        let marks = Marks::Dotted(points.collect());
        Series { name: name.to_owned(), origin: Origin::Own(at), marks }
    };
    let x = || Axis { label: "time".to_owned(), ..axis::times(0.0, end) };
    let rate = curve("received", "rate", 0, number::rate);
    let memory = [
        curve("free memory of the host", "free_bytes", 0, bytes),
        curve("memory of the process", "resident_bytes", 1, bytes),
    ];
    let rates = chart::rates("Rate of each interval", x(), vec![rate]);
    let memories = chart::rates("Memory", x(), memory.into_iter().collect());
    let memories = memories.map(|chart| {
        let most = chart.series.iter().flat_map(Series::points).map(|point| point.y);
        let most = most.fold(0.0, f64::max);
        Chart { y: axis::linear("bytes", most, bytes), ..chart }
    });
    rates.into_iter().chain(memories).collect()
}

fn bytes(count: f64) -> Quantity {
    number::bytes(count as u64)
}
