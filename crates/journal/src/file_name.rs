//! Names of a journal's files.

use lanecast_wire::journal::NUMBER_END;

/// Lock file of the writer; holds its process id.
pub(crate) const OWNER: &str = "owner";

const DIGITS: usize = 16;

/// Name of a segment.
pub(crate) fn segment(number: u64) -> String {
    format!("{number:016x}.segment")
}

/// Name of a segment under construction.
pub(crate) fn unfinished(number: u64) -> String {
    format!("{number:016x}.new")
}

/// Name of a removed segment's file that waits to be recycled.
pub(crate) fn recycled(number: u64) -> String {
    format!("{number:016x}.free")
}

/// Name of a segment's index.
pub(crate) fn index(number: u64) -> String {
    format!("{number:016x}.index")
}

/// Number of the segment whose index has this name.
pub(crate) fn index_number(name: &str) -> Option<u64> {
    parse(name.strip_suffix(".index")?)
}

/// Number of the segment with this name.
pub(crate) fn number(name: &str) -> Option<u64> {
    parse(name.strip_suffix(".segment")?)
}

/// Whether this is the name of a file that may become a segment but is none yet.
pub(crate) fn is_unlinked_segment(name: &str) -> bool {
    let digits = name.strip_suffix(".new").or_else(|| name.strip_suffix(".free"));
    digits.and_then(parse).is_some()
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
        let loose = [unfinished(7), recycled(7), segment(7)].map(|name| is_unlinked_segment(&name));
        assert_eq!(loose, [true, true, false]);
        let foreign = ["1a.segment", "000000000000001A.segment", "+00000000000001a.segment", OWNER];
        assert!(foreign.iter().all(|name| number(name).is_none()));
        assert_eq!(number("000000000000001a.new"), None);
        assert_eq!(index_number(&index(26)), Some(26));
        assert!(number(&index(26)).is_none() && index_number(&segment(26)).is_none());
    }
}
