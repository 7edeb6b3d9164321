//! Files of a crate that import one another in a circle cannot be understood one by one.
//!
//! A file imports another if its code, without tests, names an item that the other defines; a
//! re-export between them does not count, nor does `mod other;`.

mod modules;
mod token;

use crate::finding::Finding;
use crate::packages::Package;
use modules::{Edge, Modules};
use std::collections::{BTreeMap, BTreeSet};

/// Files each of which imports all others, directly or through others of them.
#[derive(Debug, PartialEq, Eq)]
struct Circle<'a> {
    files: BTreeSet<&'a str>,
    /// One import for each two of the files, the first that was found.
    edges: Vec<Edge<'a>>,
}

/// Checks that no files of a package are in circles.
pub(crate) fn check(packages: &[Package<'_>], findings: &mut Vec<Finding>) {
    for package in packages {
        for circle in &circles(package) {
            let steps = circle.shortest();
            let steps: Vec<String> = steps.iter().map(|edge| step(edge)).collect();
            let what = format!(
                "{} files import one another in a circle: {}; move what both need to a lower file",
                circle.files.len(),
                steps.join(", ")
            );
            findings.push(Finding::new(circle.edges[0].from, circle.edges[0].line, what));
        }
    }
}

/// Prints all circles of the packages whose path ends with `wanted`, with all their imports;
/// returns whether there are none.
pub(crate) fn print(packages: &[Package<'_>], wanted: &str) -> bool {
    let mut count = 0;
    for package in packages.iter().filter(|package| package.path.ends_with(wanted)) {
        for circle in circles(package) {
            count += 1;
            println!("{}: a circle of {} files", package.path, circle.files.len());
            for edge in &circle.edges {
                println!("    {}", step(edge));
            }
            let shortest: Vec<&str> = circle.shortest().iter().map(|edge| edge.from).collect();
            println!("  shortest: {}", shortest.join(" -> "));
        }
    }
    println!("tidy: {count} circles");
    count == 0
}

fn step(edge: &Edge<'_>) -> String {
    format!("{}:{} uses {} ({})", edge.from, edge.line, edge.to, edge.path)
}

fn circles<'a>(package: &Package<'a>) -> Vec<Circle<'a>> {
    let sources = package.sources.iter().map(|source| (source.path.as_str(), *source)).collect();
    let edges = package.roots().flat_map(|root| Modules::read(root, &sources).edges());
    // One import for each two files.
    let mut first: BTreeMap<(&str, &str), Edge<'_>> = BTreeMap::new();
    for edge in edges {
        first.entry((edge.from, edge.to)).or_insert(edge);
    }
    components(first.into_values().collect())
}

/// The strongly connected components of more than one file.
fn components(edges: Vec<Edge<'_>>) -> Vec<Circle<'_>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edge in &edges {
        next.entry(edge.from).or_default().push(edge.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|file| (*file, reachable(file, &next))).collect();
    let mut circles = Vec::new();
    let mut done = BTreeSet::new();
    for (file, reaches) in &reached {
        let reaches_back = |other: &&&str| reached.get(*other).is_some_and(|r| r.contains(file));
        if reaches.contains(file) && done.insert(*file) {
            let files: BTreeSet<&str> = reaches.iter().filter(reaches_back).copied().collect();
            done.extend(&files);
            let within = |edge: &&Edge<'_>| files.contains(edge.from) && files.contains(edge.to);
            let edges = edges.iter().filter(within).cloned().collect();
            circles.push(Circle { files, edges });
        }
    }
    circles
}

/// The files that `file` imports, directly or through others.
fn reachable<'a>(file: &str, next: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = next.get(file).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(next.get(file).into_iter().flatten());
        }
    }
    reached
}

impl<'a> Circle<'a> {
    /// The fewest imports that lead from one of the files back to it.
    fn shortest(&self) -> Vec<&Edge<'a>> {
        let circles = self.files.iter().filter_map(|file| self.back_to(file));
        circles.min_by_key(Vec::len).unwrap_or_default()
    }

    /// The fewest imports that lead from `start` back to it.
    fn back_to(&self, start: &str) -> Option<Vec<&Edge<'a>>> {
        let mut paths: Vec<Vec<&Edge<'a>>> =
            self.edges.iter().filter(|edge| edge.from == start).map(|edge| vec![edge]).collect();
        let mut visited = BTreeSet::new();
        let mut at = 0;
        while let Some(path) = paths.get(at).cloned() {
            let end = path.last()?.to;
            if end == start {
                return Some(path);
            }
            if visited.insert(end) {
                let steps = self.edges.iter().filter(|edge| edge.from == end);
                paths.extend(steps.map(|edge| [&path[..], &[edge]].concat()));
            }
            at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    /// The circles of a crate of `files`, as the names of their files without directory and `.rs`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source::new(&format!("x/src/{name}.rs"), (*text).into()))
            .collect();
        let package = Package { path: "x", sources: sources.iter().collect() };
        let short =
            |file: &str| file.trim_start_matches("x/src/").trim_end_matches(".rs").to_owned();
        let of = |circle: &Circle<'_>| circle.files.iter().map(|file| short(file)).collect();
        circles(&package).iter().map(of).map(|names: Vec<String>| names.join(" ")).collect()
    }

    #[test]
    fn two_files_that_use_each_other_are_a_circle() {
        let root = ("lib", "mod a;\nmod b;");
        assert_eq!(
            found(&[
                root,
                ("a", "use crate::b::B; pub struct A;"),
                ("b", "use super::a::A; struct B;")
            ]),
            ["a b"]
        );
        assert_eq!(
            found(&[
                root,
                ("a", "fn f() { crate::b::g() }"),
                ("b", "use crate::a; fn g() { a::f() }")
            ]),
            ["a b"]
        );
        assert!(found(&[root, ("a", "use crate::b::B;"), ("b", "struct B;")]).is_empty());
    }

    #[test]
    fn a_longer_way_back_is_a_circle_too() {
        let files = [
            ("lib", "mod a;\nmod b;\nmod c;\nmod d;"),
            ("a", "use crate::b::B; use crate::d::D; struct A;"),
            ("b", "use crate::c::C; struct B;"),
            ("c", "use crate::a::A; struct C;"),
            ("d", "struct D;"),
        ];
        assert_eq!(found(&files), ["a b c"]);
    }

    #[test]
    fn a_parent_and_its_child_can_be_a_circle() {
        let parent = "mod a;\nuse a::A;\nstruct B(A);";
        assert_eq!(found(&[("lib", parent), ("a", "struct A(super::B);")]), ["a lib"]);
        assert_eq!(
            found(&[("lib", "mod a; fn f() { a::g() }"), ("a", "use super::*; fn g() { f() }")]),
            ["a lib"]
        );
        assert!(
            found(&[("lib", "mod a;\npub use a::A;\nstruct B;"), ("a", "struct A(super::B);")])
                .is_empty()
        );
        let uses_its_export = "mod a;\npub use a::A;\nstruct B(A);";
        assert_eq!(found(&[("lib", uses_its_export), ("a", "struct A(super::B);")]), ["a lib"]);
    }

    #[test]
    fn a_re_export_counts_as_the_file_that_defines_the_item() {
        let root = "mod a;\npub mod b;\npub use b::{self as c, B};\npub use a::*;\n";
        let a = "use crate::B; pub struct A;";
        assert_eq!(
            found(&[("lib", root), ("a", a), ("b", "use crate::A; pub struct B;")]),
            ["a b"]
        );
        assert!(found(&[("lib", root), ("a", a), ("b", "pub struct B;")]).is_empty());
        let a = "use crate::c as d; fn f(_: d::B) {} pub struct A;";
        assert_eq!(
            found(&[("lib", root), ("a", a), ("b", "use crate::A; pub struct B;")]),
            ["a b"]
        );
    }

    #[test]
    fn tests_strings_and_comments_import_nothing() {
        let root = ("lib", "mod a;\nmod b;");
        let a = ("a", "use crate::b::B; pub struct A;");
        for b in [
            "struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }",
            "struct B; // crate::a::A\n",
            "const B: &str = \"crate::a::A\";",
            "struct B;\npub(in crate::a) fn f() {}",
        ] {
            assert!(found(&[root, a, ("b", b)]).is_empty(), "{b}");
        }
    }

    #[test]
    fn inline_modules_belong_to_their_file() {
        let root = ("lib", "mod a;\nmod b { pub mod c; pub struct B; use super::D; } struct D;");
        let a = ("a", "use crate::b::B;");
        assert!(found(&[root, a, ("b/c", "use crate::D; use super::B; pub struct C;")]).is_empty());
        let root = ("lib", "mod b { pub mod c; pub struct B(c::C); }");
        assert_eq!(found(&[root, ("b/c", "use super::B; pub struct C;")]), ["b/c lib"]);
    }

    #[test]
    fn macros_are_found_without_a_path() {
        let root = ("lib", "macro_rules! m { () => {} }\nmod a;\nfn f() { a::g() }");
        assert_eq!(found(&[root, ("a", "fn g() { m!() }")]), ["a lib"]);
        let root = ("lib", "macro_rules! m { () => {} }\nmod a;\nfn f() { a::g() }");
        assert!(found(&[root, ("a", "use other::m; fn g() { m!() }")]).is_empty());
    }

    #[test]
    fn the_shortest_way_back_is_shown() {
        let sources = [
            ("x/src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("x/src/a.rs", "use crate::b::B;\nstruct A;"),
            ("x/src/b.rs", "use crate::c::C;\nuse crate::a::A;\nstruct B;"),
            ("x/src/c.rs", "use crate::a::A;\nstruct C;"),
        ]
        .map(|(path, text)| Source::new(path, text.into()));
        let package = Package { path: "x", sources: sources.iter().collect() };
        let circles = circles(&package);
        let steps: Vec<String> = circles[0].shortest().into_iter().map(step).collect();
        let a = "x/src/a.rs:1 uses x/src/b.rs (crate::b::B)";
        let b = "x/src/b.rs:2 uses x/src/a.rs (crate::a::A)";
        assert_eq!((circles.len(), steps), (1, vec![a.to_owned(), b.to_owned()]));
    }
}
