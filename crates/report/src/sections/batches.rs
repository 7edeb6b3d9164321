//! Density and throughput by batch size: the two graphs of the Y-suite document.

use crate::axis;
use crate::document::{Axis, Block, Chart, Figure, Marks, Origin, Point, Series};
use crate::line::{Kind, Line};
use crate::number;
use crate::spread::Spread;

/// The lower end of the axis: no message takes less.
const LEAST_NS: f64 = 0.01;

/// One curve of both graphs.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) origin: Origin,
    /// Figures by batch.
    pub(super) points: Vec<(u64, Figure)>,
}

impl Curve {
    /// A single reference figure.
    pub(super) fn mark(name: String, batch: u64, density: Figure) -> Self {
        Self { name, origin: Origin::Document, points: vec![(batch, density)] }
    }
}

/// The time of a message, over repetitions.
pub(super) fn density<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Option<Spread> {
    over(lines, "density_ns", number::time)
}

/// Messages a second, over repetitions.
pub(super) fn rate<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Option<Spread> {
    over(lines, "rate", number::rate)
}

fn over<'a>(
    lines: impl IntoIterator<Item = &'a Line>,
    path: &str,
    show: fn(f64) -> number::Quantity,
) -> Option<Spread> {
    Spread::of(lines.into_iter().filter_map(|line| line.figure(path, show)))
}

/// Local sockets between two CPUs: the comparison for everything between threads.
pub(super) fn sockets(lines: &[Line]) -> Option<Curve> {
    let found = lines.iter().filter(|line| {
        line.kind == Kind::Pipes
            && line.is("transport", "socketpair")
            && line.is("experiment", "throughput")
            && line.is("seats", "two")
    });
    curve("local sockets".to_owned(), Origin::Peer(0), found.filter_map(with_batch))
}

/// The batch size of a line, and the line.
pub(super) fn with_batch(line: &Line) -> Option<(u64, &Line)> {
    Some((line.whole("batch")?, line))
}

/// The medians of `lines`, each with its batch.
pub(super) fn curve<'a>(
    name: String,
    origin: Origin,
    lines: impl Iterator<Item = (u64, &'a Line)>,
) -> Option<Curve> {
    let lines: Vec<(u64, &Line)> = lines.collect();
    let mut batches: Vec<u64> = lines.iter().map(|(batch, _)| *batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let at = |batch| lines.iter().filter(move |one| one.0 == batch).map(|one| one.1);
    let points = batches.into_iter().filter_map(|batch| Some((batch, density(at(batch))?.median)));
    let points: Vec<(u64, Figure)> = points.filter(|(_, density)| density.value > 0.0).collect();
    (!points.is_empty()).then_some(Curve { name, origin, points })
}

/// Both graphs, if there is more than one batch to be seen.
pub(super) fn charts(of: &str, curves: &[Curve]) -> Option<Block> {
    if !curves.iter().any(|curve| curve.points.len() > 1) {
        return None;
    }
    let charts = [
        chart(of, "Density", curves, |density| density, densities, number::time),
        chart(of, "Throughput", curves, |density| 1e9 / density, rates, number::rate),
    ];
    Some(Block::Charts(charts.into()))
}

fn densities(least: f64, most: f64) -> Axis {
    axis::logarithmic_above(LEAST_NS, "time of a message", least, most, number::time_tick)
}

fn rates(least: f64, most: f64) -> Axis {
    axis::logarithmic("messages per second", least, most, number::rate_tick)
}

fn chart(
    of: &str,
    what: &str,
    curves: &[Curve],
    value: fn(f64) -> f64,
    axis_of: fn(f64, f64) -> Axis,
    show: fn(f64) -> number::Quantity,
) -> Chart {
    let values = || curves.iter().flat_map(|curve| &curve.points).map(|(_, d)| value(d.value));
    let batches = curves.iter().flat_map(|curve| &curve.points).map(|(batch, _)| *batch as f64);
    let series = curves.iter().map(|curve| {
        let points = curve.points.iter().map(|(batch, density)| {
            let y = value(density.value);
            let title = format!("{}, batch of {batch}: {}", curve.name, show(y).text());
            Point { x: *batch as f64, y, line: density.line, title }
        });
        let marks = Marks::Dotted(points.collect());
        Series { name: curve.name.clone(), origin: curve.origin, marks }
    });
    let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    let names = names.join(", ");
    Chart {
        title: format!("{what} by batch size: {of}"),
        description: format!(
            "{what} by batch size, both axes logarithmic: {names}. The table has the figures."
        ),
        x: axis::doublings("messages in a batch", batches.fold(1.0, f64::max)),
        y: axis_of(values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)),
        series: series.collect(),
    }
}
