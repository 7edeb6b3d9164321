//! Other libraries under the same load.

use crate::cases::{Cases, EXPERIMENTS, TIMES};
use crate::document::{Block, Figure, Section, Table, Words, cell};
use crate::line::{Kind, Line};
use crate::number;
use crate::spread::{Spread, words};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Name of lanecast's own lines.
const OWN: &str = "lanecast";

/// A load that libraries were put under.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(default)]
struct Load<'a> {
    row: Option<&'a str>,
    size: Option<u64>,
    rate_asked: Option<u64>,
    producers: Option<u64>,
    subscribers: Option<u64>,
    batch: Option<u64>,
    one_cpu: Option<bool>,
    touch: Option<&'a str>,
}

/// A library's rates, to stand beside lanecast's.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: String,
    /// Rate by message size, and the ratio of lanecast's rate in the same pairs.
    pub(super) rates: BTreeMap<u64, (Spread, Option<Spread>)>,
}

impl Peer {
    /// The rate at `size`, and the ratio.
    pub(super) fn cell(&self, size: Option<u64>) -> Words {
        let Some((rate, ratio)) = size.and_then(|size| self.rates.get(&size)) else {
            return Words::new();
        };
        let cell = rate.clone().words();
        match ratio {
            Some(ratio) => cell.text(" ").figure(ratio.median.clone()),
            None => cell,
        }
    }
}

/// The libraries' rates with one subscriber.
pub(super) fn rates(cases: &Cases<'_>) -> Vec<Peer> {
    let mut peers: Vec<Peer> = Vec::new();
    for (load, lines) in loads(cases) {
        let (Some(size), Some("rate"), None | Some(1)) = (load.size, load.row, load.subscribers)
        else {
            continue;
        };
        for name in names(&lines).into_iter().filter(|name| *name != OWN) {
            let Some(spread) = Spread::of(of(&lines, name).filter_map(rate)) else { continue };
            let found = (spread, ratios(&lines, name, rate));
            match peers.iter_mut().find(|peer| peer.name == name) {
                Some(peer) => drop(peer.rates.entry(size).or_insert(found)),
                None => peers
                    .push(Peer { name: name.to_owned(), rates: BTreeMap::from([(size, found)]) }),
            }
        }
    }
    peers
}

/// Every load, with every library.
pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let loads = loads(cases);
    let mut tables: Vec<(Option<&str>, Table)> = Vec::new();
    for (load, lines) in &loads {
        if tables.last().is_none_or(|(row, _)| *row != load.row) {
            let columns = [
                ">size",
                ">asked",
                ">producers",
                ">subscribers",
                ">batch",
                "placed",
                "touch",
                "library",
                "used",
                "version",
                ">rate",
                ">lanecast to it",
                ">p50",
                ">p90",
                ">p99",
                ">max",
                ">lanecast's p50 to its",
                ">lost",
            ];
            tables.push((load.row, Table::new(caption(load.row.unwrap_or("other")), &columns)));
        }
        let Some((_, table)) = tables.last_mut() else { continue };
        table.rows.extend(names(lines).into_iter().map(|name| row(load, lines, name)));
    }
    let left_out = left_out(cases);
    if tables.is_empty() && left_out.is_empty() {
        return None;
    }
    let intro = "Repetitions of the libraries take turns, and each ratio is between neighbours: \
                 what disturbs the machine for a while disturbs both. Above ×1 lanecast's figure \
                 is the larger one, which is good for a rate and bad for a time. Times are \
                 counted from the intended time of sending where it is known.";
    let mut blocks = vec![Block::Words(intro.into())];
    blocks.extend(tables.into_iter().map(|(_, table)| Block::Table(table.without_empty_columns())));
    if !left_out.is_empty() {
        blocks.push(Block::List(left_out));
    }
    Some(Section::new("rivals", "Beside other libraries", blocks))
}

/// Rows and libraries that were left out: `skipped` lines of no known experiment.
fn left_out(cases: &Cases<'_>) -> Vec<Words> {
    let skipped = cases.of_kind(Kind::Skipped).filter_map(|line| {
        let name = line.text("experiment").unwrap_or("unnamed");
        let why = line.text("why").unwrap_or("no reason is given");
        let words = Words::from(format!("{name}: ")).line(line.id, why);
        // A row may be called like an experiment, which then tells of it.
        let is_told = EXPERIMENTS.contains(&name) || !cases.of(name).is_empty();
        (!is_told).then_some(words)
    });
    skipped.collect()
}

fn caption(row: &str) -> String {
    match row {
        "rate" => "Rate, flat out".to_owned(),
        "touch" => "Rate, every byte written and read".to_owned(),
        "latency" => "Latency at a fixed rate".to_owned(),
        "fanout" => "One publisher, several subscribers".to_owned(),
        "wake" => "Latency of a subscriber that sleeps".to_owned(),
        "bare" => "The bare ring".to_owned(),
        "queue" => "Between threads: published one by one, drained".to_owned(),
        "pop" => "Between threads: pushed and popped one by one".to_owned(),
        "batch" => "Between threads: in batches".to_owned(),
        "multicast" => "Between threads: every consumer sees all".to_owned(),
        "diamond" => "Between threads: the last consumer after the others".to_owned(),
        "mpmc" => "Between threads: consumers share the work".to_owned(),
        "pingpong" => "Between threads: round trips, spinning".to_owned(),
        "pingpong-park" => "Between threads: round trips, sleeping".to_owned(),
        "pipe" => "Between threads: visible after each flush".to_owned(),
        other => other.to_owned(),
    }
}

fn row(load: &Load<'_>, lines: &[&Line], name: &str) -> Vec<Words> {
    let own = || of(lines, name);
    let version = own().find_map(|line| line.text("peer_version"));
    let way = own().find_map(|line| line.text("way"));
    let asked = load.rate_asked.map(|rate| Words::from(number::asked(rate)));
    let text = |text: Option<&str>| text.map(Words::from).unwrap_or_default();
    let count = |count: Option<u64>| count.map(|n| Words::from(n.to_string())).unwrap_or_default();
    let other = name != OWN;
    // Where all are given the same rate, its ratio says nothing.
    let is_flat_out = matches!(load.rate_asked, None | Some(0 | 999_999_999));
    let ratio = |of| words(if other { ratios(lines, name, of) } else { None });
    let mut row = vec![
        load.size.map(|size| Words::from(format!("{size} B"))).unwrap_or_default(),
        asked.unwrap_or_default(),
        count(load.producers),
        count(load.subscribers),
        count(load.batch),
        text(load.one_cpu.map(|one| if one { "on one CPU" } else { "on two CPUs" })),
        text(load.touch),
        name.into(),
        text(way),
        text(version),
        words(Spread::of(own().filter_map(rate))),
        if is_flat_out { ratio(rate) } else { Words::new() },
    ];
    for column in ["p50", "p90", "p99", "max"] {
        row.push(words(Spread::of(own().filter_map(|line| time(line, column)))));
    }
    row.push(ratio(p50));
    let lost = Spread::of(own().filter_map(|line| line.figure("lost", number::whole)));
    row.push(cell(lost.map(|spread| spread.most)));
    row
}

/// The lines by load, in the order of rows that the loads first appear in.
fn loads<'a>(cases: &Cases<'a>) -> Vec<(Load<'a>, Vec<&'a Line>)> {
    let mut loads: Vec<(Load<'a>, Vec<&'a Line>)> = Vec::new();
    let mut rows: Vec<Option<&str>> = Vec::new();
    for line in cases.of_kind(Kind::Rival) {
        let load: Load<'_> = line.members();
        if !rows.contains(&load.row) {
            rows.push(load.row);
        }
        match loads.iter_mut().find(|(known, _)| *known == load) {
            Some((_, lines)) => lines.push(line),
            None => loads.push((load, vec![line])),
        }
    }
    let order = |load: &Load<'_>| rows.iter().position(|row| *row == load.row);
    loads.sort_by(|(a, _), (b, _)| (order(a), a).cmp(&(order(b), b)));
    loads
}

/// The libraries on `lines`, lanecast first.
fn names<'a>(lines: &[&'a Line]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for line in lines {
        let name = peer(line);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| (*name != OWN, *name));
    names
}

fn peer(line: &Line) -> &str {
    line.text("peer").unwrap_or("unnamed")
}

fn of<'a>(lines: &[&'a Line], name: &str) -> impl Iterator<Item = &'a Line> {
    lines.iter().copied().filter(move |line| peer(line) == name)
}

fn rate(line: &Line) -> Option<Figure> {
    line.figure("rate", number::rate)
}

fn p50(line: &Line) -> Option<Figure> {
    time(line, "p50")
}

/// A time of the latency, from the intended time of sending if that is known.
fn time(line: &Line, column: &str) -> Option<Figure> {
    let from = if line.at("intended").is_some() { "intended" } else { "actual" };
    let (_, member) = TIMES.into_iter().find(|(name, _)| *name == column)?;
    line.figure(&format!("{from}.{member}"), number::time)
}

/// The ratios of lanecast's figure to the peer's, pair by pair.
fn ratios(lines: &[&Line], name: &str, figure: fn(&Line) -> Option<Figure>) -> Option<Spread> {
    let ratios = of(lines, name).filter_map(|line| {
        let same_pair =
            |own: &&Line| own.whole("pair") == line.whole("pair") && own.file == line.file;
        let own = of(lines, OWN).find(same_pair)?;
        let times = figure(own)?.value / figure(line)?.value;
        let member = format!("{} / {}", own.place(), line.place());
        times.is_finite().then(|| Figure::new(times, number::ratio(times), line.id, member))
    });
    Spread::of(ratios)
}
