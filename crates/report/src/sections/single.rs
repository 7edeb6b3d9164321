//! Publishers and subscribers that were run by hand, and logs of other tools.

use super::cells::Cells;
use super::chart::{Curve, by_percentile};
use super::histogram;
use crate::cases::{Cases, TIMES};
use crate::distribution::Distribution;
use crate::document::{Block, Section, Table, Voice, Words};
use crate::line::{Line, Record};
use crate::number;
use crate::outcome::{Linear, Publisher, Subscriber};
use crate::since::Since;

/// Histograms are drawn for so many lines; the tables have all.
const DRAWN: usize = 6;

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let (mut senders, mut receivers, mut times) = (publishers(), subscribers(), latencies());
    let (mut curves, mut histograms) = (Vec::new(), Vec::new());
    for line in cases.lines {
        match &line.record {
            Record::Publisher(publisher) => {
                senders.rows.push(publisher_row(line, publisher));
                histograms.extend(publisher.calls.as_ref().and_then(|calls| {
                    let title = format!("Calls that send, {}", linear_title(line, calls));
                    histogram::of_linear(title, line.id, calls)
                }));
            }
            Record::Subscriber(subscriber) => {
                receivers.rows.push(subscriber_row(line, subscriber));
                for since in Since::BOTH {
                    let Some(found) = since.of(subscriber) else { continue };
                    let member = format!("latency.{}", since.name());
                    times.rows.push(times_row(line, since.name(), &member, found));
                    let name = format!("{} {}", line.place(), since.name());
                    histograms.extend(histogram::of(name.clone(), line.id, found));
                    let voice = Voice::Own(curves.len());
                    curves.push(Curve { name, voice, line: line.id, times: found });
                }
                histograms.extend(subscriber.counts.linear.as_ref().and_then(|linear| {
                    let title = format!("From the actual time, {}", linear_title(line, linear));
                    histogram::of_linear(title, line.id, linear)
                }));
            }
            _ => {}
        }
    }
    let tables = [senders, receivers, times].into_iter().filter(|table| !table.rows.is_empty());
    let mut blocks: Vec<Block> =
        tables.map(|table| Block::Table(table.without_empty_columns())).collect();
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
    for line in cases.lines {
        let Record::Log(interval) = &line.record else { continue };
        let tag = interval.tag.as_deref().unwrap_or("");
        table.rows.push(times_row(line, tag, "", &interval.times));
        let name = format!("{} {tag}", line.place());
        histograms.extend(histogram::of(name.clone(), line.id, &interval.times));
        let voice = Voice::Own(curves.len());
        curves.push(Curve { name, voice, line: line.id, times: &interval.times });
    }
    if table.rows.is_empty() {
        return None;
    }
    table.caption = "Intervals of logs, read as nanoseconds".to_owned();
    table.columns[1].name = "tag".to_owned();
    let chart = by_percentile("Intervals by percentile".to_owned(), &curves);
    let mut blocks = vec![
        Block::Table(table.without_empty_columns()),
        Block::Charts(chart.into_iter().collect()),
    ];
    histograms.truncate(DRAWN);
    blocks.extend(histograms);
    Some(Section::new("logs", "HdrHistogram logs", blocks))
}

fn publishers() -> Table {
    let columns = [
        "line",
        "topic",
        ">size",
        ">asked",
        ">sent",
        ">rate",
        ">largest burst",
        ">back-pressured",
        ">late p50",
        ">late max",
        "wait",
        "window",
        "touch",
        ">CPU",
    ];
    Table::new("Publishers", &columns)
}

fn publisher_row(line: &Line, publisher: &Publisher) -> Vec<Words> {
    let cells = Cells { line };
    let late = publisher.lateness.as_ref();
    let conditions = &publisher.conditions;
    vec![
        Words::new().line(line.id, line.place()),
        cells.text(publisher.topic.as_deref()),
        cells.text(publisher.size.map(|size| format!("{size} B"))),
        cells.text(publisher.rate_asked.map(number::asked)),
        cells.count(publisher.sent, "sent"),
        cells.show(publisher.rate, number::rate, "rate"),
        cells.count(publisher.largest_burst, "largest_burst"),
        cells.count(publisher.back_pressured, "back_pressured"),
        cells.time(late.and_then(|late| late.p50_ns), "lateness.p50_ns"),
        cells.time(late.and_then(|late| late.max_ns), "lateness.max_ns"),
        cells.text(conditions.wait.as_deref()),
        cells.text(conditions.window.as_deref()),
        cells.text(conditions.touch.as_deref()),
        cells.count(conditions.ran_on(), "cpus.ran_on"),
    ]
}

fn subscribers() -> Table {
    let columns = [
        "line",
        "topics",
        ">received",
        ">rate",
        ">lost",
        ">repeated",
        ">damaged",
        ">unchecked",
        ">spin",
        "wait",
        "touch",
        ">CPU",
    ];
    Table::new("Subscribers", &columns)
}

fn subscriber_row(line: &Line, subscriber: &Subscriber) -> Vec<Words> {
    let cells = Cells { line };
    let (counts, conditions) = (&subscriber.counts, &subscriber.conditions);
    let mut topics: Vec<&str> = Vec::new();
    for stream in subscriber.streams.iter().flatten() {
        topics.extend(stream.topic.as_deref().filter(|topic| !topics.contains(topic)));
    }
    vec![
        Words::new().line(line.id, line.place()),
        cells.text(Some(topics.join(", "))),
        cells.count(counts.received, "received"),
        cells.show(counts.rate, number::rate, "rate"),
        cells.count(counts.lost, "lost"),
        cells.count(counts.duplicated, "duplicated"),
        cells.count(counts.damaged, "damaged"),
        cells.count(counts.unchecked.filter(|count| *count > 0), "unchecked"),
        cells.count(subscriber.spin.filter(|spin| *spin > 0), "spin"),
        cells.text(conditions.wait.as_deref()),
        cells.text(conditions.touch.as_deref()),
        cells.count(conditions.ran_on(), "cpus.ran_on"),
    ]
}

fn latencies() -> Table {
    let mut table = Table::new("Latency", &["line", "from"]);
    TIMES.iter().for_each(|(name, ..)| table.column(&format!(">{name}")));
    table.column(">samples");
    table
}

fn times_row(line: &Line, name: &str, member: &str, times: &Distribution) -> Vec<Words> {
    let cells = Cells { line };
    let path =
        |name: &str| if member.is_empty() { name.to_owned() } else { format!("{member}.{name}") };
    let mut row = vec![Words::new().line(line.id, line.place()), cells.text(Some(name))];
    row.extend(
        TIMES.iter().map(|(_, name, pick)| cells.show(pick(times), number::time, &path(name))),
    );
    row.push(cells.count(times.samples, &path("samples")));
    row
}

/// What the UM tools would print beside the histogram.
pub(super) fn linear_title(line: &Line, linear: &Linear) -> String {
    let percentiles = linear.percentiles.iter().flatten().map(|(percent, ns)| match ns {
        0.. => format!("{percent}%: {}", number::time(*ns as f64).text()),
        _ => format!("{percent}%: hidden by overflows"),
    });
    let percentiles: Vec<String> = percentiles.collect();
    format!(
        "{} buckets of {}, {} ({})",
        linear.buckets.unwrap_or(0),
        number::time(linear.width_ns.unwrap_or(0) as f64).text(),
        line.place(),
        percentiles.join(", ")
    )
}
