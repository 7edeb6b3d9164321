//! Charts that several sections draw.

use crate::axis;
use crate::distribution::Distribution;
use crate::document::{Axis, Chart, Marks, Origin, Point, Series};
use crate::line::Line;
use crate::number;

/// One curve of a chart by percentile.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) line: usize,
    pub(super) times: &'a Distribution,
}

impl<'a> Curve<'a> {
    /// The distribution at `path`; none without buckets.
    pub(super) fn of(name: String, origin: Origin, line: &'a Line, path: &str) -> Option<Self> {
        Some(Self { name, origin, line: line.id, times: line.times(path)? })
    }
}

/// Latency by percentile, both axes logarithmic; none if nothing was counted.
pub(super) fn by_percentile(title: String, curves: &[Curve<'_>]) -> Option<Chart> {
    let drawn: Vec<&Curve<'_>> = curves.iter().filter(|curve| curve.times.has_buckets()).collect();
    let samples = drawn.iter().map(|curve| curve.times.counted()).max()?;
    let least = drawn.iter().filter_map(|curve| curve.times.least()).min()?;
    let most = drawn.iter().filter_map(|curve| curve.times.most()).max()?;
    let series = drawn.iter().map(|curve| Series {
        name: curve.name.clone(),
        origin: curve.origin,
        marks: Marks::Curve(points(curve)),
    });
    Some(Chart {
        description: format!(
            "Latency by percentile for {}: the time that so many per cent of the samples do not \
             exceed, from {} to {}.",
            drawn.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>().join(", "),
            number::time(least as f64).text(),
            number::time(most as f64).text(),
        ),
        title,
        x: axis::percentiles(samples as f64),
        y: axis::logarithmic("latency", least as f64, most as f64, number::time_tick),
        series: series.collect(),
    })
}

/// The points of a curve, with titles at 90, 99, 99.9 per cent and so on.
fn points(curve: &Curve<'_>) -> Vec<Point> {
    let steps = curve.times.curve().into_iter().enumerate();
    steps
        .map(|(step, (x, ns))| {
            let nines = step / 8;
            let is_named = step % 8 == 0 && nines > 0;
            let digits = nines.saturating_sub(2);
            let percent = 100.0 - 100.0 / x;
            let title = format!(
                "{}: {percent:.digits$}% at most {}",
                curve.name,
                number::time(ns as f64).text()
            );
            let title = if is_named { title } else { String::new() };
            Point { x, y: ns as f64, line: curve.line, title }
        })
        .collect()
}

/// Rates as lines with dots.
pub(super) fn rates(title: &str, x: Axis, series: Vec<Series>) -> Option<Chart> {
    let points = || series.iter().flat_map(|series| series.points());
    let most = points().map(|point| point.y).reduce(f64::max)?;
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    Some(Chart {
        title: title.to_owned(),
        description: format!("{title}: {}. The table has the figures.", names.join(", ")),
        x,
        y: axis::linear("messages per second", most, number::rate_tick),
        series,
    })
}
