//! Parts of a file that the check does not see: test code, and the other side of `cfg(loom)`.

use super::surgery::Mutation;
use crate::source::{Source, closing};
use std::collections::BTreeMap;
use std::ops::Range;

/// The regions of one file whose orderings are left alone.
#[derive(Debug)]
pub(crate) struct Excluded {
    regions: Vec<(Range<usize>, &'static str)>,
}

const OF_TESTS: &str = "test code";
const NOT_IN_MODEL: &str = "not compiled in the model checker";
const IN_MODEL: &str = "compiled in the model checker only";

impl Excluded {
    /// Finds the regions of `source` for a check with or without loom; `whole` is the reason to
    /// leave out the whole file, if there is one.
    pub(crate) fn of(source: &Source, under_loom: bool, whole: Option<&'static str>) -> Self {
        let whole = whole.map(|reason| (0..source.text.len(), reason));
        let parts = conditions(source)
            .into_iter()
            .filter_map(|(condition, region)| Some((region, why_unseen(&condition, under_loom)?)));
        Self { regions: whole.into_iter().chain(parts).collect() }
    }

    /// Why `mutation` is not tried, if so.
    pub(crate) fn reason(&self, mutation: &Mutation) -> Option<&'static str> {
        let found = self.regions.iter().find(|(region, _)| region.contains(&mutation.offset()));
        found.map(|(_, reason)| *reason)
    }
}

/// Why a check does not see what is compiled under `condition`, if so.
fn why_unseen(condition: &str, under_loom: bool) -> Option<&'static str> {
    if asks_for(condition, "test") {
        Some(OF_TESTS)
    } else if under_loom && asks_for(condition, "not(loom)") {
        Some(NOT_IN_MODEL)
    } else if !under_loom && asks_for(condition, "loom") {
        Some(IN_MODEL)
    } else {
        None
    }
}

/// The files of modules that the check does not see, and why: `#[cfg(test)] mod model;`.
pub(crate) fn unseen_files(sources: &[Source], under_loom: bool) -> BTreeMap<String, &'static str> {
    let mut files = BTreeMap::new();
    for source in sources {
        for (condition, region) in conditions(source) {
            let name = declared_module(&source.code[region]);
            let (Some(name), Some(reason)) = (name, why_unseen(&condition, under_loom)) else {
                continue;
            };
            let directory = module_directory(&source.path);
            let file = format!("{directory}/{name}.rs");
            let folder = format!("{directory}/{name}/");
            let below = sources.iter().map(|source| &source.path);
            let below = below.filter(|path| **path == file || path.starts_with(&folder));
            files.extend(below.map(|path| (path.clone(), reason)));
        }
    }
    files
}

/// The name of the module with a file of its own that `item` declares, if it does.
fn declared_module(item: &str) -> Option<&str> {
    let (_, name) = item.trim_end().strip_suffix(';')?.rsplit_once("mod ")?;
    Some(name.trim())
}

/// Directory of the modules that `path` declares.
fn module_directory(path: &str) -> &str {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    match path.rsplit('/').next() {
        Some("lib.rs" | "main.rs" | "mod.rs") => directory,
        _ => path.strip_suffix(".rs").unwrap_or(path),
    }
}

/// Every `#[cfg(condition)]` and the item under it; `#![cfg(condition)]` and the whole file.
fn conditions(source: &Source) -> Vec<(String, Range<usize>)> {
    let code = &source.code;
    let outer = code.match_indices("#[cfg(").map(|(at, _)| {
        let end = closing(code, at + 1);
        (condition(&code[at + "#[cfg(".len()..end]), at..item_end(code, end))
    });
    let inner = code.match_indices("#![cfg(").map(|(at, _)| {
        let end = closing(code, at + 2);
        (condition(&code[at + "#![cfg(".len()..end]), 0..code.len())
    });
    outer.chain(inner).collect()
}

/// Text before the `)]` of an attribute, without spaces.
fn condition(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    text.strip_suffix(")]").unwrap_or(&text).to_owned()
}

/// Whether `condition` holds only if `part` does: `part`, or `all(..., part, ...)`.
fn asks_for(condition: &str, part: &str) -> bool {
    match condition.strip_prefix("all(").and_then(|rest| rest.strip_suffix(')')) {
        Some(parts) => parts.split(',').any(|one| one == part),
        None => condition == part,
    }
}

/// The end of the item that begins after `start`: its `;` or its closing brace.
fn item_end(code: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b';' => return at + 1,
            b'{' => return closing(code, at),
            b'(' | b'[' => at = closing(code, at),
            b')' | b']' | b'}' => return at, // The end of what the item stands in.
            _ => at += 1,
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::surgery::mutations;

    fn reasons(text: &str, under_loom: bool) -> Vec<Option<&'static str>> {
        let source = Source::new("crates/a/src/a.rs", text.to_owned());
        let excluded = Excluded::of(&source, under_loom, None);
        mutations(&source).iter().map(|mutation| excluded.reason(mutation)).collect()
    }

    const FENCES: &str = "
#[cfg(not(loom))]
mod products {
    pub fn f<A, B>() {
        // PAIRS(a): one
        fence(Ordering::SeqCst);
    }
}
#[cfg(loom)]
mod model {
    // PAIRS(a): two
    fence(Ordering::SeqCst);
}
// PAIRS(b): three
x.load(Ordering::Acquire);
#[cfg(all(test, loom))]
mod tests {
    // PAIRS(b): four
    x.load(Ordering::Acquire);
}
";

    #[test]
    fn only_what_the_check_compiles_is_weakened() {
        let under_loom = [Some(NOT_IN_MODEL), None, None, Some(OF_TESTS)];
        assert_eq!(reasons(FENCES, true), under_loom);
        assert_eq!(reasons(FENCES, false), [None, Some(IN_MODEL), None, Some(OF_TESTS)]);
    }

    #[test]
    fn attributes_without_a_body_end_at_the_semicolon() {
        let text = "#[cfg(not(loom))]\nuse a::{b, c};\n// PAIRS(a): x\nx.load(Ordering::Acquire);";
        assert_eq!(reasons(text, true), [None]);
        let inner = "#![cfg(not(loom))]\n// PAIRS(a): x\nx.load(Ordering::Acquire);";
        assert_eq!(reasons(inner, true), [Some(NOT_IN_MODEL)]);
    }

    #[test]
    fn modules_have_files() {
        let source = |path: &str, text: &str| Source::new(path, text.to_owned());
        let sources = [
            source(
                "c/src/lib.rs",
                "#[cfg(test)]\nmod model;\nmod ring;\n#[cfg(not(loom))]\nmod os;",
            ),
            source("c/src/model.rs", ""),
            source("c/src/os.rs", ""),
            source("c/src/os/file.rs", ""),
            source("c/src/ring.rs", "#[cfg(all(loom, test))]\nmod proof;\n"),
            source("c/src/ring/proof.rs", ""),
            source("c/src/proof.rs", ""),
        ];
        let tests = [("c/src/model.rs", OF_TESTS), ("c/src/ring/proof.rs", OF_TESTS)];
        let files = |under_loom| -> Vec<(String, &str)> {
            unseen_files(&sources, under_loom).into_iter().collect()
        };
        assert_eq!(files(false), tests.map(|(file, reason)| (file.to_owned(), reason)));
        let os = ["c/src/os.rs", "c/src/os/file.rs"].map(|file| (file, NOT_IN_MODEL));
        let both = [tests[0], os[0], os[1], tests[1]];
        assert_eq!(files(true), both.map(|(file, reason)| (file.to_owned(), reason)));
        let excluded = Excluded::of(&sources[2], true, Some(NOT_IN_MODEL));
        assert_eq!(excluded.regions, [(0..0, NOT_IN_MODEL)]);
    }

    #[test]
    fn conditions_are_told_apart() {
        assert!(asks_for("test", "test"));
        assert!(asks_for("all(test,not(loom))", "test"));
        assert!(!asks_for("not(test)", "test"));
        assert!(!asks_for("any(test,loom)", "test"));
    }
}
