//! Words that have no place in the repository, or none in the product's code.

use crate::finding::Finding;
use crate::source::{Source, is_word};
use crate::tree::Tree;

/// Macros that stand for work not done, or for debugging.
const MACROS: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

/// Marks that say the same in comments and texts.
const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Variables of tests have no such names: the prefix belongs to the configuration, and a program
/// refuses settings that it does not know.
const TEST_PREFIX: &str = "LANECAST_TEST";

/// Home and work directories of one machine (written in two parts, so that this file passes).
const HOMES: [&str; 3] = [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];

/// Checks `source`, a file of a crate, for unfinished work.
pub(crate) fn check_code(source: &Source, findings: &mut Vec<Finding>) {
    for name in MACROS {
        for at in source.words(name) {
            let what = format!("{name} in a crate: finish it, or leave the feature out");
            findings.push(Finding::new(&source.path, source.line_of(at), what));
        }
    }
}

/// Checks a text file of a crate for marks of unfinished work.
pub(crate) fn check_marks(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        for mark in MARKS {
            if line.split(|c| !is_word(c)).any(|word| word == mark) {
                let what = format!("{mark} in a crate: do it, or say what is so and why");
                findings.push(Finding::new(path, index + 1, what));
            }
        }
    }
}

/// Checks a text file of a crate for variables of tests under the prefix of the configuration.
pub(crate) fn check_variables(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        if line.split(|c| !is_word(c)).any(|word| word.starts_with(TEST_PREFIX)) {
            let what = "a test's variable under LANECAST_, the prefix of settings: leave it out";
            findings.push(Finding::new(path, index + 1, what));
        }
    }
}

/// Checks every text file for paths that exist on one machine only; returns how many it read.
pub(crate) fn check_paths(tree: &Tree, findings: &mut Vec<Finding>) -> usize {
    let mut read = 0;
    for path in tree.files() {
        let Some(text) = tree.text(path) else { continue };
        read += 1;
        for (index, line) in text.lines().enumerate() {
            for home in HOMES.iter().filter(|home| names_directory(line, home)) {
                let what = format!("'{home}' is a directory of one machine: write a relative path");
                findings.push(Finding::new(path, index + 1, what));
            }
        }
    }
    read
}

/// Whether `line` names a path that begins with `directory`, not one that runs through it.
fn names_directory(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| is_word(c) || matches!(c, '.' | '-' | '~' | '}' | ')' | '*'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_are_meant() {
        let home = HOMES[2];
        assert!(names_directory(&format!("cd {home}me"), home));
        assert!(names_directory(&format!("\"{home}me\""), home));
        assert!(!names_directory(&format!("https://example.org{home}"), home));
        assert!(!names_directory(&format!("${{DIR}}{home} target{home}"), home));
    }

    #[test]
    fn macros_are_looked_for_in_code_only() {
        let mut findings = Vec::new();
        let text = "// todo!()\nlet a = \"dbg!\";\nmy_todo!();\ntodo!();\n";
        check_code(&Source::new("a.rs", text.into()), &mut findings);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("a.rs:4: todo!"));
    }

    #[test]
    fn marks_are_whole_words() {
        let mut findings = Vec::new();
        check_marks("a.rs", "// MYTODOS\n// TODO: more\nXXXX\n(FIXME)\n", &mut findings);
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("a.rs:2:") && lines[1].starts_with("a.rs:4:"));
    }

    #[test]
    fn variables_of_tests_have_no_prefix_of_settings() {
        let mut findings = Vec::new();
        let text = "var(\"LANECAST_TEST_SEED\")\nvar(\"SEED\")\nvar(\"LANECAST_SERVER\")\n";
        check_variables("a.rs", text, &mut findings);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("a.rs:1: a test's variable"));
    }
}
