//! Charts as drawings within the page. Colours are the page's, so that light and dark fit.

use super::element::{Element, element};
use crate::axis;
use crate::distribution::Bin;
use crate::document::{Axis, Chart, Histogram, Marks, Origin, Point, Series};
use crate::number;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 44.0;
/// Width of a character of a name below the axis.
const CHARACTER: f64 = 8.0;

/// A chart with its title and its legend.
pub(super) fn figure(chart: &Chart) -> Element {
    let caption = element("figcaption").text(&chart.title);
    let figure = element("figure").child(caption).child(drawing(chart));
    let figure = if chart.series.len() > 1 { figure.child(legend(&chart.series)) } else { figure };
    // The script says here what the pointer is on.
    figure.child(element("output").set("aria-hidden", "true"))
}

/// Twice: the bulk evenly spaced, and everything with logarithmic axes.
pub(super) fn histogram(histogram: &Histogram) -> [Element; 2] {
    let most = |bins: &[Bin]| bins.iter().map(|bin| bin.count).max().unwrap_or(0) as f64;
    let ends = |bins: &[Bin]| {
        let from = bins.first().map_or(0.0, |bin| bin.from_ns);
        (from, bins.last().map_or(1.0, |bin| bin.to_ns))
    };
    let series = |bars: &[Bin]| {
        let marks = Marks::Bars { line: histogram.line, bars: bars.to_vec() };
        vec![Series { name: "samples".to_owned(), origin: Origin::Own(0), marks }]
    };
    let (from, to) = ends(&histogram.bulk);
    let beyond = match histogram.beyond {
        0 => String::new(),
        count => format!(" ({} beyond)", number::count(count).text()),
    };
    let even = Chart {
        title: format!("{}{beyond}", histogram.title),
        description: format!("Histogram of {}: how many samples took how long.", histogram.title),
        x: axis::times(from, to),
        y: axis::linear("samples", most(&histogram.bulk), number::short_count),
        series: series(&histogram.bulk),
    };
    let (from, to) = ends(&histogram.all);
    let logarithmic = Chart {
        title: "All samples, both axes logarithmic".to_owned(),
        description: format!(
            "Histogram of {}, with logarithmic axes, so that single outliers show.",
            histogram.title
        ),
        x: axis::logarithmic("latency", from, to, number::time_tick),
        y: axis::counts(most(&histogram.all)),
        series: series(&histogram.all),
    };
    [figure(&even), figure(&logarithmic)]
}

fn drawing(chart: &Chart) -> Element {
    element("svg")
        .set("viewBox", format!("0 0 {WIDTH} {HEIGHT}"))
        .set("role", "img")
        .set("aria-label", &chart.description)
        .children(vertical(&chart.y))
        .children(horizontal(&chart.x))
        .children(chart.series.iter().map(|series| drawn(series, chart)))
}

fn at_x(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.place(value) * (WIDTH - LEFT - RIGHT)
}

fn at_y(axis: &Axis, value: f64) -> f64 {
    HEIGHT - BOTTOM - axis.place(value) * (HEIGHT - TOP - BOTTOM)
}

/// A coordinate, short.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

pub(super) fn line(x: [f64; 2], y: [f64; 2], class: &'static str) -> Element {
    element("line")
        .class(class)
        .set("x1", short(x[0]))
        .set("x2", short(x[1]))
        .set("y1", short(y[0]))
        .set("y2", short(y[1]))
}

pub(super) fn label(x: f64, y: f64, anchor: &'static str, text: &str) -> Element {
    element("text").set("x", short(x)).set("y", short(y)).set("text-anchor", anchor).text(text)
}

/// Rules across, each with its name, and the axis below them.
fn vertical(axis: &Axis) -> Vec<Element> {
    let across = |y: f64, class| line([LEFT, WIDTH - RIGHT], [y, y], class);
    let ticks = axis.ticks.iter().flat_map(|(value, name)| {
        let y = at_y(axis, *value);
        [across(y, "rule"), label(LEFT - 6.0, y + 4.0, "end", name)]
    });
    ticks.chain(Some(across(HEIGHT - BOTTOM, "axis"))).collect()
}

/// Names below, and what they are names of.
fn horizontal(axis: &Axis) -> Vec<Element> {
    let bottom = HEIGHT - BOTTOM;
    let mut free = 0.0;
    let ticks = axis.ticks.iter().flat_map(|(value, name)| {
        let x = at_x(axis, *value);
        let half = name.chars().count() as f64 * CHARACTER / 2.0;
        // The last name stays within the drawing; one that would touch another is left out.
        let (anchor, left) =
            if x + half > WIDTH { ("end", x - 2.0 * half) } else { ("middle", x - half) };
        let name = (left >= free).then(|| label(x, bottom + 18.0, anchor, name));
        free = if name.is_some() { left + 2.0 * half } else { free };
        Some(line([x, x], [bottom, bottom + 4.0], "axis")).into_iter().chain(name)
    });
    let ticks: Vec<Element> = ticks.collect();
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let name = label(middle, HEIGHT - 6.0, "middle", &axis.label).class("name");
    ticks.into_iter().chain(Some(name)).collect()
}

fn drawn(series: &Series, chart: &Chart) -> Element {
    let group = element("g").class(class(series.origin));
    match &series.marks {
        Marks::Dotted(points) | Marks::Curve(points) => {
            let path = element("path").class("line").set("d", path(points, chart));
            let dots = points.iter().filter(|point| !point.title.is_empty());
            group.child(path).children(dots.map(|point| dot(point, series.origin, chart)))
        }
        Marks::Bars { line, bars } => {
            let bars = bars.iter().filter(|bin| bin.count > 0).map(|bin| bar(bin, chart));
            group.child(link(*line).children(bars))
        }
    }
}

fn path(points: &[Point], chart: &Chart) -> String {
    let mut path = String::new();
    for point in points {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let (x, y) = (short(at_x(&chart.x, point.x)), short(at_y(&chart.y, point.y)));
        path += &format!("{start}{x} {y}");
    }
    path
}

/// A link that the keyboard passes by: the tables have the same ones.
pub(super) fn link(line: usize) -> Element {
    element("a").set("href", format!("#l{line}")).set("tabindex", -1)
}

/// A dot whose form tells who speaks: circles for own figures, others for others'.
fn dot(point: &Point, origin: Origin, chart: &Chart) -> Element {
    let (x, y) = (at_x(&chart.x, point.x), at_y(&chart.y, point.y));
    let mark = match origin {
        Origin::Own(_) => element("circle").set("cx", short(x)).set("cy", short(y)).set("r", "3.5"),
        Origin::Document => form(x, y, "m0-5 5 5-5 5-5-5z"),
        Origin::Peer(_) => form(x, y, "m-3.5-3.5h7v7h-7z"),
    };
    let mark = mark.class("mark").child(element("title").text(&point.title));
    link(point.line).child(mark)
}

fn form(x: f64, y: f64, form: &str) -> Element {
    element("path").set("d", format!("M{} {}{form}", short(x), short(y)))
}

fn bar(bin: &Bin, chart: &Chart) -> Element {
    let (from, to) = (at_x(&chart.x, bin.from_ns), at_x(&chart.x, bin.to_ns));
    let (top, bottom) = (at_y(&chart.y, bin.count as f64), HEIGHT - BOTTOM);
    let count = number::count(bin.count).text();
    let (least, most) = (number::time(bin.from_ns + 1.0).text(), number::time(bin.to_ns).text());
    let range = if least == most { most } else { format!("{least} to {most}") };
    element("rect")
        .class("mark")
        .set("x", short(from))
        .set("width", short((to - from - 1.0).max(1.0)))
        .set("y", short(top.min(bottom - 1.0)))
        .set("height", short((bottom - top).max(1.0)))
        .child(element("title").text(format!("{range}: {count} samples")))
}

fn legend(series: &[Series]) -> Element {
    let entries = series.iter().map(|series| {
        let sample = element("path").class("line").set("d", "M0 6H26");
        let mark = match series.origin {
            Origin::Own(_) => element("circle").set("cx", 13).set("cy", 6).set("r", "3.5"),
            Origin::Document => form(13.0, 6.0, "m0-5 5 5-5 5-5-5z"),
            Origin::Peer(_) => form(13.0, 6.0, "m-3.5-3.5h7v7h-7z"),
        };
        let swatch = element("svg")
            .class(format!("swatch {}", class(series.origin)))
            .set("viewBox", "0 0 26 12")
            .set("aria-hidden", "true")
            .child(sample)
            .child(mark.class("mark"));
        element("li").child(swatch).child(element("span").text(&series.name))
    });
    element("ul").class("legend").children(entries)
}

/// Colour and dashes of a series; after eight they come again.
pub(super) fn class(origin: Origin) -> String {
    match origin {
        Origin::Own(at) if at < 8 => format!("own c{at}"),
        Origin::Own(at) => format!("own again c{}", at % 8),
        Origin::Document => "document".to_owned(),
        Origin::Peer(at) => format!("peer c{}", (at + 1) % 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_drawings_are_finite() {
        let bins = [Bin { from_ns: 0.0, to_ns: 1.0, count: u64::MAX }];
        let empty = Histogram {
            title: "<x>".to_owned(),
            line: 1,
            bulk: Vec::new(),
            beyond: 3,
            all: Vec::new(),
        };
        let full = Histogram { bulk: bins.to_vec(), all: bins.to_vec(), ..empty.clone() };
        for histogram in [empty, full] {
            let [even, logarithmic] = self::histogram(&histogram).map(|figure| figure.to_string());
            for text in [even, logarithmic] {
                assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
                assert!(!text.contains("<x>"), "{text}");
            }
        }
    }
}
