//! The names of a journal's files.

use lanecast_wire::journal::NUMBER_END;

/// The file that names the journal's owner, and that the owner locks.
pub(crate) const OWNER: &str = "owner";

const DIGITS: usize = 16;

/// The name of a segment.
pub(crate) fn segment(number: u64) -> String {
    format!("{number:016x}.segment")
}

/// The name of a segment that is being made.
pub(crate) fn unfinished(number: u64) -> String {
    format!("{number:016x}.new")
}

/// The number of the segment with this name, if it is one.
pub(crate) fn number(name: &str) -> Option<u64> {
    parse(name.strip_suffix(".segment")?)
}

/// Whether it is the name of a segment that is being made.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.strip_suffix(".new").and_then(parse).is_some()
}

fn parse(digits: &str) -> Option<u64> {
    let is_ours = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let ours = digits.len() == DIGITS && digits.bytes().all(is_ours);
    let number = ours.then(|| u64::from_str_radix(digits, 16).ok()).flatten()?;
    (1..NUMBER_END).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers_of_one_spelling() {
        assert_eq!(segment(0x1a), "000000000000001a.segment");
        assert_eq!(number(&segment(NUMBER_END - 1)), Some(NUMBER_END - 1));
        assert_eq!([0, NUMBER_END, u64::MAX].map(|n| number(&segment(n))), [None; 3]);
        assert!(is_unfinished(&unfinished(7)) && !is_unfinished(&segment(7)));
        let foreign = ["1a.segment", "000000000000001A.segment", "+00000000000001a.segment", OWNER];
        assert!(foreign.iter().all(|name| number(name).is_none()));
        assert_eq!(number("000000000000001a.new"), None);
    }
}
