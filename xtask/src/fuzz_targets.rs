//! The fuzz targets are built twice: as modules of tests/fuzz, which every run compiles, and as
//! programs of fuzz/, which `make fuzz` does. Both have the same targets and dependencies.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::BTreeSet;

const PROGRAMS: &str = "fuzz/Cargo.toml";
const TESTS: &str = "tests/fuzz/Cargo.toml";
const MODULES: &str = "tests/fuzz/tests/all/main.rs";
const TARGETS: &str = "fuzz/fuzz_targets/";
/// The library of the programs alone: tests/fuzz stands in for it.
const FUZZER: &str = "libfuzzer-sys";

/// Checks that each target is in both places, and that both depend on the same crates.
pub(crate) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let [programs, tests, modules] =
        [PROGRAMS, TESTS, MODULES].map(|path| tree.text(path).unwrap_or_default());
    for target in tree.files().filter(|path| path.starts_with(TARGETS)) {
        let file = target.trim_start_matches("fuzz/");
        if !programs.contains(&format!("path = \"{file}\"")) {
            findings.push(Finding::new(PROGRAMS, 1, format!("no [[bin]] has {file} for its path")));
        }
        if !modules.contains(&format!("/{target}\"")) {
            findings.push(Finding::new(MODULES, 1, format!("targets! does not list {target}")));
        }
    }
    let built = dependencies(&programs, "[dependencies]");
    let tested = dependencies(&tests, "[dev-dependencies]");
    for name in built.symmetric_difference(&tested).filter(|name| **name != FUZZER) {
        let path = if built.contains(name) { TESTS } else { PROGRAMS };
        let other = if built.contains(name) { PROGRAMS } else { TESTS };
        findings.push(Finding::new(path, 1, format!("{name} is missing: {other} has it")));
    }
}

/// The crates that a manifest names under `heading`.
fn dependencies<'a>(manifest: &'a str, heading: &str) -> BTreeSet<&'a str> {
    let lines = manifest.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split([' ', '.']).next()).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::dependencies;

    #[test]
    fn dependencies_are_those_under_the_heading() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\na.workspace = true\n\
                        b = { path = \"../b\" }\n\n[[bin]]\nname = \"c\"\n";
        assert_eq!(dependencies(manifest, "[dependencies]"), ["a", "b"].into());
        assert!(dependencies(manifest, "[dev-dependencies]").is_empty());
    }
}
