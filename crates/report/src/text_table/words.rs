//! Words of a cell: what may stand alone on a line.

use unicode_width::UnicodeWidthChar;

/// `text` without characters that would move a terminal's cursor or change its colours.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Columns that `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The words of `text`. A blank beside a digit belongs to a number, its unit or its sign (`41 433`,
/// `25.1 us`, `pid 7`), and ends no word.
fn words(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut words, mut start) = (Vec::new(), 0);
    for (at, _) in text.match_indices(' ') {
        let is_digit =
            |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        if !is_digit(at.checked_sub(1)) && !is_digit(Some(at + 1)) {
            words.push(&text[start..at]);
            start = at + 1;
        }
    }
    words.push(&text[start..]);
    words
}

/// Width of the longest word.
pub(super) fn longest_word(text: &str) -> usize {
    words(text).into_iter().map(width).max().unwrap_or(0)
}

/// Lines of at most `columns`, broken between words; a longer word has a line of its own.
///
/// A blank beside a digit belongs to a number, its unit or its sign, and breaks no line.
///
/// ```
/// let lines = lanecast_report::wrap("a pause of 25 us at most", 14);
/// assert_eq!(lines, ["a pause", "of 25 us at", "most"]);
/// ```
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    if width(text) <= columns {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in words(text) {
        let line = lines.last_mut().expect("one line");
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// `text` with blanks up to `columns`, before it if it is a number.
pub(super) fn pad(text: &str, columns: usize, is_number: bool) -> String {
    let blanks = " ".repeat(columns.saturating_sub(width(text)));
    if is_number { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
}
