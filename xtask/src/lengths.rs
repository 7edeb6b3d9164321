//! Longest file and widest line. Functions are clippy's (`too_many_lines`).

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;

/// The most lines of a Rust file.
const LONGEST_FILE: usize = 600;
/// The most characters of a line of Rust.
const WIDEST_LINE: usize = 100;
/// Files that may be longer for a reason: a path, how long, and why, on each line.
const EXCEPTIONS: &str = "xtask/long-files.txt";

/// Checks every Rust file.
pub(crate) fn check(tree: &Tree, sources: &[Source], findings: &mut Vec<Finding>) {
    let text = tree.text(EXCEPTIONS).unwrap_or_default();
    let exceptions = exceptions(&text, findings);
    for source in sources {
        let length = source.line_count();
        let exception = exceptions.iter().find(|exception| exception.path == source.path);
        let longest = exception.map_or(LONGEST_FILE, |exception| exception.lines);
        if length > longest {
            let what = format!(
                "{length} lines, {longest} are the most: find the second noun in it and give \
                 that a file"
            );
            findings.push(Finding::new(&source.path, longest + 1, what));
        }
        wide_lines(source, findings);
    }
    for exception in exceptions {
        let source = sources.iter().find(|source| source.path == exception.path);
        if source.is_none_or(|source| source.line_count() <= LONGEST_FILE) {
            let what = format!("{} is not too long any more: remove the line", exception.path);
            findings.push(Finding::new(EXCEPTIONS, exception.at, what));
        }
    }
}

fn wide_lines(source: &Source, findings: &mut Vec<Finding>) {
    for (index, line) in source.text.lines().enumerate() {
        let width = line.chars().count();
        if width > WIDEST_LINE {
            let what = format!("{width} characters, {WIDEST_LINE} are the most: break the line");
            findings.push(Finding::new(&source.path, index + 1, what));
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Exception<'a> {
    at: usize,
    path: &'a str,
    lines: usize,
}

fn exceptions<'a>(text: &'a str, findings: &mut Vec<Finding>) -> Vec<Exception<'a>> {
    let mut exceptions = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let path = words.next();
        let lines = words.next().and_then(|lines| lines.parse().ok());
        match (path, lines, words.next()) {
            (Some(path), Some(lines), Some(_reason)) => {
                exceptions.push(Exception { at: index + 1, path, lines });
            }
            _ => findings.push(Finding::new(
                EXCEPTIONS,
                index + 1,
                "write a path, the most lines, and a reason",
            )),
        }
    }
    exceptions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_counted_in_characters() {
        let mut findings = Vec::new();
        let text = format!("// {}\n// {}\n", "ß".repeat(97), "s".repeat(98));
        wide_lines(&Source::new("a.rs", text), &mut findings);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("a.rs:2: 101 characters"));
    }

    #[test]
    fn an_exception_needs_a_reason() {
        let mut findings = Vec::new();
        let text = "# head\n\na.rs 500 a table\nb.rs 500\nc.rs many why\n";
        let found = exceptions(text, &mut findings);
        assert_eq!(found, [Exception { at: 3, path: "a.rs", lines: 500 }]);
        assert_eq!(findings.len(), 2);
    }
}
