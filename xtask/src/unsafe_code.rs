//! Roots of crates forbid unsafe code, except in the few crates that need it.

use crate::finding::Finding;
use crate::metadata::Metadata;
use crate::source::Source;

/// Crates that may hold unsafe code. The workspace's lints ask a reason of each block there.
const MAY_BE_UNSAFE: [&str; 8] = [
    "lanecast-base",
    "lanecast-c",
    "lanecast-os",
    "lanecast-py",
    "lanecast-ring",
    "lanecast-shm",
    "lanecast-stats",
    "lanecast-wire",
];

/// Targets that are run or linked; tests and benches are not among them.
const KINDS: [&str; 5] = ["lib", "bin", "example", "proc-macro", "custom-build"];

/// Checks that every other crate's root forbids unsafe code.
pub(crate) fn check(workspace: &Metadata, findings: &mut Vec<Finding>) {
    for package in workspace.members() {
        if MAY_BE_UNSAFE.contains(&package.name.as_str()) {
            continue;
        }
        for target in &package.targets {
            if !target.kind.iter().any(|kind| KINDS.contains(&kind.as_str())) {
                continue;
            }
            let path = workspace.relative(&target.src_path);
            let text = std::fs::read_to_string(&target.src_path).unwrap_or_default();
            if !forbids_unsafe(&Source::new(&path, text)) {
                findings.push(Finding::new(&path, 1, "add #![forbid(unsafe_code)] to the root"));
            }
        }
    }
}

fn forbids_unsafe(source: &Source) -> bool {
    source.code.contains("#![forbid(unsafe_code)]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_forbids_nothing() {
        let forbids = |text: &str| forbids_unsafe(&Source::new("lib.rs", text.into()));
        assert!(forbids("//! Doc.\n#![forbid(unsafe_code)]\n"));
        assert!(!forbids("// #![forbid(unsafe_code)]\n"));
        assert!(!forbids("#![deny(unsafe_code)]\n"));
    }
}
