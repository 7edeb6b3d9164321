//! The traded symbols.

use crate::rng::Rng;

/// Number of symbols.
pub(crate) const SYMBOLS: usize = 500;
/// Symbols used by examples; the others are random.
const KNOWN: [&str; 8] = ["IBM", "INTC", "MSFT", "AAPL", "AMZN", "BARC", "SAP", "VOD"];

/// The symbols, most traded first.
pub(crate) fn symbols(rng: &mut Rng) -> Vec<Box<str>> {
    let mut symbols: Vec<Box<str>> = KNOWN.map(Into::into).to_vec();
    while symbols.len() < SYMBOLS {
        let length = 3 + rng.below(2);
        let letters = (0..length).map(|_| char::from(b'A' + rng.below(26) as u8));
        let symbol: String = letters.collect();
        if !symbols.iter().any(|other| **other == *symbol) {
            symbols.push(symbol.into());
        }
    }
    symbols
}
