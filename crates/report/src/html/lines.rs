//! The lines themselves, at the end of the page.

use super::element::{Element, element};
use crate::line::{Kind, Line};

/// Lists longer than this are shortened where they are read; the whole line can be unfolded.
const LONGEST_LIST: usize = 160;
/// Lines longer than this are left to their file: a page is to be sent and opened on a phone.
const LONGEST_WHOLE: usize = 16 << 10;

pub(super) fn section(lines: &[Line]) -> Element {
    let intro = "Each as it was written, with a member on each line of the page; long lists are \
                 shortened, and the whole line is one step further, or in its file.";
    element("section")
        .set("id", "lines")
        .set("aria-labelledby", "lines-title")
        .child(element("h2").set("id", "lines-title").text("The lines"))
        .child(element("p").text(intro))
        .children(lines.iter().map(line))
}

fn line(line: &Line) -> Element {
    let summary = element("summary")
        .child(element("span").class("place").text(line.place()))
        .text(" ")
        .child(element("span").class("quiet").text(kind(line)));
    let shown = element("details").class("line").set("id", format!("l{}", line.id)).child(summary);
    if line.kind == Kind::Log {
        return shown.child(element("pre").text(&line.json));
    }
    let (readable, is_shortened) = readable(&line.json);
    let shown = shown.child(element("pre").text(readable));
    if !is_shortened {
        return shown;
    }
    if line.json.len() > LONGEST_WHOLE {
        let words = format!("The whole line has {} bytes: see {}.", line.json.len(), line.place());
        return shown.child(element("p").class("quiet").text(words));
    }
    let whole = element("details")
        .child(element("summary").text("The whole line"))
        .child(element("pre").text(&line.json));
    shown.child(whole)
}

/// Kind and case of the line.
fn kind(line: &Line) -> String {
    let kind = line.text("kind").unwrap_or("interval");
    match line.kind {
        Kind::Run => {
            let experiment = line.text("experiment").unwrap_or("");
            let size = line.whole("case.size").map(|size| format!(", {size} B"));
            let repetition = line.whole("repetition").map(|at| format!(", repetition {at}"));
            let parts = [size, repetition].map(Option::unwrap_or_default).concat();
            format!("{kind}: {experiment}{parts}")
        }
        Kind::Rival => format!("{kind}: {}", line.text("peer").unwrap_or("")),
        _ => kind.to_owned(),
    }
}

/// The JSON object `text` with a member on each line, and whether lists were shortened. Nothing
/// but white space is added, and what is left out is marked as left out.
fn readable(text: &str) -> (String, bool) {
    let mut shown = String::new();
    let (mut depth, mut is_shortened) = (0usize, false);
    let mut rest = text.trim();
    while let Some(c) = rest.chars().next() {
        let piece = match c {
            '"' => &rest[..string_length(rest)],
            // A list of objects is read like the objects themselves.
            '[' if !rest[..list_length(rest)].contains('{') => &rest[..list_length(rest)],
            _ => &rest[..c.len_utf8()],
        };
        rest = &rest[piece.len()..];
        match c {
            '[' if piece.len() > LONGEST_LIST => {
                shown.push_str(start(piece));
                shown.push_str(" … ]");
                is_shortened = true;
            }
            '{' => {
                depth += 1;
                shown.push('{');
                shown.push_str(&newline(depth));
            }
            '}' => {
                depth = depth.saturating_sub(1);
                shown.push_str(&newline(depth));
                shown.push('}');
            }
            ',' => {
                shown.push(',');
                shown.push_str(&newline(depth));
            }
            ':' => shown.push_str(": "),
            c if c.is_whitespace() => {}
            _ => shown.push_str(piece),
        }
    }
    (shown, is_shortened)
}

fn newline(depth: usize) -> String {
    format!("\n{}", "  ".repeat(depth))
}

/// Length of the string at the start of `text`, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of the list at the start of `text`, with its brackets.
fn list_length(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => {
                at += string_length(&text[at..]);
                continue;
            }
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += c.len_utf8();
        if depth == 0 {
            break;
        }
    }
    at
}

/// The start of a long list, up to a comma.
fn start(list: &str) -> &str {
    let end = list.char_indices().take_while(|(at, _)| *at < LONGEST_LIST / 2);
    let comma = end.filter(|(_, c)| *c == ',').last().map_or(1, |(at, _)| at + 1);
    &list[..comma]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_stand_below_one_another() {
        let (shown, is_shortened) =
            readable(r#"{"a":1,"b":{"c":"x,{\"y","d":[1,[2,3]]},"e":[{"f":1},{"f":2}]}"#);
        assert!(!is_shortened);
        let expected = [
            "{",
            "  \"a\": 1,",
            "  \"b\": {",
            "    \"c\": \"x,{\\\"y\",",
            "    \"d\": [1,[2,3]]",
            "  },",
            "  \"e\": [{",
            "    \"f\": 1",
            "  },",
            "  {",
            "    \"f\": 2",
            "  }]",
            "}",
        ];
        let expected = expected.join("\n");
        assert_eq!(shown, expected);
    }

    #[test]
    fn long_lists_are_shortened() {
        let list: Vec<String> = (0..200).map(|at| format!("[{at},1]")).collect();
        let text = format!("{{\"buckets\":[{}]}}", list.join(","));
        let (shown, is_shortened) = readable(&text);
        assert!(is_shortened && shown.len() < 200 && shown.contains("[0,1],"), "{shown}");
        assert!(shown.ends_with(" … ]\n}"), "{shown}");
    }

    proptest! {
        #[test]
        fn layout_adds_only_white_space(text in "[\\[\\]{}\":, a\\\\é]{0,60}") {
            let (shown, is_shortened) = readable(&text);
            let bare = |text: &str| text.replace(char::is_whitespace, "");
            prop_assert!(!is_shortened);
            prop_assert_eq!(bare(&shown), bare(&text));
        }
    }
}
