//! The median of repetitions, which is one of them, and how far they are apart.

use crate::document::{Figure, Words, cell};
use crate::number;

/// Repetitions of one figure.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    /// The lower one of the two in the middle, so that it has been measured.
    pub(crate) median: Figure,
    pub(crate) least: Figure,
    pub(crate) most: Figure,
    pub(crate) count: usize,
}

impl Spread {
    /// None if there are no figures.
    pub(crate) fn of(figures: impl IntoIterator<Item = Figure>) -> Option<Self> {
        let mut figures: Vec<Figure> = figures.into_iter().collect();
        figures.sort_by(|a, b| a.value.total_cmp(&b.value));
        let count = figures.len();
        let median = figures.get(count.checked_sub(1)? / 2)?.clone();
        let (least, most) = (figures.first()?.clone(), figures.last()?.clone());
        Some(Self { median, least, most, count })
    }

    /// The median, then the range if there were several.
    pub(crate) fn words(self) -> Words {
        let words = Words::new().figure(self.median);
        if self.count > 1 { words.range(self.least, self.most) } else { words }
    }
}

/// The words of `spread`, or none.
pub(crate) fn words(spread: Option<Spread>) -> Words {
    spread.map(Spread::words).unwrap_or_default()
}

/// The median as a multiple of a reference figure, or nothing without one.
pub(crate) fn times(found: Option<&Spread>, reference: Option<&Figure>) -> Words {
    let Some((found, reference)) = found.zip(reference) else { return Words::new() };
    let times = found.median.value / reference.value;
    let member = format!("{} / {}", found.median.member, reference.member);
    let shown = Figure::new(times, number::ratio(times), found.median.line, member);
    cell(times.is_finite().then_some(shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::rate;

    #[test]
    fn the_median_has_been_measured() {
        let figure = |value: f64| Figure::new(value, rate(value), value as usize, "rate");
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0].map(figure)).unwrap();
        assert_eq!((spread.median.line, spread.least.line, spread.most.line), (2, 1, 4));
        assert_eq!(Spread::of([5.0].map(figure)).unwrap().words().0.len(), 1);
        assert!(Spread::of([]).is_none());
    }
}
