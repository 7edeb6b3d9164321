//! Other libraries under the same load.

use super::rate::figure;
use crate::cases::{Cases, TIMES};
use crate::distribution::Distribution;
use crate::document::{Block, Figure, Section, Table, Words};
use crate::line::{Line, Record};
use crate::number;
use crate::series::Rival;
use crate::spread::{Spread, words};
use std::collections::BTreeMap;

/// How lanecast's own lines are named among the others.
const OWN: &str = "lanecast";

type Found<'a> = (&'a Line, &'a Rival);

/// A load that libraries were put under.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Load<'a> {
    row: &'a str,
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
    /// By message size: the rate, and how many times that lanecast's was in the same pairs.
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
        let (Some(size), "rate", None | Some(1)) = (load.size, load.row, load.subscribers) else {
            continue;
        };
        for name in names(&lines).into_iter().filter(|name| *name != OWN) {
            let Some(rate) = Spread::of(of(&lines, name).filter_map(rate)) else { continue };
            let found = (rate, ratios(&lines, name, rate_of));
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
    let mut tables: Vec<(&str, Table)> = Vec::new();
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
            tables.push((load.row, Table::new(caption(load.row), &columns)));
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

/// Rows and libraries that were left out: whatever is named as no experiment of a series is.
fn left_out(cases: &Cases<'_>) -> Vec<Words> {
    let skipped = cases.lines.iter().filter_map(|line| {
        let Record::Skipped(skipped) = &line.record else { return None };
        let name = skipped.experiment.as_deref().unwrap_or("unnamed");
        let why = skipped.why.as_deref().unwrap_or("no reason is given");
        let words = Words::from(format!("{name}: ")).line(line.id, why);
        // A row may be called like an experiment, which then tells of it.
        let is_told = super::EXPERIMENTS.contains(&name) || !cases.of(name).is_empty();
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

fn row(load: &Load<'_>, lines: &[Found<'_>], name: &str) -> Vec<Words> {
    let own = || of(lines, name);
    let version = own().find_map(|(_, rival)| rival.peer_version.as_deref());
    let way = own().find_map(|(_, rival)| rival.way.as_deref());
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
        if is_flat_out { ratio(rate_of) } else { Words::new() },
    ];
    for column in ["p50", "p90", "p99", "max"] {
        row.push(words(Spread::of(own().filter_map(|found| time(found, column)))));
    }
    row.push(ratio(p50_of));
    let lost = own().filter_map(|(line, rival)| {
        let lost = rival.lost?;
        Some(Figure::new(lost as f64, number::count(lost), line.id, "lost"))
    });
    row.push(Spread::of(lost).map(|spread| figure(spread.most)).unwrap_or_default());
    row
}

/// The lines by load, in the order of rows that the loads first appear in.
fn loads<'a>(cases: &Cases<'a>) -> Vec<(Load<'a>, Vec<Found<'a>>)> {
    let mut loads: Vec<(Load<'a>, Vec<Found<'a>>)> = Vec::new();
    let mut rows: Vec<&str> = Vec::new();
    for (line, rival) in cases.rivals() {
        let load = Load {
            row: rival.row.as_deref().unwrap_or("other"),
            size: rival.size,
            rate_asked: rival.rate_asked,
            producers: rival.producers,
            subscribers: rival.subscribers,
            batch: rival.batch,
            one_cpu: rival.one_cpu,
            touch: rival.touch.as_deref(),
        };
        if !rows.contains(&load.row) {
            rows.push(load.row);
        }
        match loads.iter_mut().find(|(known, _)| *known == load) {
            Some((_, lines)) => lines.push((line, rival)),
            None => loads.push((load, vec![(line, rival)])),
        }
    }
    let order = |load: &Load<'_>| rows.iter().position(|row| *row == load.row);
    loads.sort_by(|(a, _), (b, _)| (order(a), a).cmp(&(order(b), b)));
    loads
}

/// The libraries on `lines`, lanecast first.
fn names<'a>(lines: &[Found<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (_, rival) in lines {
        let name = rival.peer.as_deref().unwrap_or("unnamed");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| (*name != OWN, *name));
    names
}

fn of<'a>(lines: &[Found<'a>], name: &str) -> impl Iterator<Item = Found<'a>> {
    lines
        .iter()
        .copied()
        .filter(move |(_, rival)| rival.peer.as_deref().unwrap_or("unnamed") == name)
}

fn rate((line, rival): Found<'_>) -> Option<Figure> {
    let rate = rival.rate?;
    Some(Figure::new(rate, number::rate(rate), line.id, "rate"))
}

fn time((line, rival): Found<'_>, column: &str) -> Option<Figure> {
    let (from, times) = times(rival)?;
    let (_, member, pick) = TIMES.into_iter().find(|(name, ..)| *name == column)?;
    let ns = pick(times)?;
    Some(Figure::new(ns, number::time(ns), line.id, format!("{from}.{member}")))
}

fn times(rival: &Rival) -> Option<(&'static str, &Distribution)> {
    let intended = rival.intended.as_ref().map(|times| ("intended", times));
    intended.or_else(|| rival.actual.as_ref().map(|times| ("actual", times)))
}

fn rate_of(rival: &Rival) -> Option<f64> {
    rival.rate
}

fn p50_of(rival: &Rival) -> Option<f64> {
    times(rival)?.1.p50_ns.map(|ns| ns as f64)
}

/// How many times as much lanecast's figure is, pair by pair.
fn ratios(lines: &[Found<'_>], name: &str, value: fn(&Rival) -> Option<f64>) -> Option<Spread> {
    let ratios = of(lines, name).filter_map(|(line, rival)| {
        let same_pair = |found: &Found<'_>| found.1.pair == rival.pair && found.0.file == line.file;
        let (own_line, own) = of(lines, OWN).find(same_pair)?;
        let times = value(own)? / value(rival)?;
        let member = format!("{} / {}", own_line.place(), line.place());
        times.is_finite().then(|| Figure::new(times, number::ratio(times), line.id, member))
    });
    Spread::of(ratios)
}
