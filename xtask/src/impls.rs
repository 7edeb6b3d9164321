//! An inherent `impl` stands in the file of its type: a type that does not fit one file has parts
//! of its own.

use crate::finding::Finding;
use crate::packages::Package;
use crate::source::{Source, is_word};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the package's files.
pub(crate) fn check(package: &Package<'_>, findings: &mut Vec<Finding>) {
    let mut types: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in &package.sources {
        for keyword in ["struct", "enum", "union"] {
            for at in source.words(keyword) {
                let name = first_word(source.code[at + keyword.len()..].trim_start());
                types.entry(name).or_default().insert(&source.path);
            }
        }
    }
    for source in &package.sources {
        for (at, name) in inherent_impls(source) {
            let Some(paths) = types.get(name) else { continue };
            if !paths.contains(source.path.as_str()) {
                let path = paths.first().copied().unwrap_or_default();
                let what = format!("{name} is defined in {path}: split the type, not its impl");
                findings.push(Finding::new(&source.path, source.line_of(at), what));
            }
        }
    }
}

/// Offset and type of each inherent impl at the start of a line.
fn inherent_impls(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let code = &*source.code;
    source.words("impl").filter_map(move |at| {
        let is_item = at == 0 || code[..at].ends_with('\n');
        let mut head = code[at + "impl".len()..].split('{').next()?;
        if head.starts_with('<') {
            head = head.get(closing_angle(head)?..)?;
        }
        let is_inherent = is_item && !head.split(|c| !is_word(c)).any(|word| word == "for");
        let path = head.trim_start().split(['<', ' ', '\n']).next()?;
        let name = path.rsplit("::").next()?;
        (is_inherent && !name.is_empty()).then_some((at, name))
    })
}

/// Offset behind the bracket that closes the first one.
fn closing_angle(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn first_word(text: &str) -> &str {
    text.split(|c| !is_word(c)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> usize {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(path, (*text).into())).collect();
        let package = Package { path: "x", sources: sources.iter().collect() };
        let mut findings = Vec::new();
        check(&package, &mut findings);
        findings.len()
    }

    #[test]
    fn an_inherent_impl_in_another_file_is_found() {
        let define = ("x/src/a.rs", "pub struct A<T>(T);\nimpl<T> A<T> {}\n");
        assert_eq!(found(&[define, ("x/src/b.rs", "impl<T: Fn() -> B> A<T> {}\n")]), 1);
        assert_eq!(found(&[define, ("x/src/b.rs", "impl super::A<u8> {}\n")]), 1);
        assert_eq!(found(&[define, ("x/src/b.rs", "impl Display for A<u8> {}\n")]), 0);
        assert_eq!(found(&[define, ("x/src/b.rs", "impl Other {}\n")]), 0);
        // Each file has a type of that name.
        assert_eq!(found(&[define, ("x/src/b.rs", "enum A {}\nimpl A {}\n")]), 0);
    }
}
