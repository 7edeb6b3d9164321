//! Bursts from a few publishers to many subscribers with filters.

use crate::cases::Cases;
use crate::document::{Bar, Bars, Block, Figure, Section, Table, Voice, Words};
use crate::fanout::{Delay, Fanout, FanoutCase};
use crate::line::{Line, Record};
use crate::number::{self, Quantity};
use crate::spread::{Spread, words};
use std::collections::BTreeMap;

/// The repetitions of each case of each file.
type Groups<'a> = BTreeMap<(&'a FanoutCase, &'a str), Vec<(&'a Line, &'a Fanout)>>;

/// What a plot shows of the cases in which subscribers want that: its title, and the member.
const PLOTS: [(&str, &str, &str); 2] = [
    ("all", "Everything to everybody: messages delivered a second", "delivered_per_second"),
    ("quarter", "A quarter to one subscriber each: messages published a second", PUBLISHED),
];
const PUBLISHED: &str = "published_per_second";

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let mut groups = Groups::new();
    for line in cases.lines {
        let Record::Fanout(fanout) = &line.record else { continue };
        groups.entry((&fanout.case, &line.file)).or_default().push((line, fanout));
    }
    if groups.is_empty() {
        return None;
    }
    let intro = "Publishers send bursts of FIX orders, and each subscriber has a filter. Through \
                 the server: over TCP on loopback. Embedded: publishers match for themselves. \
                 Times from sending until arrival are those within a full burst; the server's own \
                 are from when it takes a message up until its frames are written for all who \
                 want it. Each figure is the median of its repetitions.";
    let several = groups.keys().any(|(_, file)| Some(*file) != groups.keys().next().map(|k| k.1));
    let plots = PLOTS.iter().filter_map(|plot| bars(&groups, plot, several));
    let mut blocks = vec![Block::Words(intro.into()), Block::Table(table(&groups, several))];
    blocks.extend(plots.map(Block::Bars));
    blocks.push(Block::List(placements(&groups)));
    Some(Section::new("fanout", "Fan-out", blocks))
}

/// Such as `5 → 50`.
fn counts(case: &FanoutCase) -> String {
    let shown = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    format!("{} → {}", shown(case.publishers), shown(case.subscribers))
}

fn through(case: &FanoutCase) -> &str {
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
        table.rows.push(vec![
            counts(case).into(),
            burst.unwrap_or_default(),
            case.wanted.as_deref().unwrap_or_default().into(),
            through(case).into(),
            if several { (*file).into() } else { Words::new() },
            words(rate(group, PUBLISHED)),
            words(rate(group, "delivered_per_second")),
            time(group, "latency.p50_ns", |run| run.latency.as_ref()?.p50_ns),
            time(group, "latency.p99_ns", |run| run.latency.as_ref()?.p99_ns),
            time(group, "server.command_delay.p50_ns", |run| delay(run)?.p50_ns),
            time(group, "server.command_delay.p99_ns", |run| delay(run)?.p99_ns),
            lost(group),
        ]);
    }
    table.without_empty_columns()
}

fn delay(run: &Fanout) -> Option<&Delay> {
    run.server.as_ref()?.command_delay.as_ref()
}

/// The repetitions' figures of one kind.
fn spread(
    group: &[(&Line, &Fanout)],
    member: &str,
    show: fn(f64) -> Quantity,
    pick: impl Fn(&Fanout) -> Option<f64>,
) -> Option<Spread> {
    Spread::of(group.iter().filter_map(|(line, run)| {
        let value = pick(run)?;
        Some(Figure::new(value, show(value), line.id, member))
    }))
}

fn rate(group: &[(&Line, &Fanout)], member: &str) -> Option<Spread> {
    spread(group, member, number::rate, |run| match member {
        PUBLISHED => run.published_per_second,
        _ => run.delivered_per_second,
    })
}

fn time(group: &[(&Line, &Fanout)], member: &str, pick: fn(&Fanout) -> Option<u64>) -> Words {
    words(spread(group, member, number::time, |run| pick(run).map(|ns| ns as f64)))
}

/// The most that was lost, or came unasked.
fn lost(group: &[(&Line, &Fanout)]) -> Words {
    let Some((line, run)) = group.iter().max_by_key(|(_, run)| run.wrong()) else {
        return Words::new();
    };
    let wrong = run.wrong();
    Words::new().figure(Figure::new(wrong as f64, number::count(wrong), line.id, "lost + excess"))
}

/// Where threads were put, in words, each once.
fn placements(groups: &Groups<'_>) -> Vec<Words> {
    let mut told: Vec<&str> = Vec::new();
    let runs = groups.values().flatten();
    let placed = runs.filter_map(|(line, run)| {
        let why = run.seating.as_ref()?.why.as_deref()?;
        let is_new = !told.contains(&why);
        told.push(why);
        is_new.then(|| Words::from("Placement: ").line(line.id, why).text("."))
    });
    placed.collect()
}

/// A bar for each case in which that is wanted.
fn bars(groups: &Groups<'_>, plot: &(&str, &str, &str), several: bool) -> Option<Bars> {
    let (wanted, title, member) = *plot;
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
        let voice = Voice::Own(usize::from(case.through.as_deref() != Some("lanecast")));
        Some(Bar { name, voice, figure: rate(group, member)?.median })
    });
    let bars: Vec<Bar> = bars.collect();
    (!bars.is_empty()).then(|| Bars { title: title.to_owned(), bars })
}
