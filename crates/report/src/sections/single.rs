//! Publishers and subscribers that were run by hand, and logs of other tools.

use super::chart::{Curve, by_percentile};
use super::histogram::{self, Linear};
use crate::cases::{Cases, TIMES};
use crate::document::{Block, ColumnOf, Origin, Section, Table, Words};
use crate::line::{Kind, Line};
use crate::number;
use crate::since::Since;

/// The most histograms drawn; the tables have all lines.
const DRAWN: usize = 6;

const PUBLISHERS: [ColumnOf<Line>; 14] = [
    ("line", Line::link),
    ("topic", |line| line.word("topic")),
    (">size", |line| line.size("size")),
    (">asked", Line::asked),
    (">sent", |line| line.count("sent")),
    (">rate", |line| line.cell("rate", number::rate)),
    (">largest burst", |line| line.count("largest_burst")),
    (">back-pressured", |line| line.count("back_pressured")),
    (">late p50", |line| line.cell("lateness.p50_ns", number::time)),
    (">late max", |line| line.cell("lateness.max_ns", number::time)),
    ("wait", |line| line.word("wait")),
    ("window", |line| line.word("window")),
    ("touch", |line| line.word("touch")),
    (">CPU", |line| line.count("cpus.ran_on")),
];

const SUBSCRIBERS: [ColumnOf<Line>; 12] = [
    ("line", Line::link),
    ("topics", topics),
    (">received", |line| line.count("received")),
    (">rate", |line| line.cell("rate", number::rate)),
    (">lost", |line| line.count("lost")),
    (">repeated", |line| line.count("duplicated")),
    (">damaged", |line| line.count("damaged")),
    (">unchecked", |line| unless_zero(line, "unchecked")),
    (">spin", |line| unless_zero(line, "spin")),
    ("wait", |line| line.word("wait")),
    ("touch", |line| line.word("touch")),
    (">CPU", |line| line.count("cpus.ran_on")),
];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let mut times = latencies();
    let (mut curves, mut histograms) = (Vec::new(), Vec::new());
    for line in cases.lines {
        match line.kind {
            Kind::Publisher => histograms.extend(linear(line, "calls", "Calls that send, ")),
            Kind::Subscriber => {
                for since in Since::BOTH {
                    let path = since.path("");
                    if line.at(&path).is_some() {
                        times.rows.push(times_row(line, since.name(), &format!("{path}.")));
                        let name = format!("{} {}", line.place(), since.name());
                        histograms.extend(histogram::of(name.clone(), line, &path));
                        curves.extend(Curve::of(name, Origin::Own(curves.len()), line, &path));
                    }
                }
                histograms.extend(linear(line, "linear", "From the actual time, "));
            }
            _ => {}
        }
    }
    let senders = Table::of("Publishers", &PUBLISHERS, cases.of_kind(Kind::Publisher));
    let receivers = Table::of("Subscribers", &SUBSCRIBERS, cases.of_kind(Kind::Subscriber));
    let tables = [senders, receivers, times].into_iter().filter_map(Table::block);
    let mut blocks: Vec<Block> = tables.collect();
    if blocks.is_empty() {
        return None;
    }
    let chart = by_percentile("Latency by percentile".to_owned(), &curves);
    blocks.push(Block::Charts(chart.into_iter().collect()));
    histograms.truncate(DRAWN);
    blocks.extend(histograms);
    Some(Section::new("single", "Publishers and subscribers", blocks))
}

/// The intervals of HdrHistogram logs.
pub(super) fn logs(cases: &Cases<'_>) -> Option<Section> {
    let mut table = latencies();
    let (mut curves, mut histograms) = (Vec::new(), Vec::new());
    for line in cases.of_kind(Kind::Log) {
        let tag = line.text("tag").unwrap_or("");
        table.rows.push(times_row(line, tag, ""));
        let name = format!("{} {tag}", line.place());
        histograms.extend(histogram::of(name.clone(), line, ""));
        curves.extend(Curve::of(name, Origin::Own(curves.len()), line, ""));
    }
    table.caption = "Intervals of logs, read as nanoseconds".to_owned();
    table.columns[1].name = "tag".to_owned();
    let chart = by_percentile("Intervals by percentile".to_owned(), &curves);
    let mut blocks = vec![table.block()?, Block::Charts(chart.into_iter().collect())];
    histograms.truncate(DRAWN);
    blocks.extend(histograms);
    Some(Section::new("logs", "HdrHistogram logs", blocks))
}

/// The topics of all streams, each once.
fn topics(line: &Line) -> Words {
    let mut topics: Vec<&str> = Vec::new();
    for at in 0..line.list("streams").len() {
        let topic = line.text(&format!("streams[{at}].topic"));
        topics.extend(topic.filter(|topic| !topics.contains(topic)));
    }
    if topics.is_empty() { Words::new() } else { topics.join(", ").into() }
}

fn unless_zero(line: &Line, path: &str) -> Words {
    line.whole(path).filter(|count| *count > 0).map(|_| line.count(path)).unwrap_or_default()
}

fn latencies() -> Table {
    let mut table = Table::new("Latency", &["line", "from"]);
    TIMES.iter().for_each(|(name, _)| table.column(&format!(">{name}")));
    table.column(">samples");
    table
}

/// A row of the distribution whose members begin with `prefix`.
pub(super) fn times_row(line: &Line, name: &str, prefix: &str) -> Vec<Words> {
    let name = if name.is_empty() { Words::new() } else { name.into() };
    let times = TIMES.iter().map(|(_, name)| line.cell(&format!("{prefix}{name}"), number::time));
    let samples = line.count(&format!("{prefix}samples"));
    [line.link(), name].into_iter().chain(times).chain([samples]).collect()
}

/// The histogram of even buckets at `path`, titled with the percentiles that the UM tools print.
pub(super) fn linear(line: &Line, path: &str, of: &str) -> Option<Block> {
    let linear = Linear::at(line, path)?;
    let percentiles = linear.percentiles.iter().map(|(percent, ns)| match ns {
        0.. => format!("{percent}%: {}", number::time(*ns as f64).text()),
        _ => format!("{percent}%: hidden by overflows"),
    });
    let percentiles: Vec<String> = percentiles.collect();
    let title = format!(
        "{of}{} buckets of {}, {} ({})",
        linear.buckets,
        number::time(linear.width_ns as f64).text(),
        line.place(),
        percentiles.join(", ")
    );
    linear.histogram(title, line.id)
}
