//! Named figures as bars, one below the other, with their figures at their ends.

use super::chart::{class, label, line, link, short};
use super::element::{Element, element};
use crate::document::{Bar, Bars};

const WIDTH: f64 = 480.0;
/// Distance of bars.
const STEP: f64 = 36.0;
const THICKNESS: f64 = 14.0;
/// Space for the figure behind the longest bar.
const FIGURE: f64 = 76.0;

/// The bars with their title.
pub(super) fn figure(bars: &Bars) -> Element {
    let height = bars.bars.len() as f64 * STEP + 4.0;
    let most = bars.bars.iter().map(|bar| bar.figure.value).fold(0.0, f64::max);
    let drawn = bars.bars.iter().enumerate().map(|(at, bar)| drawn(bar, at as f64 * STEP, most));
    let drawing = element("svg")
        .set("viewBox", format!("0 0 {WIDTH} {}", short(height)))
        .set("role", "img")
        .set("aria-label", description(bars))
        .child(line([0.5, 0.5], [0.0, height], "axis"))
        .children(drawn);
    element("figure").child(element("figcaption").text(&bars.title)).child(drawing)
}

fn description(bars: &Bars) -> String {
    let each = bars.bars.iter().map(|bar| format!("{}: {}", bar.name, bar.figure.shown.text()));
    format!("{}. {}.", bars.title, each.collect::<Vec<_>>().join("; "))
}

/// The name, and the bar below it.
fn drawn(bar: &Bar, top: f64, most: f64) -> Element {
    let share = if most > 0.0 { (bar.figure.value / most).clamp(0.0, 1.0) } else { 0.0 };
    let (width, below) = ((share * (WIDTH - FIGURE)).max(1.0), top + 18.0);
    let shown = bar.figure.shown.text();
    let rectangle = element("rect")
        .class("mark")
        .set("x", 1)
        .set("width", short(width))
        .set("y", short(below))
        .set("height", THICKNESS)
        .child(element("title").text(format!("{}: {shown}", bar.name)));
    element("g")
        .class(class(bar.origin))
        .child(label(6.0, top + 13.0, "start", &bar.name))
        .child(link(bar.figure.line).child(rectangle))
        .child(label(width + 7.0, below + 11.5, "start", &shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Figure, Origin};
    use crate::number;

    #[test]
    fn the_greatest_fills_the_width_and_nothing_is_beyond() {
        let bar = |value: f64| Bar {
            name: "<case>".to_owned(),
            origin: Origin::Own(0),
            figure: Figure::new(value, number::rate(value), 1, "rate"),
        };
        let widths = |values: &[f64]| {
            let bars = values.iter().map(|value| bar(*value)).collect();
            let text = figure(&Bars { title: "t".to_owned(), bars }).to_string();
            assert!(!text.contains("NaN") && !text.contains("<case>"), "{text}");
            let widths = text.split("width=\"").skip(1);
            let numbers = widths.filter_map(|rest| rest.split('"').next()?.parse().ok());
            numbers.collect::<Vec<f64>>()
        };
        assert_eq!(widths(&[1e6, 5e5, 0.0]), [WIDTH - FIGURE, (WIDTH - FIGURE) / 2.0, 1.0]);
        assert_eq!(widths(&[0.0]), [1.0]);
        assert_eq!(widths(&[1e308, f64::MIN_POSITIVE]), [WIDTH - FIGURE, 1.0]);
    }
}
