//! Comments name their subject: no pronoun opens a doc comment or stands for people unknown.

use crate::budgets::{Budget, Budgets};
use crate::finding::Finding;
use crate::packages::Package;
use crate::source::{Source, is_word};

/// Words that a doc comment may not open with.
const OPENERS: [&str; 8] = ["what", "who", "whom", "whose", "it", "those", "they", "so"];

/// Words that no comment may have (split, so that this file passes).
const PRONOUNS: [&str; 4] =
    [concat!("no", "body"), concat!("who", "ever"), concat!("wh", "om"), concat!("some", "body")];

/// Checks the comments of all files, tests and benches included.
pub(crate) fn check(packages: &[Package<'_>], budgets: &Budgets, findings: &mut Vec<Finding>) {
    for package in packages {
        for budget in [Budget::Opener, Budget::Pronoun] {
            let mut found = faults(package, budget);
            if !budgets.check(package.path, budget, found.len(), findings) {
                findings.append(&mut found);
            }
        }
    }
}

/// Number of faults of this kind in `package`.
pub(crate) fn count(package: &Package<'_>, budget: Budget) -> usize {
    faults(package, budget).len()
}

fn faults(package: &Package<'_>, budget: Budget) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in &package.sources {
        match budget {
            Budget::Opener => openers(source, &mut found),
            Budget::Pronoun => pronouns(source, &mut found),
            Budget::Circle => {}
        }
    }
    found
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

    fn found(budget: Budget, text: &str) -> Vec<String> {
        let source = Source::new("x/a.rs", text.into());
        let package = Package { path: "x", sources: vec![&source] };
        faults(&package, budget).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_word_of_a_doc_comment_is_no_pronoun() {
        let opens = |text: &str| found(Budget::Opener, text).len();
        assert_eq!(opens("//! What it is.\n\n/// Those.\nfn f() {}\n    /// `it`\n"), 2);
        assert_eq!(opens("/// A thing.\n/// It is one.\nfn f() {}\n"), 0);
        assert_eq!(opens("/// Whatever. It is so.\n// It is no doc comment.\n//// What\n"), 0);
        assert_eq!(opens("let a = \"/// What\"; /// Who\n"), 0);
        assert_eq!(opens("/// One.\nstruct A;\n/// so-called\nstruct B;\n"), 1);
    }

    #[test]
    fn no_comment_has_a_word_for_people_unknown() {
        let text = PRONOUNS.map(|word| format!("/// A.\nf(); // as {word}, {word}s\n")).concat();
        let found = found(Budget::Pronoun, &text);
        assert_eq!(found.len(), 4);
        assert!(found[1].starts_with("x/a.rs:4: "));
    }
}
