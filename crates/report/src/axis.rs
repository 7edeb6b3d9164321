//! Axes with round numbers on them.

use crate::document::{Axis, Scale};
use crate::number;

/// A linear axis from zero to a round number above `most`.
pub(crate) fn linear(label: &str, most: f64, show: fn(f64) -> number::Quantity) -> Axis {
    let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    let rough = most / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    let count = (most / step).ceil() as u32;
    let ticks = (0..=count).map(|at| f64::from(at) * step);
    let ticks = ticks.map(|at| (at, if at == 0.0 { "0".to_owned() } else { show(at).text() }));
    let to = f64::from(count) * step;
    Axis { label: label.to_owned(), scale: Scale::Linear, from: 0.0, to, ticks: ticks.collect() }
}

/// Evenly spaced times between two that are given.
pub(crate) fn times(from_ns: f64, to_ns: f64) -> Axis {
    let to = to_ns.max(from_ns + 1.0);
    let ticks = (0..=4).map(|at| {
        let ns = from_ns + (to - from_ns) * f64::from(at) / 4.0;
        (ns, number::time_tick(ns.round()).text())
    });
    let ticks = ticks.collect();
    Axis { label: "latency".to_owned(), scale: Scale::Linear, from: from_ns, to, ticks }
}

/// Powers of ten around `least` (or 1, if that is more) and `most`, with steps between them if
/// there are few.
pub(crate) fn logarithmic(
    label: &str,
    least: f64,
    most: f64,
    show: fn(f64) -> number::Quantity,
) -> Axis {
    logarithmic_above(1.0, label, least, most, show)
}

/// The same for values that may be fractions, but no less than `floor`.
pub(crate) fn logarithmic_above(
    floor: f64,
    label: &str,
    least: f64,
    most: f64,
    show: fn(f64) -> number::Quantity,
) -> Axis {
    let least = if least.is_finite() { least.max(floor) } else { floor };
    let most = if most.is_finite() { most.max(least) } else { least };
    let floor = least.log10().floor() as i32;
    let all: Vec<f64> = (floor..=floor + 21)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)))
        .collect();
    let first = all.iter().rposition(|at| *at <= least).unwrap_or(0);
    let last = all.iter().position(|at| *at >= most).unwrap_or(all.len() - 1).max(first + 1);
    let last = last.min(all.len() - 1);
    // Over many powers of ten, these alone are named.
    let named = (first..=last).filter(|at| last - first < 5 || at % 3 == 0);
    let ticks = named.map(|at| (all[at], show(all[at]).text())).collect();
    let (from, to) = (all[first], all[last]);
    Axis { label: label.to_owned(), scale: Scale::Logarithmic, from, to, ticks }
}

/// Counts, logarithmic, from below one, so that a single sample has a height.
pub(crate) fn counts(most: f64) -> Axis {
    let powers = most.max(10.0).log10().ceil().min(20.0) as i32;
    let ticks = (0..=powers).map(|power| 10f64.powi(power));
    let ticks: Vec<_> = ticks.map(|at| (at, number::short_count(at).text())).collect();
    // Above six powers every second one is enough.
    let step = if powers > 6 { 2 } else { 1 };
    Axis {
        label: "samples".to_owned(),
        scale: Scale::Logarithmic,
        from: 0.5,
        to: 10f64.powi(powers),
        ticks: ticks.into_iter().step_by(step).collect(),
    }
}

/// `1/(1-p)` up to that of the most samples, named by percentile.
pub(crate) fn percentiles(samples: f64) -> Axis {
    let samples = samples.max(10.0);
    let nines = samples.log10().floor().min(12.0) as usize;
    let name = |nines: usize| match nines {
        0 => "0%".to_owned(),
        1 => "90%".to_owned(),
        2 => "99%".to_owned(),
        more => format!("99.{}%", "9".repeat(more - 2)),
    };
    let ticks = (0..=nines).map(|at| (10f64.powi(at as i32), name(at))).collect();
    let (from, to) = (1.0, samples);
    Axis { label: "percentile".to_owned(), scale: Scale::Logarithmic, from, to, ticks }
}

/// Powers of two from 1 to at least `most`.
pub(crate) fn doublings(label: &str, most: f64) -> Axis {
    let powers = if most.is_finite() { most.max(2.0).log2().ceil().min(40.0) as i32 } else { 1 };
    let ticks = (0..=powers).map(|power| 2f64.powi(power)).map(|at| (at, format!("{at}")));
    Axis {
        label: label.to_owned(),
        scale: Scale::Logarithmic,
        from: 1.0,
        to: 2f64.powi(powers),
        ticks: ticks.collect(),
    }
}

/// An axis of evenly spaced names.
pub(crate) fn places(label: &str, names: Vec<String>) -> Axis {
    let to = (names.len() as f64 - 0.5).max(0.5);
    let ticks = names.into_iter().enumerate().map(|(at, name)| (at as f64, name)).collect();
    Axis { label: label.to_owned(), scale: Scale::Linear, from: -0.5, to, ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        let rates = linear("", 17.3e6, number::rate_tick);
        assert_eq!(names(&rates), ["0", "5 M/s", "10 M/s", "15 M/s", "20 M/s"]);
        let times = logarithmic("", 120.0, 80_000.0, number::time_tick);
        assert_eq!(names(&times), ["100 ns", "1 µs", "10 µs", "100 µs"]);
        assert_eq!(names(&logarithmic("", 120.0, 180.0, number::time_tick)), ["100 ns", "200 ns"]);
        assert_eq!(names(&percentiles(1500.0)), ["0%", "90%", "99%", "99.9%"]);
        assert_eq!(names(&doublings("", 9.0)), ["1", "2", "4", "8", "16"]);
        let fractions = logarithmic_above(0.01, "", 0.4, 900.0, number::time_tick);
        assert_eq!(names(&fractions), ["1 ns", "10 ns", "100 ns", "1 µs"]);
    }

    #[test]
    fn every_value_has_a_place() {
        let axes = [
            linear("", 0.0, number::rate_tick),
            linear("", f64::INFINITY, number::rate_tick),
            logarithmic("", 0.0, 0.0, number::time_tick),
            logarithmic("", 5.0, f64::MAX, number::time_tick),
            percentiles(0.0),
            places("", Vec::new()),
            doublings("", f64::NAN),
            doublings("", 0.0),
            logarithmic_above(0.01, "", f64::NAN, 0.0, number::time_tick),
            super::times(5.0, 5.0),
        ];
        for axis in axes {
            for value in [-1.0, 0.0, 0.5, 1e9, f64::MAX, f64::INFINITY, f64::NAN] {
                let place = axis.place(value);
                assert!((0.0..=1.0).contains(&place), "{axis:?} {value} {place}");
            }
        }
        let log = logarithmic("", 100.0, 10_000.0, number::time_tick);
        assert!((log.place(1000.0) - 0.5).abs() < 1e-9);
    }
}
