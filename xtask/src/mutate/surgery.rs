//! Weakening: which bytes of a file change.

use crate::pairs;
use crate::source::Source;
use std::ops::Range;

/// One file with the orderings of one PAIRS comment weakened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutation {
    /// The file.
    pub(crate) path: String,
    /// The line of the first ordering.
    pub(crate) line: usize,
    /// The pairs that the comment names.
    pub(crate) names: Vec<String>,
    /// Description of the weakened ordering.
    pub(crate) what: String,
    /// Replacements, from the front to the back.
    edits: Vec<(Range<usize>, &'static str)>,
}

impl Mutation {
    /// `text`, the file's, with the orderings weakened.
    pub(crate) fn apply(&self, text: &str) -> String {
        let (mut weakened, mut at) = (String::with_capacity(text.len()), 0);
        for (range, replacement) in &self.edits {
            weakened.push_str(&text[at..range.start]);
            weakened.push_str(replacement);
            at = range.end;
        }
        weakened.push_str(&text[at..]);
        weakened
    }

    /// Offset of the first change.
    pub(crate) fn offset(&self) -> usize {
        self.edits.first().map_or(0, |(range, _)| range.start)
    }
}

/// The mutations of `source`: one for each PAIRS comment that governs something.
pub(crate) fn mutations(source: &Source) -> Vec<Mutation> {
    let places = pairs::places(source);
    let sites = sites(source);
    let of_place = |place: &pairs::Place| {
        let governed: Vec<&(Range<usize>, &'static str)> = sites
            .iter()
            .filter(|(range, _)| pairs::governing(source, &places, range.start) == Some(place))
            .collect();
        let first = governed.first()?;
        Some(Mutation {
            path: source.path.clone(),
            line: source.line_of(first.0.start),
            names: place.names.clone(),
            what: describe(source, &governed),
            edits: governed.into_iter().cloned().collect(),
        })
    };
    places.iter().filter_map(of_place).collect()
}

/// Everything that can be weakened, from the front to the back: fences go, orderings relax.
fn sites(source: &Source) -> Vec<(Range<usize>, &'static str)> {
    let fences = pairs::fences(source);
    let in_fence = |ordering: &Range<usize>| fences.iter().any(|f| f.contains(&ordering.start));
    let orderings = pairs::strong_orderings(source).into_iter().filter(|o| !in_fence(o));
    let mut sites: Vec<(Range<usize>, &'static str)> =
        orderings.map(|ordering| (ordering, "Relaxed")).collect();
    sites.extend(fences.iter().map(|fence| (fence.clone(), in_place_of(source, fence))));
    sites.sort_by_key(|(range, _)| range.start);
    sites
}

/// Replacement of a removed fence: nothing, or `true` where its result is used.
fn in_place_of(source: &Source, fence: &Range<usize>) -> &'static str {
    let before = source.code[..fence.start].trim_end();
    let is_statement = before.is_empty() || before.ends_with([';', '{', '}']);
    if is_statement && source.code[fence.end..].starts_with(';') { "()" } else { "true" }
}

fn describe(source: &Source, governed: &[&(Range<usize>, &'static str)]) -> String {
    let names = governed.iter().map(|(range, replacement)| {
        let text = &source.text[range.clone()];
        if *replacement != "Relaxed" {
            text.split('(').next().and_then(|path| path.rsplit([':', '.']).next()).unwrap_or(text)
        } else {
            text
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutations(text: &str) -> Vec<(String, String)> {
        let source = Source::new("a.rs", text.to_owned());
        super::mutations(&source)
            .into_iter()
            .map(|mutation| (mutation.what.clone(), mutation.apply(text)))
            .collect()
    }

    #[test]
    fn a_store_is_relaxed_in_one_place_at_a_time() {
        let text = "// PAIRS(tail): release\na.store(1, Ordering::Release);\n\n\n\n\n\
                    // PAIRS(tail): acquire\na.load(Ordering::Acquire);\n";
        let mutations = mutations(text);
        assert_eq!(mutations.len(), 2);
        assert_eq!(mutations[0].1, text.replace("Release", "Relaxed"));
        assert_eq!(mutations[1].1, text.replace("Acquire", "Relaxed"));
        assert_eq!(mutations[1].0, "Acquire");
    }

    #[test]
    fn both_orderings_of_an_exchange_go() {
        let text = "// PAIRS(word): both ends\nw.compare_exchange(\n    0,\n    1,\n    \
                    Ordering::AcqRel,\n    Ordering::Acquire,\n);\n";
        let found = mutations(text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "AcqRel, Acquire");
        assert!(!found[0].1.contains("Acq"));
        assert_eq!(found[0].1.matches("Ordering::Relaxed").count(), 2);
    }

    #[test]
    fn fences_are_taken_out() {
        let text =
            "// PAIRS(sleep): fence\nsync::fence(Ordering::SeqCst);\na.load(Ordering::Relaxed);";
        let found = mutations(text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "fence");
        assert!(found[0].1.ends_with("\n();\na.load(Ordering::Relaxed);"));

        let heavy = mutations("// PAIRS(sleep): fence\nheavy_fence(|| os::barrier(1));\n");
        assert!(heavy[0].1.ends_with("\n();\n"));
        assert_eq!(heavy[0].0, "heavy_fence");

        let asked = mutations("// PAIRS(sleep): x\nlet held = self.memory.heavy_fence();\n");
        assert!(asked[0].1.ends_with("\nlet held = true;\n"));
        assert_eq!(asked[0].0, "heavy_fence");
    }

    #[test]
    fn ungoverned_code_stays() {
        let far = "// PAIRS(a): x\n\n\n\n\n\na.load(Ordering::Acquire);\n";
        assert!(mutations(far).is_empty());
        assert!(mutations("// PAIRS(a): x\na.load(Ordering::Relaxed);\n").is_empty());
        assert!(mutations("// PAIRS(a): Ordering::Acquire, fence(x)\n").is_empty());
    }

    #[test]
    fn a_comment_with_two_names_is_one_place() {
        let text = "// PAIRS(a): x\n// PAIRS(b): y\nw.swap(1, Ordering::AcqRel);\n";
        let source = Source::new("a.rs", text.to_owned());
        let found = super::mutations(&source);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].names, ["a", "b"]);
        assert_eq!(found[0].line, 3);
    }
}
