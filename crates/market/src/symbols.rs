//! What is traded.

use crate::numbers::Numbers;

/// How many symbols there are.
pub(crate) const SYMBOLS: usize = 500;
/// Those that examples are about; the others are made up.
const KNOWN: [&str; 8] = ["IBM", "INTC", "MSFT", "AAPL", "AMZN", "BARC", "SAP", "VOD"];

/// The symbols: what comes first is traded most.
pub(crate) fn symbols(numbers: &mut Numbers) -> Vec<Box<str>> {
    let mut symbols: Vec<Box<str>> = KNOWN.map(Into::into).to_vec();
    while symbols.len() < SYMBOLS {
        let length = 3 + numbers.below(2);
        let letters = (0..length).map(|_| char::from(b'A' + numbers.below(26) as u8));
        let symbol: String = letters.collect();
        if !symbols.iter().any(|other| **other == *symbol) {
            symbols.push(symbol.into());
        }
    }
    symbols
}
