//! Reference figures of the AMPS slides.

use super::row::Row;
use serde::Serialize;

/// Reference figures of another machine: for orientation, not for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reference {
    /// The slides' own ring, in messages a second.
    pub rate: f64,
    /// The LMAX Disruptor beside it.
    pub lmax_rate: Option<f64>,
}

impl Reference {
    /// The figures of a row. The slides give no batch size: their figures stand beside every batch.
    pub const fn of(row: Row) -> Option<Self> {
        let (rate, lmax_rate) = match row {
            Row::Unicast => (592_427_187.0, Some(69_979_006.0)),
            Row::Singly => return None,
            Row::Multicast => (462_071_095.0, Some(96_993_210.0)),
            Row::Diamond => (305_437_377.0, Some(87_796_312.0)),
            Row::TwoByTwo => (43_120_908.0, Some(8_064_516.0)),
            Row::FourByFour => (48_771_217.0, None),
        };
        Some(Self { rate, lmax_rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_slides() {
        let rates = Row::ALL.map(|row| Reference::of(row).map(|reference| reference.rate as u64));
        let slides = [592_427_187, 462_071_095, 305_437_377, 43_120_908, 48_771_217];
        assert_eq!(rates.into_iter().flatten().collect::<Vec<_>>(), slides);
        let lmax = Row::ALL.map(|row| Reference::of(row)?.lmax_rate.map(|rate| rate as u64));
        let slides = [69_979_006, 96_993_210, 87_796_312, 8_064_516];
        assert_eq!(lmax.into_iter().flatten().collect::<Vec<_>>(), slides);
        assert_eq!(Reference::of(Row::Singly), None);
    }
}
