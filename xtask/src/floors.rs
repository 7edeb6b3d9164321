//! The one table of floors, and the check that dependencies point down only.

use crate::finding::Finding;
use crate::metadata::{Metadata, Package};
use std::collections::BTreeMap;
use std::path::Path;

/// The house, from the ground up. A crate may depend on crates of lower floors.
const FLOORS: [&[&str]; 6] = [
    &["lanecast-base", "lanecast-wire"],
    &["lanecast-transport", "lanecast-market", "lanecast-os", "lanecast-ring", "lanecast-stats"],
    &[
        "lanecast-filter",
        "lanecast-journal",
        "lanecast-membership",
        "lanecast-persistence",
        "lanecast-protocol",
        "lanecast-sealing",
        "lanecast-tls",
    ],
    &[
        "lanecast-content",
        "lanecast-group",
        "lanecast-net",
        "lanecast-shm",
        "lanecast-sow",
        "lanecast-store",
    ],
    &[
        "lanecast",
        "lanecast-broker",
        "lanecast-client",
        "lanecast-conformance",
        "lanecast-measure",
        "lanecast-report",
    ],
    &["lanecast-c", "lanecast-cli", "lanecast-examples", "lanecast-py"],
];

/// Permits on the same floor: (dependent crate, its dependency).
const SAME_FLOOR: [(&str, &str); 3] = [
    ("lanecast-wire", "lanecast-base"),
    ("lanecast-ring", "lanecast-os"),
    ("lanecast-stats", "lanecast-os"),
];

/// Crates that stand beside the house: they may use all of it, and only tests may use them.
const BESIDE: [&str; 3] = ["lanecast-fuzz-tests", "lanecast-sim", "lanecast-system-tests"];

/// Members that have nothing to do with the house.
const APART: [&str; 1] = ["xtask"];

/// Checks the manifests of the workspace's members.
pub(crate) fn check(workspace: &Metadata, findings: &mut Vec<Finding>) {
    let members: Vec<&Package> = workspace.members().collect();
    for package in &members {
        let manifest = Manifest::read(workspace, &package.manifest_path);
        if place(&package.name).is_none() {
            findings.push(manifest.finding(
                &package.name,
                format!("{} has no floor: give it one in xtask/src/floors.rs", package.name),
            ));
        }
        for dependency in &package.dependencies {
            let exists = members.iter().any(|member| member.name == dependency.name);
            let is_ours = exists || dependency.name.starts_with("lanecast");
            if !is_ours {
                continue;
            }
            let refusal = if exists {
                refusal(&package.name, &dependency.name, dependency.is_dev())
            } else {
                Some(format!("{} is no crate of this workspace", dependency.name))
            };
            findings.extend(refusal.map(|what| manifest.finding(&dependency.name, what)));
        }
    }
    if let Some(cycle) = cycle(&edges(&members)) {
        let what = format!("crates depend on each other in a circle: {}", cycle.join(" -> "));
        findings.push(Finding::new("Cargo.toml", 1, what));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Floor(usize),
    Beside,
    Apart,
}

fn place(name: &str) -> Option<Place> {
    if BESIDE.contains(&name) {
        Some(Place::Beside)
    } else if APART.contains(&name) {
        Some(Place::Apart)
    } else {
        FLOORS.iter().position(|floor| floor.contains(&name)).map(Place::Floor)
    }
}

/// Why `from` may not depend on `to`, if it may not.
fn refusal(from: &str, to: &str, is_dev: bool) -> Option<String> {
    let (from_place, to_place) = (place(from)?, place(to)?);
    match (from_place, to_place) {
        (Place::Apart, _) | (_, Place::Apart) => {
            Some(format!("{from} and {to} may not use each other: one is a tool of the checkout"))
        }
        _ if is_dev => None,
        (Place::Beside, _) => None,
        (_, Place::Beside) => {
            Some(format!("{to} is for tests: move it to [dev-dependencies] of {from}"))
        }
        (Place::Floor(from_floor), Place::Floor(to_floor)) => {
            let allowed = to_floor < from_floor || SAME_FLOOR.contains(&(from, to));
            (!allowed).then(|| {
                format!(
                    "{from} (floor {from_floor}) may not depend on {to} (floor {to_floor}): \
                     dependencies point down; move what both need to a lower floor"
                )
            })
        }
    }
}

/// Dependencies that are linked or built; those of tests are left out.
fn edges<'a>(members: &[&'a Package]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let used = |package: &'a Package| {
        let linked = package.dependencies.iter().filter(|dependency| !dependency.is_dev());
        linked.map(|dependency| dependency.name.as_str()).collect()
    };
    members.iter().map(|package| (package.name.as_str(), used(package))).collect()
}

/// A circle among `edges`, if there is one: its first crate is named again at the end.
fn cycle<'a>(edges: &BTreeMap<&'a str, Vec<&'a str>>) -> Option<Vec<&'a str>> {
    fn walk<'a>(
        at: &'a str,
        edges: &BTreeMap<&'a str, Vec<&'a str>>,
        path: &mut Vec<&'a str>,
        done: &mut Vec<&'a str>,
    ) -> bool {
        if done.contains(&at) {
            return false;
        }
        let closes = path.contains(&at);
        path.push(at);
        if closes || edges.get(at).into_iter().flatten().any(|next| walk(next, edges, path, done)) {
            return true;
        }
        path.pop();
        done.push(at);
        false
    }
    let (mut path, mut done) = (Vec::new(), Vec::new());
    let found = edges.keys().any(|start| walk(start, edges, &mut path, &mut done));
    let last = path.last().copied();
    found.then(|| path.into_iter().skip_while(|name| Some(*name) != last).collect())
}

/// A Cargo.toml, to name lines of.
struct Manifest {
    path: String,
    text: String,
}

impl Manifest {
    fn read(workspace: &Metadata, path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Self { path: workspace.relative(path), text }
    }

    /// A finding at the line that gives `name` a value, or at the first line.
    fn finding(&self, name: &str, what: String) -> Finding {
        let names = |line: &str| {
            let rest = line.trim_start().trim_start_matches('"').strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
        };
        let line = self.text.lines().position(names).map_or(1, |index| index + 1);
        Finding::new(&self.path, line, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_is_allowed_and_up_is_not() {
        assert_eq!(refusal("lanecast-shm", "lanecast-transport", false), None);
        assert!(refusal("lanecast-transport", "lanecast-shm", false).is_some());
        assert_eq!(refusal("lanecast-cli", "lanecast", false), None);
        assert_eq!(refusal("lanecast-cli", "lanecast-measure", false), None);
    }

    #[test]
    fn the_same_floor_needs_a_permit() {
        assert_eq!(refusal("lanecast-stats", "lanecast-os", false), None);
        assert!(refusal("lanecast-os", "lanecast-stats", false).is_some());
        assert!(refusal("lanecast-os", "lanecast-transport", false).is_some());
        assert!(refusal("lanecast-measure", "lanecast", false).is_some());
        assert_eq!(refusal("lanecast-wire", "lanecast-base", false), None);
    }

    #[test]
    fn tests_may_look_up() {
        assert_eq!(refusal("lanecast-shm", "lanecast-conformance", true), None);
        assert_eq!(refusal("lanecast-protocol", "lanecast-sim", true), None);
        assert!(refusal("lanecast-protocol", "lanecast-sim", false).is_some());
        assert!(refusal("xtask", "lanecast-base", true).is_some());
    }

    #[test]
    fn circles_are_found() {
        let edges = |pairs: &[(&'static str, &'static str)]| {
            let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (from, to) in pairs {
                edges.entry(from).or_default().push(to);
            }
            edges
        };
        assert_eq!(cycle(&edges(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
        let circle = cycle(&edges(&[("a", "b"), ("b", "c"), ("c", "b")]));
        assert_eq!(circle, Some(vec!["b", "c", "b"]));
    }

    #[test]
    fn permits_make_no_circle() {
        let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (from, to) in SAME_FLOOR {
            assert_eq!(place(from), place(to), "{from} needs no permit for {to}");
            edges.entry(from).or_default().push(to);
        }
        assert_eq!(cycle(&edges), None);
    }

    #[test]
    fn the_manifest_line_is_named() {
        let text = "[package]\nname = \"x\"\n[dependencies]\nab.workspace = true\na = \"1\"\n";
        let manifest = Manifest { path: "x/Cargo.toml".into(), text: text.into() };
        let at = |name: &str| manifest.finding(name, "no".into()).to_string();
        assert_eq!(at("a"), "x/Cargo.toml:5: no");
        assert_eq!(at("ab"), "x/Cargo.toml:4: no");
        assert_eq!(at("zz"), "x/Cargo.toml:1: no");
    }
}
