//! The one line of `key=value, ` pairs that a measured program prints, and its reader.

use std::fmt::{self, Display, Write};

use lanecast_base::clock::Clock;

/// A result line under construction, or one that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pairs: Vec<(String, String)>,
}

impl Line {
    /// Reads a line; pieces that are no pair are left out.
    pub fn parse(text: &str) -> Self {
        let pairs = text
            .split(',')
            .filter_map(|piece| piece.trim().split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Self { pairs }
    }

    /// Adds one pair at the end.
    pub fn add(&mut self, key: &str, value: impl Display) {
        self.pairs.push((key.to_owned(), value.to_string()));
    }

    /// Adds the clock and the cost of reading it.
    pub fn add_clock(&mut self, clock: Clock) {
        self.add("clock", clock.name());
        self.add("clock_cost_ns", format_args!("{:.1}", clock.cost_ns()));
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The value of a key that holds a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.parse().ok()
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.pairs {
            f.write_str(key)?;
            f.write_char('=')?;
            f.write_str(value)?;
            f.write_str(", ")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_line_reads_back() {
        let mut line = Line::default();
        line.add("received", 12);
        line.add("rate", format_args!("{:.1}", 3.25));
        assert_eq!(line.to_string(), "received=12, rate=3.2, ");
        assert_eq!(Line::parse(&line.to_string()), line);
        assert_eq!(line.number("received"), Some(12.0));
        assert_eq!(line.number("none"), None);
    }
}
