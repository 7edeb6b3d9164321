//! Density and throughput by batch size: the two graphs of the Y-suite document.

use crate::axis;
use crate::document::{Axis, Block, Chart, Figure, Marks, Point, Series, Voice};
use crate::line::{Line, Record};
use crate::number;
use crate::spread::Spread;
use crate::threads::{Outcome, PipesCase};

/// Nothing that is measured here takes less.
const FLOOR_NS: f64 = 0.01;

/// One curve of both graphs.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) voice: Voice,
    /// By batch.
    pub(super) points: Vec<(u64, Figure)>,
}

impl Curve {
    /// A single figure of a document.
    pub(super) fn mark(name: String, batch: u64, density: Figure) -> Self {
        Self { name, voice: Voice::Document, points: vec![(batch, density)] }
    }
}

/// The time of a message, over repetitions.
pub(super) fn density<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Option<Spread> {
    over(lines, "density_ns", |outcome| outcome.density_ns, number::time)
}

/// Messages a second, over repetitions.
pub(super) fn rate<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Option<Spread> {
    over(lines, "rate", |outcome| outcome.rate, number::rate)
}

fn over<'a>(
    lines: impl IntoIterator<Item = &'a Line>,
    member: &str,
    pick: fn(&Outcome) -> Option<f64>,
    show: fn(f64) -> number::Quantity,
) -> Option<Spread> {
    Spread::of(lines.into_iter().filter_map(|line| {
        let value = pick(line.outcome()?)?;
        Some(Figure::new(value, show(value), line.id, member))
    }))
}

/// The local sockets of `lines` that had two CPUs: what everything between threads is compared
/// with.
pub(super) fn sockets(lines: &[Line]) -> Option<Curve> {
    let is_it = |case: &PipesCase| {
        case.transport.as_deref() == Some("socketpair")
            && case.experiment.as_deref() == Some("throughput")
            && case.seats.as_deref() == Some("two")
    };
    let found = lines.iter().filter_map(|line| match &line.record {
        Record::Pipes(pipes) if is_it(&pipes.case) => Some((pipes.case.batch?, line)),
        _ => None,
    });
    curve("local sockets".to_owned(), Voice::Peer(0), found)
}

/// The medians of `lines`, each with its batch.
pub(super) fn curve<'a>(
    name: String,
    voice: Voice,
    lines: impl Iterator<Item = (u64, &'a Line)>,
) -> Option<Curve> {
    let lines: Vec<(u64, &Line)> = lines.collect();
    let mut batches: Vec<u64> = lines.iter().map(|(batch, _)| *batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let at = |batch| lines.iter().filter(move |one| one.0 == batch).map(|one| one.1);
    let points = batches.into_iter().filter_map(|batch| Some((batch, density(at(batch))?.median)));
    let points: Vec<(u64, Figure)> = points.filter(|(_, density)| density.value > 0.0).collect();
    (!points.is_empty()).then_some(Curve { name, voice, points })
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
    axis::logarithmic_above(FLOOR_NS, "time of a message", least, most, number::time_tick)
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
        Series { name: curve.name.clone(), voice: curve.voice, marks }
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
