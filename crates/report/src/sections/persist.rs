//! The series with and without stores, beside the UM throughput document and the disk's ceiling.

use super::persist_cases::{Group, groups, is_paced, spread};
use super::{chart, live_path};
use crate::axis;
use crate::cases::Cases;
use crate::document::{
    Block, Chart, Figure, Marks, Origin, Point, Section, Series, Table, Words, cell,
};
use crate::line::{Kind, Line};
use crate::number::{self, Quantity};
use crate::spread::{times, words};

/// The case of a bare program.
const CEILING: &str = "ceiling";
const REFERENCE: &str = "document_rate";

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let groups = groups(cases);
    if groups.is_empty() {
        return None;
    }
    let intro = "One publisher sends flat out to one subscriber, and stores keep the messages \
                 beside the path: source-paced (SPP), where only a full flight of messages that \
                 no quorum has on disk holds the publisher back, or receiver-paced (RPP), where \
                 messages count until they are consumed. A rate runs until the last message is \
                 out of flight. The ceiling is what a bare program appends to a file on the same \
                 disk, with an fdatasync after each flight: as many messages and bytes as may be \
                 in flight to stores; through the page cache or past it, the faster counts. \
                 Document: UM over 10 Gb Ethernet, with publisher, \
                 subscriber and stores on hosts of their own, and for three topics a store for \
                 each; here all share the CPUs of one host.";
    let several = cases.has_several_files(Kind::Persist);
    let (paced, flat_out): (Vec<Group<'_>>, Vec<Group<'_>>) =
        groups.iter().cloned().partition(is_paced);
    let mut blocks = Vec::new();
    if !flat_out.is_empty() {
        blocks.push(Block::Words(intro.into()));
        blocks.extend(table(&flat_out, several).block());
        let charts = rates(&flat_out, several).into_iter().chain(shares(&flat_out));
        let charts: Vec<Chart> = charts.collect();
        if !charts.is_empty() {
            blocks.push(Block::Charts(charts));
        }
    }
    blocks.extend(live_path::blocks(&paced, several));
    blocks.extend(losses(&groups).block());
    Some(Section::new("persist", "Messages that stores keep", blocks))
}

fn reference(lines: &[&Line]) -> Option<Figure> {
    lines.iter().find_map(|line| line.figure(REFERENCE, number::rate))
}

/// A share that is asked for, such as `80 %`.
fn asked(lines: &[&Line]) -> Words {
    let of = |path: &str, what: &str| {
        let share = lines.iter().find_map(|line| line.real(path))?;
        Some(format!("{} of {what}", number::percent(share).text()))
    };
    let found = of("asked_of_ceiling", "the ceiling").or_else(|| of("asked_of_spp", "1 SPP"));
    found.map(Words::from).unwrap_or_default()
}

fn table(groups: &[Group<'_>], several: bool) -> Table {
    let columns = [
        "test",
        "file",
        ">stores",
        ">topics",
        ">size",
        ">rate",
        ">throughput",
        ">of the ceiling",
        ">of 1 SPP",
        "asked",
        ">document",
        ">to the document",
        ">most in flight",
    ];
    let mut table = Table::new("Messages a second, flat out", &columns);
    for ((case, file), lines) in groups {
        let rate = spread(lines, "rate", number::rate);
        let document = reference(lines);
        let first = lines[0];
        table.rows.push(vec![
            (*case).into(),
            if several { (*file).into() } else { Words::new() },
            first.count("stores"),
            first.count("topics"),
            first.size("size"),
            words(rate.clone()),
            words(spread(lines, "bytes_per_second", number::megabytes)),
            words(spread(lines, "of_ceiling", number::percent)),
            words(spread(lines, "of_spp", number::percent)),
            asked(lines),
            cell(document.clone()),
            times(rate.as_ref(), document.as_ref()),
            words(spread(lines, "persistence.most_in_flight", number::whole)),
        ]);
    }
    table.without_empty_columns()
}

/// Runs in which a message was lost, or not safe at the end.
fn losses(groups: &[Group<'_>]) -> Table {
    let columns = ["line", "test", ">sent", ">received", ">lost", ">not stable", ">stores lost"];
    let mut table = Table::new("What went wrong", &columns);
    for ((case, _), lines) in groups {
        let left = |line: &Line| line.whole("persistence.left_in_flight").unwrap_or(0);
        for line in lines.iter().filter(|line| line.wrong() > 0 || left(line) > 0) {
            table.rows.push(vec![
                line.link(),
                (*case).into(),
                line.count("sent"),
                line.count("received"),
                line.count("lost"),
                line.count("persistence.left_in_flight"),
                line.count("persistence.stores_lost"),
            ]);
        }
    }
    table
}

/// A point for each case that has `path`, at the place of the case.
fn points(groups: &[Group<'_>], path: &str, show: fn(f64) -> Quantity) -> Vec<Point> {
    let point = |(place, ((case, _), lines)): (usize, &Group<'_>)| {
        let figure = spread(lines, path, show)?.median;
        let title = format!("{case}: {}", figure.shown.text());
        Some(Point { x: place as f64, y: figure.value, line: figure.line, title })
    };
    groups.iter().enumerate().filter_map(point).collect()
}

fn places(groups: &[Group<'_>], several: bool) -> Vec<String> {
    let name = |((case, file), _): &Group<'_>| {
        if several { format!("{case}, {file}") } else { (*case).to_owned() }
    };
    groups.iter().map(name).collect()
}

/// Rates of the cases, with the document's.
fn rates(groups: &[Group<'_>], several: bool) -> Option<Chart> {
    let own = points(groups, "rate", number::rate);
    let document = points(groups, REFERENCE, number::rate);
    let mut series =
        vec![Series { name: "here".to_owned(), origin: Origin::Own(0), marks: Marks::Dotted(own) }];
    if !document.is_empty() {
        let marks = Marks::Dotted(document);
        series.push(Series { name: "document".to_owned(), origin: Origin::Document, marks });
    }
    let x = axis::places("test", places(groups, several));
    chart::rates("Messages a second, by test", x, series)
}

/// Shares of the disk's ceiling; none without stores.
fn shares(groups: &[Group<'_>]) -> Option<Chart> {
    let kept: Vec<&Group<'_>> = groups.iter().filter(|((case, _), _)| *case != CEILING).collect();
    let kept: Vec<Group<'_>> = kept.into_iter().cloned().collect();
    let found = points(&kept, "of_ceiling", number::percent);
    let asked = points(&kept, "asked_of_ceiling", number::percent);
    let most = found.iter().chain(&asked).map(|point| point.y).reduce(f64::max)?;
    let series = [("here", Origin::Own(0), found), ("asked", Origin::Peer(0), asked)];
    let series = series.into_iter().filter(|(.., points)| !points.is_empty());
    let series = series.map(|(name, origin, points)| Series {
        name: name.to_owned(),
        origin,
        marks: Marks::Dotted(points),
    });
    let title = "Share of the disk's ceiling, by test";
    let x = axis::places("test", places(&kept, false));
    let chart = chart::rates(title, x, series.collect())?;
    Some(Chart { y: axis::linear("share of the ceiling", most, number::percent), ..chart })
}
