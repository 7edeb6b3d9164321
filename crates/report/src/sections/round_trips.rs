//! Round trips of messages on a schedule, beside bare sockets and the UM latency document.

use super::chart::{Curve, by_percentile};
use super::{histogram, single};
use crate::axis;
use crate::cases::{Cases, TIMES};
use crate::document::{Block, Chart, ColumnOf, Marks, Origin, Point, Section, Series, Table};
use crate::line::{Kind, Line};
use crate::number;
use crate::since::Since;
use serde_json::Value;

/// The most histograms drawn; the tables have all lines.
const DRAWN: usize = 12;
/// The wait strategy of the document's threads.
const SPINNING: &str = "spin";
/// The document's percentiles: one in so many samples lies beyond, and the member.
const PERCENTILES: [(f64, &str); 5] = [
    (10.0, "p90_ns"),
    (100.0, "p99_ns"),
    (1000.0, "p99_9_ns"),
    (10_000.0, "p99_99_ns"),
    (100_000.0, "p99_999_ns"),
];

/// Messages there and back: of pings, and of bare sockets.
const COUNTS: [ColumnOf<Line>; 19] = [
    ("line", Line::link),
    ("over", |line| name(line).into()),
    (">size", |line| line.size("size")),
    (">asked", Line::asked),
    (">sent", |line| line.count("sent")),
    (">came back", |line| line.count("received")),
    (">lost", |line| {
        line.count(if line.kind == Kind::Baseline { "lost" } else { "reported_lost" })
    }),
    (">repeated", |line| line.count("duplicated")),
    (">damaged", |line| line.count("damaged")),
    (">recovered", |line| line.count("recovered")),
    (">not stable", |line| line.count("persistence.left_in_flight")),
    (">rate", |line| line.cell("rate", number::rate)),
    (">largest burst", |line| line.count("largest_burst")),
    (">in flight", |line| line.count("most_in_flight")),
    (">late p99", |line| line.cell("lateness.p99_ns", number::time)),
    ("threads", |line| line.word("threads")),
    ("clock", |line| line.word("clock")),
    (">CPU", |line| line.count("cpus.ran_on")),
    (">receiver's CPU", |line| line.count("receiver.cpus.ran_on")),
];

const ANSWERS: [ColumnOf<Line>; 8] = [
    ("line", Line::link),
    ("over", |line| name(line).into()),
    (">received", |line| line.count("received")),
    (">sent back", |line| line.count("answered")),
    (">lost", |line| line.count("reported_lost")),
    (">at once", |line| line.count("most_at_once")),
    (">back-pressured", |line| line.count("back_pressured")),
    (">CPU", |line| line.count("cpus.ran_on")),
];

/// Reference figures of the document: the line that has them, and their path.
type Reference<'a> = (&'a Line, String);

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let is_timed = |line: &&Line| match line.kind {
        Kind::Ping => true,
        Kind::Baseline => line.at("latency").is_some(),
        _ => false,
    };
    let lines: Vec<&Line> = cases.lines.iter().filter(is_timed).collect();
    let answers = Table::of("The side that answered", &ANSWERS, cases.of_kind(Kind::Pong));
    if lines.is_empty() && answers.rows.is_empty() {
        return None;
    }
    let references = references(cases);
    let mut times = Since::BOTH.map(|since| times(since, &lines));
    // The document's tools measure from the actual time only.
    times[0].rows.extend(references.iter().map(|(line, path)| {
        single::times_row(line, &reference_name(line, path), &format!("{path}."))
    }));
    let counts = Table::of("What was sent, and what came back", &COUNTS, lines.iter().copied());
    let has_veth = lines.iter().any(|line| is_over_veth(line));
    let mut blocks = vec![Block::Words(intro(!references.is_empty(), has_veth).into())];
    blocks.extend(times.into_iter().chain([counts, answers]).filter_map(Table::block));
    blocks.push(Block::Charts(charts(&lines, &references)));
    let pings = lines.iter().filter(|line| line.kind == Kind::Ping);
    blocks.extend(pings.filter_map(|line| drawn(line)).take(DRAWN));
    Some(Section::new("round-trips", "Round trips", blocks))
}

/// An explanation of the figures, and of the document's and those over veth if they are there.
fn intro(has_document: bool, has_veth: bool) -> String {
    let mut text = "Messages are sent on a schedule, come back, and are timed: all times are \
                    there and back, so about twice one way. From the actual time of sending is \
                    what the document's tools show; from the intended time, a message that was \
                    sent late counts as late. Bare sockets have no protocol over them: nothing \
                    that uses them can be faster. SPP and RPP: a store keeps the messages, \
                    source-paced or receiver-paced; it is beside the path."
        .to_owned();
    if has_veth {
        text += " Over veth the two sides are in two network namespaces with a virtual cable \
                 between them; by xdp, datagrams pass the kernel's network stack by there \
                 (AF_XDP), as with the document's Onload.";
    }
    if has_document {
        text += " The document's figures are of another machine, or rather of two, with 10 Gb \
                 cards and a cable between them, where one thread sent, another one received and \
                 a third one answered. Here everything is one host: no card, no cable, and where \
                 it has fewer than three CPUs, one thread sends and receives.";
    }
    text
}

/// Transport, stores, way of the datagrams and wait strategy, such as `shm, spin`.
fn name(line: &Line) -> String {
    let of = |path| line.text(path).unwrap_or("unknown");
    let bare = if line.kind == Kind::Baseline { "bare " } else { "" };
    let kept = match line.text("persistence.mode") {
        Some("s") => " + SPP",
        Some("r") => " + RPP",
        _ => "",
    };
    let io = line.text("io").filter(|io| *io != "sockets");
    let way = match (line.text("io_fallback"), io) {
        (Some(reason), _) => format!(" (fell back to sockets: {reason})"),
        (None, Some(io)) => format!(" by {io}"),
        (None, None) => String::new(),
    };
    let warm = if line.text("keep_warm").is_some() { " kept warm" } else { "" };
    let cable = if is_over_veth(line) { " over veth" } else { "" };
    format!("{bare}{}{kept}{way}{warm}{cable}, {}", of("transport"), of("wait"))
}

/// Whether the two sides were in two network namespaces with a cable between them.
fn is_over_veth(line: &Line) -> bool {
    line.at("namespaces").and_then(Value::as_bool) == Some(true)
}

fn times(since: Since, lines: &[&Line]) -> Table {
    let caption = format!("Round trips, from the {} time of sending", since.name());
    let mut table = Table::new(caption, &["line", "over"]);
    TIMES.iter().for_each(|(name, _)| table.column(&format!(">{name}")));
    table.column(">samples");
    let path = since.path("");
    let known = lines.iter().filter(|line| line.at(&path).is_some());
    table.rows =
        known.map(|line| single::times_row(line, &name(line), &format!("{path}."))).collect();
    table
}

/// The document's figures for the loads of all lines, each once.
fn references<'a>(cases: &Cases<'a>) -> Vec<Reference<'a>> {
    let mut found: Vec<Reference<'_>> = Vec::new();
    for line in cases.of_kind(Kind::Ping) {
        for at in 0..line.list("reference").len() {
            let path = format!("reference[{at}]");
            let name = reference_name(line, &path);
            if !found.iter().any(|(line, path)| reference_name(line, path) == name) {
                found.push((line, path));
            }
        }
    }
    found
}

fn reference_name(line: &Line, path: &str) -> String {
    format!("document: {}", line.text(&format!("{path}.name")).unwrap_or("unknown"))
}

/// The document's histogram, linear and logarithmic, or else one of the distribution.
fn drawn(line: &Line) -> Option<Block> {
    let over = name(line);
    single::linear(line, "linear", &format!("{over}: ")).or_else(|| {
        let title = format!("{over}, from the actual time, {}", line.place());
        histogram::of(title, line, &Since::Actual.path(""))
    })
}

/// A chart for each wait strategy; the document's threads spin.
fn charts(lines: &[&Line], references: &[Reference<'_>]) -> Vec<Chart> {
    let path = Since::Actual.path("");
    let timed: Vec<&Line> = lines.iter().copied().filter(|line| line.at(&path).is_some()).collect();
    let wait_of = |line: &Line| line.text("wait").unwrap_or("unknown").to_owned();
    let mut waits: Vec<String> = Vec::new();
    for line in &timed {
        if !waits.contains(&wait_of(line)) {
            waits.push(wait_of(line));
        }
    }
    let chart = |wait: String| {
        let own = timed.iter().filter(|line| wait_of(line) == wait).enumerate();
        let own = own.filter_map(|(at, line)| {
            let name = format!("{}, {}", name(line), line.place());
            Curve::of(name, Origin::Own(at), line, &path)
        });
        let beside = if wait == SPINNING { references } else { &[] };
        chart(&wait, &own.collect::<Vec<_>>(), beside)
    };
    waits.into_iter().filter_map(chart).collect()
}

/// All curves by percentile, with the document's percentiles as single points.
fn chart(wait: &str, curves: &[Curve<'_>], references: &[Reference<'_>]) -> Option<Chart> {
    let title = format!("Round trips by percentile, from the actual time, {wait}");
    let mut chart = by_percentile(title, curves)?;
    let others = references.iter().enumerate().map(|(at, reference)| Series {
        name: reference_name(reference.0, &reference.1),
        origin: Origin::Peer(at),
        marks: Marks::Dotted(points(reference)),
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

fn points((line, path): &Reference<'_>) -> Vec<Point> {
    let point = |(x, member): (f64, &str)| {
        let y = line.real(&format!("{path}.{member}"))?;
        let (name, percent) = (reference_name(line, path), 100.0 - 100.0 / x);
        let title = format!("{name}: {percent}% at most {}", number::time(y).text());
        Some(Point { x, y, line: line.id, title })
    };
    PERCENTILES.into_iter().filter_map(point).collect()
}
