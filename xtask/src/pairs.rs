//! Memory orderings come in pairs: each one that is not relaxed names its other end.
//!
//! A comment `PAIRS(name): ...` governs the orderings of the statement that it stands in, and
//! of those that begin at most four lines below it.

use crate::finding::Finding;
use crate::source::{Source, closing, is_word};
use std::collections::BTreeMap;
use std::ops::Range;

/// Most lines between a comment and the governed statement.
const REACH: usize = 4;

/// Orderings that make one thread's writes visible to another.
const STRONG: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];

/// Text that a comment with a name of its own must have: `PAIRS(name), both ends here: ...`.
const ALONE: &str = "both ends";

/// A comment that names pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line of the first name.
    pub(crate) line: usize,
    /// The pairs it names.
    pub(crate) names: Vec<String>,
    /// The last line of the comment.
    end: usize,
    says_both_ends: bool,
}

/// The comments of `source` that name pairs, from top to bottom.
pub(crate) fn places(source: &Source) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut line = 1;
    while line <= source.line_count() {
        let first = line;
        // Comment lines one below the other are one comment.
        while source.is_comment_only(line) && source.is_comment_only(line + 1) {
            line += 1;
        }
        let named: Vec<(usize, String)> = (first..=line)
            .flat_map(|at| names(source.comment_line(at)).map(move |name| (at, name)))
            .collect();
        if let Some((at, _)) = named.first() {
            places.push(Place {
                line: *at,
                end: line,
                says_both_ends: (first..=line).any(|at| source.comment_line(at).contains(ALONE)),
                names: named.into_iter().map(|(_, name)| name).collect(),
            });
        }
        line += 1;
    }
    places
}

fn names(comment: &str) -> impl Iterator<Item = String> + '_ {
    comment
        .split("PAIRS(")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap_or_default().trim().to_owned())
}

/// Ranges of the orderings in the code that are not relaxed.
pub(crate) fn strong_orderings(source: &Source) -> Vec<Range<usize>> {
    const PREFIX: &str = "Ordering::";
    let starts = source.words(PREFIX).map(|at| at + PREFIX.len());
    let named = starts.map(|start| {
        let name = source.code[start..].split(|c| !is_word(c)).next().unwrap_or_default();
        start..start + name.len()
    });
    named.filter(|name| STRONG.contains(&&source.code[name.clone()])).collect()
}

/// Ranges of the fences in the code: the call with its receiver or path, and its arguments.
pub(crate) fn fences(source: &Source) -> Vec<Range<usize>> {
    let code = &source.code;
    let calls = code.match_indices("fence(").filter_map(|(at, _)| {
        let start = code[..at]
            .rfind(|c| !is_word(c) && c != ':' && c != '.')
            .map_or(0, |before| before + 1);
        let is_declared = code[..start].trim_end().ends_with("fn");
        (!is_declared).then(|| start..closing(code, at + "fence".len()))
    });
    calls.collect()
}

/// The comment that governs what stands at `offset`: the last one in reach.
pub(crate) fn governing<'a>(
    source: &Source,
    places: &'a [Place],
    offset: usize,
) -> Option<&'a Place> {
    let (first, last) = (source.statement_line(offset), source.line_of(offset));
    places.iter().rfind(|place| place.end + REACH >= first && place.line <= last)
}

/// Checks `sources`, the files of all crates.
pub(crate) fn check(sources: &[&Source], findings: &mut Vec<Finding>) {
    let mut ends: BTreeMap<String, Vec<(&str, Place)>> = BTreeMap::new();
    for source in sources {
        let places = places(source);
        if source.path.contains("/src/") {
            check_orderings(source, &places, findings);
        }
        for place in places {
            for name in place.names.clone() {
                ends.entry(name).or_default().push((&source.path, place.clone()));
            }
        }
    }
    for (name, ends) in ends {
        let (path, place) = &ends[0];
        if !name.starts_with(is_word) || name.contains(char::is_whitespace) {
            let what = "write PAIRS(name), with a name of letters, digits and dashes";
            findings.push(Finding::new(path, place.line, what));
        } else if ends.len() == 1 && !place.says_both_ends {
            let what = format!(
                "PAIRS({name}) has one end: put the same name at the other end, or write \
                 '{ALONE}' in the comment if both are here"
            );
            findings.push(Finding::new(path, place.line, what));
        }
    }
}

fn check_orderings(source: &Source, places: &[Place], findings: &mut Vec<Finding>) {
    for ordering in strong_orderings(source) {
        if governing(source, places, ordering.start).is_none() {
            let what = format!(
                "Ordering::{} without `// PAIRS(name): ...` in the {REACH} lines above: name the \
                 pair and say where its other end is",
                &source.code[ordering.clone()]
            );
            findings.push(Finding::new(&source.path, source.line_of(ordering.start), what));
        }
    }
    let hidden = source
        .words("Ordering::")
        .filter(|at| source.code[at + "Ordering::".len()..].trim_start().starts_with(['{', '*']));
    for at in hidden {
        let what = "import Ordering itself and write Ordering::Acquire in full: checks look for it";
        findings.push(Finding::new(&source.path, source.line_of(at), what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("crates/a/src/a.rs", text.to_owned())
    }

    fn found(text: &str) -> Vec<String> {
        let (source, mut findings) = (source(text), Vec::new());
        check(&[&source], &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_found_in_comments_only() {
        let text = "// PAIRS(a): x, see PAIRS( b )\n// more\nlet s = \"PAIRS(no)\"; // PAIRS(c)\n";
        let places = places(&source(text));
        assert_eq!(places.len(), 2);
        assert_eq!((places[0].line, places[0].end), (1, 2));
        assert_eq!(places[0].names, ["a", "b"]);
        assert_eq!((places[1].line, places[1].names[0].as_str()), (3, "c"));
    }

    #[test]
    fn a_name_needs_two_ends() {
        let one = "// PAIRS(a): release here.\nx.store(1, Ordering::Release);\n";
        assert_eq!(found(one).len(), 1);
        assert!(found(one)[0].starts_with("crates/a/src/a.rs:1: PAIRS(a) has one end"));
        assert!(found(&format!("{one}\n\n\n\n\n\n{one}")).is_empty());
        assert!(found(&one.replace("release here", "both ends in this swap")).is_empty());
    }

    #[test]
    fn a_name_must_be_one() {
        assert_eq!(found("// PAIRS(): both ends\n").len(), 1);
        assert_eq!(found("// PAIRS(a b): both ends\n").len(), 1);
    }

    #[test]
    fn every_strong_ordering_needs_a_name() {
        let findings = found("x.load(Ordering::Acquire);\ny.load(Ordering::Relaxed);\n");
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("crates/a/src/a.rs:1: Ordering::Acquire"));
        assert!(found("a.cmp(b) == core::cmp::Ordering::Less;").is_empty());
        assert!(found("let s = \"Ordering::SeqCst\"; // Ordering::SeqCst\n").is_empty());
        assert_eq!(found("use x::Ordering::{Acquire, Release};\n").len(), 1);
    }

    #[test]
    fn a_comment_reaches_four_lines() {
        let near = "// PAIRS(a): both ends\n\n\n\nx.load(Ordering::Acquire);\n";
        assert!(found(near).is_empty());
        assert_eq!(found(&near.replace("ends\n", "ends\n\n")).len(), 1);
    }

    #[test]
    fn a_long_statement_is_governed_as_a_whole() {
        let text = "// PAIRS(a): both ends\n// here.\nx.compare_exchange(\n    1,\n    2,\n    \
                    Ordering::AcqRel,\n    Ordering::Acquire,\n);\n";
        assert!(found(text).is_empty());
    }

    #[test]
    fn the_nearest_comment_governs() {
        let text = "// PAIRS(a): both ends\nx.load(Ordering::Acquire);\n\
                    // PAIRS(b): both ends\ny.load(Ordering::Acquire);\n";
        let source = source(text);
        let places = places(&source);
        let names: Vec<&str> = strong_orderings(&source)
            .iter()
            .filter_map(|ordering| governing(&source, &places, ordering.start))
            .map(|place| place.names[0].as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn fences_are_calls() {
        let text = "use a::fence;\nfn light_fence() {}\nx::sync::fence(Ordering::SeqCst);\n\
                    heavy_fence(|| f(1));\n";
        let source = source(text);
        let found: Vec<&str> = fences(&source).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["x::sync::fence(Ordering::SeqCst)", "heavy_fence(|| f(1))"]);
    }
}
