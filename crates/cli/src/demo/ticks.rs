//! The demonstration's input: a file of lines like those of a market-data feed.

use lanecast_market::Rng;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const SYMBOLS: [&str; 8] = ["AAPL", "AMZN", "BARC", "IBM", "INTC", "MSFT", "SAP", "VOD"];

/// Writes `lines` lines `number,symbol,bid,ask,bid size,ask size`, prices walking at random.
pub(super) fn generate(path: &Path, lines: u64) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut numbers = Rng::new(20_080_418);
    let mut cents = [18_950u64, 14_230, 17_055, 19_100, 3_120, 41_500, 12_840, 7_310];
    for number in 0..lines {
        let which = numbers.below(SYMBOLS.len() as u64) as usize;
        cents[which] = (cents[which] + numbers.below(7)).saturating_sub(3).max(100);
        let (bid, ask) = (cents[which], cents[which] + 1 + numbers.below(4));
        writeln!(
            file,
            "{number},{},{}.{:02},{}.{:02},{},{}",
            SYMBOLS[which],
            bid / 100,
            bid % 100,
            ask / 100,
            ask % 100,
            100 * (1 + numbers.below(50)),
            100 * (1 + numbers.below(50)),
        )?;
    }
    file.flush()
}

/// The bid and ask of a line, in cents; `None` if it is no such line.
pub(super) fn prices(line: &[u8]) -> Option<(u64, u64)> {
    let mut fields = line.split(|&byte| byte == b',').skip(2);
    Some((cents(fields.next()?)?, cents(fields.next()?)?))
}

fn cents(field: &[u8]) -> Option<u64> {
    let digits = field.iter().filter(|&&byte| byte != b'.');
    digits.copied().try_fold(0, |sum: u64, byte| {
        byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_each_time_and_read_back() {
        let path = std::env::temp_dir().join(format!("lanecast-ticks-{}", std::process::id()));
        generate(&path, 1000).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(text.lines().count(), 1000);
        assert!(text.lines().all(|line| prices(line.as_bytes()).is_some_and(|(b, a)| b < a)));
        assert_eq!(prices(b"1,IBM,191.00,191.02,100,200"), Some((19_100, 19_102)));
        assert_eq!(prices(b"nonsense"), None);
    }
}
