//! Round trips of messages on a schedule, beside bare sockets and the UM latency document.

use super::cells::Cells;
use super::chart::{Curve, by_percentile};
use super::{histogram, single};
use crate::axis;
use crate::cases::{Cases, TIMES};
use crate::conditions::Conditions;
use crate::distribution::Distribution;
use crate::document::{Block, Chart, Marks, Point, Section, Series, Table, Voice, Words};
use crate::line::{Line, Record};
use crate::number;
use crate::outcome::Latency;
use crate::round_trip::{Floor, Ping, Pong, PublishedTimes};
use crate::since::Since;

/// Histograms are drawn for so many lines; the tables have all.
const DRAWN: usize = 12;
/// How the document's threads wait.
const SPINNING: &str = "spin";
/// The document's percentiles: the share of samples beyond is one in so many.
const ONE_IN: [f64; 5] = [10.0, 100.0, 1000.0, 10_000.0, 100_000.0];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let (mut times, mut counts, mut answers) = (Since::BOTH.map(times), counts(), answers());
    let (mut curves, mut histograms) = (Vec::new(), Vec::new());
    for line in cases.lines {
        match &line.record {
            Record::Ping(ping) => {
                let name = name(&ping.conditions.transport, &ping.conditions.wait);
                add_times(&mut times, line, &name, &ping.latency);
                counts.rows.push(ping_counts(line, ping));
                histograms.extend(drawn(line, ping));
                curves.extend(curve(name, line, &ping.latency, &ping.conditions));
            }
            Record::Floor(floor) if floor.latency.is_some() => {
                let name = floor_name(floor);
                add_times(&mut times, line, &name, &floor.latency);
                counts.rows.push(floor_counts(line, floor));
                curves.extend(curve(name, line, &floor.latency, &floor.conditions));
            }
            Record::Pong(pong) => answers.rows.push(pong_row(line, pong)),
            _ => {}
        }
    }
    if counts.rows.is_empty() && answers.rows.is_empty() {
        return None;
    }
    let published = published(cases);
    // The document's tools know of no intended time.
    times[0].rows.extend(published.iter().map(|(line, at, one)| published_row(line, *at, one)));
    let mut blocks = vec![Block::Words(intro(!published.is_empty()).into())];
    let tables = times.into_iter().chain([counts, answers]);
    let tables = tables.filter(|table| !table.rows.is_empty());
    blocks.extend(tables.map(|table| Block::Table(table.without_empty_columns())));
    blocks.push(Block::Charts(charts(&curves, &published)));
    histograms.truncate(DRAWN);
    blocks.extend(histograms);
    Some(Section::new("round-trips", "Round trips", blocks))
}

/// What the figures are, and, if the document's are beside them, how far they compare.
fn intro(has_document: bool) -> String {
    let mut text = "Messages are sent on a schedule, come back, and are timed: all times are \
                    there and back, so about twice one way. From the actual time of sending is \
                    what the document's tools show; from the intended time, a message that was \
                    sent late counts as late. Bare sockets have no protocol over them: nothing \
                    that uses them can be faster."
        .to_owned();
    if has_document {
        text += " The document's figures are of another machine, or rather of two, with 10 Gb \
                 cards and a cable between them, where one thread sent, another one received and \
                 a third one answered. Here everything is one host: no card, no cable, and where \
                 it has fewer than three CPUs, one thread sends and receives.";
    }
    text
}

fn name(transport: &Option<String>, wait: &Option<String>) -> String {
    let of = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    format!("{}, {}", of(transport), of(wait))
}

fn floor_name(floor: &Floor) -> String {
    format!("bare {}", name(&floor.conditions.transport, &floor.conditions.wait))
}

fn times(since: Since) -> Table {
    let caption = format!("Round trips, from the {} time of sending", since.name());
    let mut table = Table::new(caption, &["line", "over"]);
    TIMES.iter().for_each(|(name, ..)| table.column(&format!(">{name}")));
    table.column(">samples");
    table
}

fn add_times(tables: &mut [Table; 2], line: &Line, name: &str, latency: &Option<Latency>) {
    for (table, since) in tables.iter_mut().zip(Since::BOTH) {
        let Some(times) = latency.as_ref().and_then(|latency| since.pick(latency)) else {
            continue;
        };
        let member = format!("latency.{}.", since.name());
        table.rows.push(times_row(line, name, &member, times));
    }
}

fn times_row(line: &Line, name: &str, member: &str, times: &Distribution) -> Vec<Words> {
    let cells = Cells { line };
    let mut row = vec![Words::new().line(line.id, line.place()), name.into()];
    let shown = TIMES
        .iter()
        .map(|(_, name, pick)| cells.show(pick(times), number::time, &format!("{member}{name}")));
    row.extend(shown);
    row.push(cells.count(times.samples, &format!("{member}samples")));
    row
}

/// What the document says of the load of each line, each once.
fn published<'a>(cases: &Cases<'a>) -> Vec<(&'a Line, usize, &'a PublishedTimes)> {
    let mut found: Vec<(&Line, usize, &PublishedTimes)> = Vec::new();
    for line in cases.lines {
        let Record::Ping(ping) = &line.record else { continue };
        for (at, one) in ping.published.iter().flatten().enumerate() {
            if !found.iter().any(|(.., known)| known.name == one.name) {
                found.push((line, at, one));
            }
        }
    }
    found
}

fn published_name(one: &PublishedTimes) -> String {
    format!("document: {}", one.name.as_deref().unwrap_or("unknown"))
}

fn published_row(line: &Line, at: usize, one: &PublishedTimes) -> Vec<Words> {
    let times = Distribution {
        min_ns: one.min_ns,
        mean_ns: one.mean_ns,
        p90_ns: one.p90_ns,
        p99_ns: one.p99_ns,
        p99_9_ns: one.p99_9_ns,
        p99_99_ns: one.p99_99_ns,
        p99_999_ns: one.p99_999_ns,
        max_ns: one.max_ns,
        ..Distribution::default()
    };
    times_row(line, &published_name(one), &format!("published[{at}]."), &times)
}

fn counts() -> Table {
    let columns = [
        "line",
        "over",
        ">size",
        ">asked",
        ">sent",
        ">came back",
        ">lost",
        ">repeated",
        ">damaged",
        ">recovered",
        ">rate",
        ">largest burst",
        ">in flight",
        ">late p99",
        "threads",
        "clock",
        ">CPU",
        ">receiver's CPU",
    ];
    Table::new("What was sent, and what came back", &columns)
}

fn ping_counts(line: &Line, ping: &Ping) -> Vec<Words> {
    let cells = Cells { line };
    let (traffic, conditions) = (&ping.traffic, &ping.conditions);
    vec![
        Words::new().line(line.id, line.place()),
        name(&conditions.transport, &conditions.wait).into(),
        cells.text(ping.size.map(|size| format!("{size} B"))),
        cells.text(ping.rate_asked.map(number::asked)),
        cells.count(ping.sent, "sent"),
        cells.count(traffic.received, "received"),
        cells.count(traffic.told_lost, "told_lost"),
        cells.count(traffic.duplicated, "duplicated"),
        cells.count(traffic.damaged, "damaged"),
        cells.count(traffic.recovered, "recovered"),
        cells.show(ping.rate, number::rate, "rate"),
        cells.count(ping.largest_burst, "largest_burst"),
        cells.count(ping.most_in_flight, "most_in_flight"),
        cells.time(ping.lateness.as_ref().and_then(|late| late.p99_ns), "lateness.p99_ns"),
        cells.text(ping.threads.as_deref()),
        cells.text(conditions.clock.as_deref()),
        cells.count(conditions.ran_on(), "cpus.ran_on"),
        cells.count(
            ping.receiver.as_ref().and_then(|receiver| receiver.ran_on()),
            "receiver.cpus.ran_on",
        ),
    ]
}

fn floor_counts(line: &Line, floor: &Floor) -> Vec<Words> {
    let cells = Cells { line };
    let none = Words::new;
    vec![
        Words::new().line(line.id, line.place()),
        floor_name(floor).into(),
        cells.text(floor.size.map(|size| format!("{size} B"))),
        cells.text(floor.rate_asked.map(number::asked)),
        cells.count(floor.sent, "sent"),
        cells.count(floor.received, "received"),
        cells.count(floor.lost, "lost"),
        none(),
        none(),
        none(),
        cells.show(floor.rate, number::rate, "rate"),
        none(),
        none(),
        cells.time(floor.lateness.as_ref().and_then(|late| late.p99_ns), "lateness.p99_ns"),
        none(),
        cells.text(floor.conditions.clock.as_deref()),
        cells.count(floor.conditions.ran_on(), "cpus.ran_on"),
        cells.count(
            floor.receiver.as_ref().and_then(|receiver| receiver.ran_on()),
            "receiver.cpus.ran_on",
        ),
    ]
}

fn answers() -> Table {
    let columns =
        ["line", "over", ">received", ">sent back", ">lost", ">at once", ">back-pressured", ">CPU"];
    Table::new("The side that answered", &columns)
}

fn pong_row(line: &Line, pong: &Pong) -> Vec<Words> {
    let cells = Cells { line };
    vec![
        Words::new().line(line.id, line.place()),
        name(&pong.conditions.transport, &pong.conditions.wait).into(),
        cells.count(pong.traffic.received, "received"),
        cells.count(pong.answered, "answered"),
        cells.count(pong.traffic.told_lost, "told_lost"),
        cells.count(pong.most_at_once, "most_at_once"),
        cells.count(pong.back_pressured, "back_pressured"),
        cells.count(pong.conditions.ran_on(), "cpus.ran_on"),
    ]
}

/// The document's histogram, linear and logarithmic, or else one of the distribution.
fn drawn(line: &Line, ping: &Ping) -> Option<Block> {
    let over = name(&ping.conditions.transport, &ping.conditions.wait);
    let linear = ping.linear.as_ref().and_then(|linear| {
        let title = format!("{over}: {}", single::linear_title(line, linear));
        histogram::of_linear(title, line.id, linear)
    });
    linear.or_else(|| {
        let title = format!("{over}, from the actual time, {}", line.place());
        histogram::of(title, line.id, ping.latency.as_ref()?.actual.as_ref()?)
    })
}

/// A curve, and how its threads waited.
type Waiting<'a> = (&'a str, Curve<'a>);

fn curve<'a>(
    name: String,
    line: &Line,
    latency: &'a Option<Latency>,
    conditions: &'a Conditions,
) -> Option<Waiting<'a>> {
    let times = Since::Actual.pick(latency.as_ref()?)?;
    let name = format!("{name}, {}", line.place());
    let curve = Curve { name, voice: Voice::Own(0), line: line.id, times };
    Some((conditions.wait.as_deref().unwrap_or("unknown"), curve))
}

/// A chart for each way to wait; the document's threads spin.
fn charts(curves: &[Waiting<'_>], published: &[(&Line, usize, &PublishedTimes)]) -> Vec<Chart> {
    let mut waits: Vec<&str> = Vec::new();
    for (wait, _) in curves {
        if !waits.contains(wait) {
            waits.push(wait);
        }
    }
    let chart = |wait: &str| {
        let own = curves.iter().filter(|(of, _)| *of == wait).enumerate();
        let own = own.map(|(at, (_, curve))| Curve {
            name: curve.name.clone(),
            voice: Voice::Own(at),
            ..*curve
        });
        let beside = if wait == SPINNING { published } else { &[] };
        chart(wait, &own.collect::<Vec<_>>(), beside)
    };
    waits.into_iter().filter_map(chart).collect()
}

/// Every line by percentile, with the document's percentiles as single points.
fn chart(
    wait: &str,
    curves: &[Curve<'_>],
    published: &[(&Line, usize, &PublishedTimes)],
) -> Option<Chart> {
    let title = format!("Round trips by percentile, from the actual time, {wait}");
    let mut chart = by_percentile(title, curves)?;
    let others = published.iter().enumerate().map(|(at, (line, _, one))| Series {
        name: published_name(one),
        voice: Voice::Peer(at),
        marks: Marks::Dotted(points(line, one)),
    });
    chart.series.extend(others);
    let points = || chart.series.iter().flat_map(Series::points);
    let least = points().map(|point| point.y).reduce(f64::min)?;
    let most = points().map(|point| point.y).reduce(f64::max)?;
    let far = points().map(|point| point.x).reduce(f64::max)?;
    chart.x = axis::percentiles(far);
    chart.y = axis::logarithmic("round trip", least, most, number::time_tick);
    Some(chart)
}

fn points(line: &Line, one: &PublishedTimes) -> Vec<Point> {
    let times = [one.p90_ns, one.p99_ns, one.p99_9_ns, one.p99_99_ns, one.p99_999_ns];
    let known = ONE_IN.into_iter().zip(times).filter_map(|(x, ns)| Some((x, ns? as f64)));
    known
        .map(|(x, ns)| Point {
            x,
            y: ns,
            line: line.id,
            title: format!(
                "{}: {}% at most {}",
                published_name(one),
                100.0 - 100.0 / x,
                number::time(ns).text()
            ),
        })
        .collect()
}
