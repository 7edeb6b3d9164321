//! An error names its source in its text or returns it from `source()`, never both: printed with
//! all its sources it would repeat itself. Most errors here say everything in their text.

use crate::finding::Finding;
use crate::source::{Source, closing, is_word};

/// Checks `source`, a file of a crate.
pub(crate) fn check(source: &Source, findings: &mut Vec<Finding>) {
    const MARK: &str = "#[error(";
    for (at, _) in source.code.match_indices(MARK) {
        let end = closing(&source.code, at + 1);
        let words = &source.text[at + MARK.len()..end];
        if let Some(field) = sources(&source.code[end..]).find(|field| says(words, field)) {
            let what = format!(
                "the error says {{{field}}}, which is its source as well: leave out #[from] or \
                 #[source], and let no field be called source"
            );
            findings.push(Finding::new(&source.path, source.line_of(at), what));
        }
    }
}

/// Fields of the error at the start of `item` that are its source.
fn sources(item: &str) -> impl Iterator<Item = &str> {
    let item = item.trim_start_matches(']').trim_start().trim_start_matches("pub(crate)");
    let open = item.find(['(', '{', ',', ';', '}']).unwrap_or(item.len());
    let is_tuple = item[open..].starts_with('(');
    let fields = match item[open..].starts_with(['(', '{']) {
        true => &item[open..closing(item, open)],
        false => "",
    };
    let marks = ["#[from]", "#[source]"].into_iter().flat_map(|mark| fields.split(mark).skip(1));
    let marked = marks.map(move |rest| {
        let rest = rest.trim_start().trim_start_matches("pub").trim_start();
        let name = rest.split(|c| !is_word(c)).next().unwrap_or_default();
        // That of a tuple is its only field.
        if is_tuple { "0" } else { name }
    });
    let by_name = fields.split_whitespace().any(|word| word == "source:").then_some("source");
    marked.chain(by_name)
}

/// Whether a format string, with its arguments, has a field in it.
fn says(words: &str, field: &str) -> bool {
    let ways = [format!("{{{field}}}"), format!("{{{field}:"), format!(" .{field}")];
    ways.iter().any(|way| words.contains(way))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::count;

    fn found(text: &str) -> usize {
        count(check, text)
    }

    #[test]
    fn a_source_stands_in_the_text_or_is_returned() {
        assert_eq!(found("#[error(\"no: {0}\")]\nA(#[from] B),"), 1);
        assert_eq!(found("#[error(\"no\")]\nA(#[from] B),"), 0);
        assert_eq!(found("#[error(\"no: {0}\")]\nA(B),"), 0);
        assert_eq!(found("#[error(transparent)]\nA(#[from] B),"), 0);
        assert_eq!(found("#[error(\"{}\", .0)]\nA(#[source] Box<B>),"), 1);
        assert_eq!(found("#[error(\"{it}\", it = .0.kind())]\nA(#[source] Box<B>),"), 1);
    }

    #[test]
    fn fields_have_names() {
        let error = |words: &str, field: &str| {
            found(&format!(
                "#[error(\"{words}\")]\nA {{\n    /// Where.\n    at: C,\n    {field} }},"
            ))
        };
        assert_eq!(error("{at}: {source}", "source: B"), 1);
        assert_eq!(error("{at}: {source:?}", "source: B"), 1);
        assert_eq!(error("{at}", "source: B"), 0);
        assert_eq!(error("{at}: {error}", "error: B"), 0);
        assert_eq!(error("{at}: {error}", "#[source]\n    error: B"), 1);
        assert_eq!(error("{at}: {error}", "#[source]\n    pub error: B"), 1);
    }

    #[test]
    fn neighbours_count_for_themselves() {
        let two = "#[error(\"{0}\")]\nA(u32),\n#[error(\"no\")]\nB(#[from] C),";
        assert_eq!(found(two), 0);
        assert_eq!(found("#[error(\"{source} of it\")]\nstruct A;\n\nstruct B { source: C }"), 0);
        assert_eq!(found("#[error(\"{source}\")]\npub(crate) struct B { source: C }"), 1);
    }
}
