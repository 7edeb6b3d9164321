//! ARCHITECTURE.md, the map of the crates, names each of them.

use crate::finding::Finding;
use crate::metadata::Metadata;
use crate::tree::Tree;

const MAP: &str = "ARCHITECTURE.md";

/// Checks that ARCHITECTURE.md names every crate of crates/.
pub(crate) fn check(tree: &Tree, workspace: &Metadata, findings: &mut Vec<Finding>) {
    let map = tree.text(MAP).unwrap_or_default();
    for package in workspace.members() {
        let manifest = workspace.relative(&package.manifest_path);
        if manifest.starts_with("crates/") && !is_named(&map, &package.name) {
            let what =
                format!("`{}` is missing: say what lives in {manifest}'s crate", package.name);
            findings.push(Finding::new(MAP, 1, what));
        }
    }
}

fn is_named(map: &str, name: &str) -> bool {
    map.contains(&format!("`{name}`"))
}

#[cfg(test)]
mod tests {
    use super::is_named;

    #[test]
    fn a_name_is_whole_and_quoted() {
        assert!(is_named("| 0 | `lanecast-base` |", "lanecast-base"));
        assert!(!is_named("| 0 | `lanecast-base` |", "lanecast"));
        assert!(!is_named("lanecast", "lanecast"));
    }
}
