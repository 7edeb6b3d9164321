//! Which licences the workspace's dependencies may have.

use crate::finding::Finding;
use crate::metadata::{Metadata, Package};
use crate::spdx;
use std::collections::{BTreeMap, BTreeSet};

/// Licences that a linked dependency may have.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Licences that are welcome too in what builds or tests lanecast and is never linked into it.
const ALLOWED_IN_TOOLS: [&str; 1] = ["MPL-2.0"];

/// Members of the workspace that are tools themselves.
const TOOLS: [&str; 1] = ["xtask"];

/// Checks every package of `graphs`; `lock` is the text of Cargo.lock, to name the line.
pub(crate) fn check(graphs: &[Metadata], lock: &str, findings: &mut Vec<Finding>) -> usize {
    let mut packages: BTreeMap<&str, (&Package, bool)> = BTreeMap::new();
    for graph in graphs {
        let linked = linked(graph);
        for package in &graph.packages {
            let is_linked = linked.contains(package.id.as_str());
            packages.entry(&package.id).or_insert((package, false)).1 |= is_linked;
        }
    }
    for (package, is_linked) in packages.values() {
        if let Err(reason) = judge(package.license.as_deref(), *is_linked) {
            let what = format!(
                "{} {}: {reason}; use another crate, or allow the licence in \
                 xtask/src/licences.rs if it is as free as those there",
                package.name, package.version
            );
            findings.push(Finding::new("Cargo.lock", line_in_lock(lock, &package.name), what));
        }
    }
    packages.len()
}

/// The packages that end up in a product: reached from a member over dependencies that are
/// neither for building nor for testing.
fn linked(graph: &Metadata) -> BTreeSet<&str> {
    let nodes = graph.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let edges: BTreeMap<&str, Vec<&str>> = nodes
        .map(|node| {
            let linked = node.deps.iter().filter(|edge| {
                edge.dep_kinds.is_empty() || edge.dep_kinds.iter().any(|kind| kind.kind.is_none())
            });
            (node.id.as_str(), linked.map(|edge| edge.pkg.as_str()).collect())
        })
        .collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = graph
        .members()
        .filter(|package| !TOOLS.contains(&package.name.as_str()))
        .map(|package| package.id.as_str())
        .collect();
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(edges.get(id).into_iter().flatten());
        }
    }
    reached
}

fn judge(licence: Option<&str>, is_linked: bool) -> Result<(), String> {
    let expression = licence.ok_or("its manifest names no licence")?;
    let allowed =
        |id: &str| ALLOWED.contains(&id) || (!is_linked && ALLOWED_IN_TOOLS.contains(&id));
    match spdx::is_met(expression, &allowed) {
        Ok(true) => Ok(()),
        Ok(false) if is_linked => Err(format!("its licence '{expression}' is not allowed")),
        Ok(false) => Err(format!("its licence '{expression}' is not allowed, not even in tools")),
        Err(reason) => Err(format!("its licence is not understood: {reason}")),
    }
}

fn line_in_lock(lock: &str, name: &str) -> usize {
    let wanted = format!("name = \"{name}\"");
    lock.lines().position(|line| line == wanted).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_may_have_more() {
        assert!(judge(Some("MPL-2.0"), false).is_ok());
        assert!(judge(Some("MPL-2.0"), true).is_err());
        assert!(judge(Some("MIT OR MPL-2.0"), true).is_ok());
        assert!(judge(Some("GPL-3.0-or-later"), false).is_err());
        assert!(judge(None, true).is_err());
    }

    #[test]
    fn what_only_builds_or_tests_is_not_linked() {
        let graph: Metadata = serde_json::from_str(
            r#"{
                "packages": [
                    {"id": "ours", "name": "ours", "version": "1", "license": "MIT",
                     "manifest_path": "/x/Cargo.toml", "dependencies": [], "targets": []},
                    {"id": "task", "name": "xtask", "version": "1", "license": "MIT",
                     "manifest_path": "/y/Cargo.toml", "dependencies": [], "targets": []}
                ],
                "workspace_members": ["ours", "task"],
                "workspace_root": "/x",
                "resolve": {"nodes": [
                    {"id": "ours", "deps": [
                        {"pkg": "lib", "dep_kinds": [{"kind": null}, {"kind": "dev"}]},
                        {"pkg": "gen", "dep_kinds": [{"kind": "build"}]}]},
                    {"id": "task", "deps": [{"pkg": "only", "dep_kinds": [{"kind": null}]}]},
                    {"id": "lib", "deps": [{"pkg": "deep", "dep_kinds": [{"kind": null}]}]},
                    {"id": "gen", "deps": [{"pkg": "tool", "dep_kinds": [{"kind": null}]}]}
                ]}
            }"#,
        )
        .expect("valid");
        let linked: Vec<&str> = linked(&graph).into_iter().collect();
        assert_eq!(linked, ["deep", "lib", "ours"]);
    }

    #[test]
    fn the_line_is_named() {
        let lock = "[[package]]\nname = \"ab\"\n\n[[package]]\nname = \"a\"\n";
        assert_eq!(line_in_lock(lock, "a"), 5);
        assert_eq!(line_in_lock(lock, "c"), 1);
    }
}
