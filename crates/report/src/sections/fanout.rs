//! Bursts from a few publishers to many subscribers with filters.

use crate::cases::Cases;
use crate::document::{Bar, Bars, Block, Figure, Origin, Section, Table, Words};
use crate::line::{Kind, Line};
use crate::number::{self, Quantity};
use crate::spread::{Spread, words};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The parameters of a run.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(default)]
struct Case {
    wanted: Option<String>,
    publishers: Option<u64>,
    subscribers: Option<u64>,
    messages: Option<u64>,
    through: Option<String>,
}

/// The repetitions of each case of each file.
type Groups<'a> = BTreeMap<(Case, &'a str), Vec<&'a Line>>;

/// A plot for each value of `wanted`: that value, the title, and the member shown.
const PLOTS: [(&str, &str, &str); 2] = [
    ("all", "Everything to everybody: messages delivered a second", "delivered_per_second"),
    ("quarter", "A quarter to one subscriber each: messages published a second", PUBLISHED),
];
const PUBLISHED: &str = "published_per_second";

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let groups: Groups<'_> = cases.grouped(Kind::Fanout, Line::members);
    if groups.is_empty() {
        return None;
    }
    let intro = "Publishers send bursts of FIX orders, and each subscriber has a filter. Through \
                 the server: over TCP on loopback. Embedded: publishers match for themselves. \
                 Times from sending until arrival are those within a full burst; the server's own \
                 are from when it takes a message up until its frames are written for all who \
                 want it. Each figure is the median of its repetitions.";
    let several = cases.has_several_files(Kind::Fanout);
    let plots = PLOTS.iter().filter_map(|plot| bars(&groups, plot, several));
    let mut blocks = vec![Block::Words(intro.into()), Block::Table(table(&groups, several))];
    blocks.extend(plots.map(Block::Bars));
    blocks.push(Block::List(placements(&groups)));
    Some(Section::new("fanout", "Fan-out", blocks))
}

/// Such as `5 → 50`.
fn counts(case: &Case) -> String {
    let shown = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    format!("{} → {}", shown(case.publishers), shown(case.subscribers))
}

fn through(case: &Case) -> &str {
    match case.through.as_deref() {
        Some("lanecast") => "server",
        Some(other) => other,
        None => "unknown",
    }
}

fn table(groups: &Groups<'_>, several: bool) -> Table {
    let columns = [
        "publishers → subscribers",
        ">burst",
        "wanted",
        "through",
        "file",
        ">published",
        ">delivered",
        ">p50",
        ">p99",
        ">server's p50",
        ">server's p99",
        ">lost",
    ];
    let mut table = Table::new("Messages a second, and their times", &columns);
    for ((case, file), group) in groups {
        let burst = case.messages.map(|messages| Words::from(number::count(messages).text()));
        let time = |path: &str| words(spread(group, path, number::time));
        table.rows.push(vec![
            counts(case).into(),
            burst.unwrap_or_default(),
            case.wanted.as_deref().unwrap_or_default().into(),
            through(case).into(),
            if several { (*file).into() } else { Words::new() },
            words(spread(group, PUBLISHED, number::rate)),
            words(spread(group, "delivered_per_second", number::rate)),
            time("latency.p50_ns"),
            time("latency.p99_ns"),
            time("server.command_latency.p50_ns"),
            time("server.command_latency.p99_ns"),
            lost(group),
        ]);
    }
    table.without_empty_columns()
}

fn spread(group: &[&Line], path: &str, show: fn(f64) -> Quantity) -> Option<Spread> {
    Spread::of(group.iter().filter_map(|line| line.figure(path, show)))
}

/// The repetition with the most lost or excess deliveries.
fn lost(group: &[&Line]) -> Words {
    let Some(line) = group.iter().max_by_key(|line| line.wrong()) else { return Words::new() };
    let wrong = line.wrong();
    Words::new().figure(Figure::new(wrong as f64, number::count(wrong), line.id, "lost + excess"))
}

/// The placements of threads in words, each once.
fn placements(groups: &Groups<'_>) -> Vec<Words> {
    let mut told: Vec<&str> = Vec::new();
    let placed = groups.values().flatten().filter_map(|line| {
        let why = line.text("numa_placement.why")?;
        let is_new = !told.contains(&why);
        told.push(why);
        is_new.then(|| Words::from("Placement: ").line(line.id, why).text("."))
    });
    placed.collect()
}

/// A bar for each case with that value of `wanted`.
fn bars(groups: &Groups<'_>, plot: &(&str, &str, &str), several: bool) -> Option<Bars> {
    let (wanted, title, path) = *plot;
    let mut bursts: Vec<Option<u64>> = groups.keys().map(|(case, _)| case.messages).collect();
    bursts.dedup();
    let of_plot = groups.iter().filter(|((case, _), _)| case.wanted.as_deref() == Some(wanted));
    let bars = of_plot.filter_map(|((case, file), group)| {
        let mut name = format!("{}, {}", counts(case), through(case));
        if let Some(messages) = case.messages.filter(|_| bursts.len() > 1) {
            name += &format!(", bursts of {}", number::count(messages).text());
        }
        if several {
            name += &format!(", {file}");
        }
        let origin = Origin::Own(usize::from(case.through.as_deref() != Some("lanecast")));
        Some(Bar { name, origin, figure: spread(group, path, number::rate)?.median })
    });
    let bars: Vec<Bar> = bars.collect();
    (!bars.is_empty()).then(|| Bars { title: title.to_owned(), bars })
}
