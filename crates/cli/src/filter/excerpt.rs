//! Long filters, made fit for people to read: broken into lines, or cut, with what is missing said.

use crate::printable::width;
use crate::table::grouped;

/// Columns of a text beside its title.
const COLUMNS: usize = 91;
/// Longest list that is shown whole.
const MANY: usize = 12;
/// Entries shown of a longer list.
const FEW: usize = 10;

/// Lines of `text` that are not too wide, as far as it has blanks to break at.
pub(super) fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut columns = 0;
    for word in text.split(' ') {
        let more = width(word) + 1;
        match lines.last_mut() {
            Some(line) if columns + more <= COLUMNS => {
                *line += " ";
                *line += word;
                columns += more;
            }
            _ => {
                lines.push(word.to_owned());
                columns = more - 1;
            }
        }
    }
    lines
}

/// The part of `text` that fits on a line, and the length of the rest.
pub(super) fn shortened(text: &str) -> String {
    if width(text) <= COLUMNS {
        return text.to_owned();
    }
    let first = crate::printable::cut(text, COLUMNS - "... 65 536 more characters".len());
    let first = first.trim_end_matches('…');
    // At a blank, if one is near.
    let end = first.rfind(' ').filter(|end| first.len() - end < 30).unwrap_or(first.len());
    let more = grouped(text[end..].chars().count() as u64);
    format!("{} ... {more} more characters", &first[..end])
}

/// The first ones of many, and how many more there are.
pub(super) fn few<T>(all: &[T]) -> (&[T], usize) {
    if all.len() > MANY { (&all[..FEW], all.len() - FEW) } else { (all, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks() {
        assert_eq!(wrapped("/a = 1"), ["/a = 1"]);
        let text = vec!["/symbol = 'IBM'"; 40].join(" AND ");
        let lines = wrapped(&text);
        assert!(lines.iter().all(|line| line.len() <= COLUMNS), "{lines:?}");
        assert_eq!(lines.join(" "), text);
        let long = "x".repeat(200);
        assert_eq!(wrapped(&format!("a {long} b  c")), ["a", &long, "b  c"]);
    }

    #[test]
    fn cut_characters_are_counted() {
        let exact = "x".repeat(COLUMNS);
        assert_eq!(shortened(&exact), exact);
        let text = vec!["'株価'"; 300].join(", ");
        let told = shortened(&text);
        assert!(width(&told) <= COLUMNS, "{told}");
        let (first, more) = told.split_once(" ... ").expect("it is cut");
        assert!(first.ends_with("',") && text.starts_with(first), "{told}");
        let more: usize = more.replace(' ', "").trim_end_matches("morecharacters").parse().unwrap();
        assert_eq!(first.chars().count() + more, text.chars().count());
        assert!(shortened(&"x".repeat(10_000)).ends_with("xx ... 9 936 more characters"));
    }

    #[test]
    fn few_of_many_are_shown() {
        assert_eq!(few(&[0; 12]), (&[0; 12][..], 0));
        assert_eq!(few(&[0; 13]), (&[0; 10][..], 3));
    }
}
