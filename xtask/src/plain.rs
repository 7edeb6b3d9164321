//! Comments name their subject: doc comments open neither with a pronoun nor with a preposition,
//! and no pronoun stands for people unknown.

use crate::finding::Finding;
use crate::source::{Source, is_word};

/// Words that a doc comment may not open with.
const OPENERS: [&str; 15] = [
    "what", "who", "whom", "whose", "it", "its", "those", "they", "so", "how", "where", "from",
    "to", "by", "of",
];

/// Words that no comment may have (split, so that this file passes).
const PRONOUNS: [&str; 4] =
    [concat!("no", "body"), concat!("who", "ever"), concat!("wh", "om"), concat!("some", "body")];

/// Checks the comments of all files, tests and benches included.
pub(crate) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    for source in sources {
        openers(source, findings);
        pronouns(source, findings);
    }
}

fn openers(source: &Source, found: &mut Vec<Finding>) {
    let mut is_inside = false;
    for line in 1..=source.line_count() {
        let doc = doc_text(source, line);
        if let Some(text) = doc.filter(|_| !is_inside) {
            let first = text.split(|c| !is_word(c)).next().unwrap_or_default();
            if OPENERS.contains(&first.to_lowercase().as_str()) {
                let what = format!("the comment opens with '{first}': name the thing first");
                found.push(Finding::new(&source.path, line, what));
            }
        }
        is_inside = doc.is_some();
    }
}

/// The text of a doc comment's line.
fn doc_text(source: &Source, line: usize) -> Option<&str> {
    let comment = source.comment_line(line).trim_start();
    let text = comment.strip_prefix("//!").or_else(|| comment.strip_prefix("///"))?;
    (source.is_comment_only(line) && !text.starts_with('/')).then(|| text.trim_start())
}

fn pronouns(source: &Source, found: &mut Vec<Finding>) {
    for line in 1..=source.line_count() {
        let words = source.comment_line(line).split(|c| !is_word(c));
        for word in words.filter(|word| PRONOUNS.contains(&word.to_lowercase().as_str())) {
            let what = format!("'{word}' in a comment: name the thing that is meant");
            found.push(Finding::new(&source.path, line, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&Source, &mut Vec<Finding>);

    fn found(check: Check, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&Source::new("x/a.rs", text.into()), &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_word_of_a_doc_comment_is_no_pronoun() {
        let opens = |text: &str| found(openers, text).len();
        assert_eq!(opens("//! What it is.\n\n/// Those.\nfn f() {}\n    /// `it`\n"), 2);
        assert_eq!(opens("/// A thing.\n/// It is one.\nfn f() {}\n"), 0);
        assert_eq!(opens("/// Whatever. It is so.\n// It is no doc comment.\n//// What\n"), 0);
        assert_eq!(opens("let a = \"/// What\"; /// Who\n"), 0);
        assert_eq!(opens("/// One.\nstruct A;\n/// so-called\nstruct B;\n"), 1);
    }

    #[test]
    fn no_comment_has_a_word_for_people_unknown() {
        let text = PRONOUNS.map(|word| format!("/// A.\nf(); // as {word}, {word}s\n")).concat();
        let found = found(pronouns, &text);
        assert_eq!(found.len(), 4);
        assert!(found[1].starts_with("x/a.rs:4: "));
    }
}
