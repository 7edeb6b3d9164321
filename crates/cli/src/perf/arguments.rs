//! Values that several commands of `lanecast perf` take or return.

use lanecast_measure::persistent::{FlightResult, PersistMode};
use lanecast_measure::{NumberError, parse_number};

/// A CPU's number, or −1 for none.
pub(super) fn parse_cpu(text: &str) -> Result<i64, NumberError> {
    if text == "-1" { Ok(-1) } else { parse_number::<u32>(text).map(i64::from) }
}

/// A topic of a list; its name must be there.
pub(super) fn topic(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("a topic has no name".to_owned()) } else { Ok(text.to_owned()) }
}

/// Tells of messages that were not safe, or not consumed, at the end.
pub(super) fn in_flight(result: Option<&FlightResult>) -> Option<String> {
    let left = result.map(|it| it.left_in_flight).filter(|left| *left > 0)?;
    Some(match result.map(|it| it.mode) {
        Some(PersistMode::Receiver) => format!("{left} messages were not consumed at the end"),
        _ => format!("{left} messages were not stable at the end: stores may not have them"),
    })
}

/// Warm-up: number of messages, and messages per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Warmup {
    pub(super) loops: u64,
    pub(super) rate: u64,
}

/// As the documents write it: `loops,rate`.
pub(super) fn warmup(text: &str) -> Result<Warmup, String> {
    let wrong = || format!("'{text}': write loops,rate such as 5,5");
    let (loops, rate) = text.split_once(',').ok_or_else(wrong)?;
    let number = |text| parse_number::<u64>(text).map_err(|_| wrong());
    Ok(Warmup { loops: number(loops)?, rate: number(rate)? })
}

/// A share in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerMille(pub(crate) u32);

/// A share of 0 to 100 per cent, to a tenth.
pub(super) fn loss(text: &str) -> Result<PerMille, String> {
    let wrong = || format!("'{text}': write a share such as 1, or 0.5, of at most 100 per cent");
    let percent: f64 = text.parse().map_err(|_| wrong())?;
    let per_mille = percent * 10.0;
    let is_exact = per_mille.fract() == 0.0;
    if !(0.0..=1000.0).contains(&per_mille) || !is_exact {
        return Err(wrong());
    }
    Ok(PerMille(per_mille as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_per_cent() {
        assert_eq!(loss("0"), Ok(PerMille(0)));
        assert_eq!(loss("1"), Ok(PerMille(10)));
        assert_eq!(loss("0.5"), Ok(PerMille(5)));
        assert_eq!(loss("100"), Ok(PerMille(1000)));
        for wrong in ["", "x", "-1", "100.1", "0.05", "inf", "NaN"] {
            assert!(loss(wrong).unwrap_err().contains("such as 1"), "{wrong}");
        }
    }
}
