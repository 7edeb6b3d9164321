//! Names that others chose, made fit for a terminal.

use unicode_width::UnicodeWidthChar;

/// Stands for a character that would move the cursor, or take no room of its own.
const REPLACEMENT: char = '\u{fffd}';

/// `text` on one line: what controls a terminal, and what takes no room (marks that pile up,
/// changes of the writing direction), is replaced.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if width_of(c) == 0 { REPLACEMENT } else { c }).collect()
}

/// The same JSON with the control characters escaped that JSON allows in its texts: U+007F to
/// U+009F, some of which begin a terminal's commands.
pub(crate) fn printable_json(json: String) -> String {
    let is_control = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
    if !json.contains(is_control) {
        return json;
    }
    let escaped = |text: &mut String, c: char| match is_control(c) {
        true => *text += &format!("\\u{:04x}", u32::from(c)),
        false => text.push(c),
    };
    json.chars().fold(String::with_capacity(json.len()), |mut text, c| {
        escaped(&mut text, c);
        text
    })
}

/// The printable `text`, cut to at most `columns` columns; an ellipsis says that it was.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let mut left = columns;
    for (at, c) in text.char_indices() {
        let width = width_of(c);
        if width > left {
            return shorten(&text[..at], columns);
        }
        left -= width;
    }
    text.to_owned()
}

/// The printable `text` in lines of at most `columns` columns, and no more than `most` of them: an
/// ellipsis ends the last one if that is too few.
#[cfg_attr(not(feature = "top"), allow(dead_code, reason = "the live table shows it"))]
pub(crate) fn folded(text: &str, columns: usize, most: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while lines.len() + 1 < most && width(rest) > columns {
        let mut left = columns;
        let end = rest.char_indices().find_map(|(at, c)| {
            let fits = width_of(c) <= left;
            left = left.saturating_sub(width_of(c));
            (!fits).then_some(at)
        });
        match end {
            // Not even one character has room.
            None | Some(0) => break,
            Some(end) => {
                lines.push(rest[..end].to_owned());
                rest = &rest[end..];
            }
        }
    }
    lines.push(cut(rest, columns));
    lines
}

/// The printable `names` with commas, cut to `columns`; says how many there are if not all fit.
pub(crate) fn list(names: &[String], columns: usize) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let name = printable(name);
        let rest = names.len() - index;
        let longer = if index == 0 { name } else { format!("{text},{name}") };
        let note = if rest > 1 { format!(" +{}", rest - 1) } else { String::new() };
        if width(&longer) + note.len() > columns {
            let count = if index == 0 { note } else { format!(" +{rest}") };
            let text = if index == 0 { longer } else { text };
            return cut(&text, columns.saturating_sub(count.len())) + &count;
        }
        text = longer;
    }
    text
}

/// The topics of a session in one cell of a table, or a part of a line, that has so many columns.
pub(crate) fn topics(names: &[String], columns: usize) -> String {
    const COLUMNS_MIN: usize = 16;
    const COLUMNS_MAX: usize = 60;
    list(names, columns.clamp(COLUMNS_MIN, COLUMNS_MAX))
}

/// Width of the printable `text`, in columns.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

fn width_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The beginning of a text that is too long for `columns`, with an ellipsis.
fn shorten(fitting: &str, columns: usize) -> String {
    let mut text = fitting.to_owned();
    while width(&text) >= columns.max(1) {
        text.pop();
    }
    if columns > 0 {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn nothing_moves_the_cursor_or_piles_up() {
        let hostile = "a\u{1b}[2Jb\nc\u{9b}d\u{202e}e\u{200b}f\u{301}\u{301}\u{7f}";
        assert_eq!(printable(hostile), "a�[2Jb�c�d�e�f���");
        assert_eq!(printable("Kurs größer 株価 🚀"), "Kurs größer 株価 🚀");
    }

    #[test]
    fn json_keeps_its_meaning_without_control_characters() {
        let hostile = "a\u{1b}[2J\u{7f}\u{80}\u{9b}2J\u{9f}\u{a0}ö株";
        let json = printable_json(serde_json::to_string(hostile).unwrap());
        assert_eq!(json, "\"a\\u001b[2J\\u007f\\u0080\\u009b2J\\u009f\u{a0}ö株\"");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }

    #[test]
    fn text_is_cut_between_columns() {
        assert_eq!(["", "…", "p…", "prices"], [0, 1, 2, 6].map(|columns| cut("prices", columns)));
        assert_eq!([cut("株価株価", 4), cut("株価株価", 8)], ["株…", "株価株価"]);
        for columns in 0..9 {
            assert!(width(&cut("株a価b株価", columns)) <= columns, "{columns}");
        }
    }

    #[test]
    fn text_is_folded_between_columns() {
        assert_eq!(folded("prices", 6, 3), ["prices"]);
        assert_eq!(folded("prices", 4, 3), ["pric", "es"]);
        assert_eq!(folded("prices", 2, 2), ["pr", "i…"]);
        assert_eq!(folded("株価a", 3, 3), ["株", "価a"]);
        assert_eq!(folded("株価", 1, 9), ["…"]);
        assert_eq!(folded("", 4, 1), [""]);
        for columns in 0..9 {
            let lines = folded("株a価b株価", columns, 3);
            assert!(lines.len() <= 3 && lines.iter().all(|line| width(line) <= columns));
        }
    }

    #[test]
    fn a_long_list_ends_with_a_count() {
        let three = names(&["bids", "asks", "trades"]);
        assert_eq!(list(&three, 80), "bids,asks,trades");
        assert_eq!(list(&three, 14), "bids,asks +1");
        assert_eq!(list(&three, 8), "bids +2");
        assert_eq!(list(&three, 6), "bi… +2");
        assert_eq!(list(&[], 6), "");
        let many: Vec<_> = (0..1000).map(|number| format!("topic-{number}")).collect();
        for columns in 6..40 {
            assert!(width(&list(&many, columns)) <= columns, "{}", list(&many, columns));
        }
    }
}
