//! The Rust packages of the checkout, also those of other workspaces, with their files.

use crate::source::Source;
use crate::tree::Tree;

/// One package: its directory, and the Rust files below it that belong to no inner package.
#[derive(Debug)]
pub(crate) struct Package<'a> {
    pub(crate) path: &'a str,
    pub(crate) sources: Vec<&'a Source>,
}

impl<'a> Package<'a> {
    /// All packages, by the directories of their manifests.
    pub(crate) fn all(tree: &'a Tree, sources: &'a [Source]) -> Vec<Self> {
        let manifests = tree.files().filter_map(|file| file.strip_suffix("/Cargo.toml"));
        let mut packages: Vec<Self> =
            manifests.map(|path| Package { path, sources: Vec::new() }).collect();
        for source in sources {
            let holds = |package: &&mut Self| is_below(&source.path, package.path);
            let inner = packages.iter_mut().filter(holds).max_by_key(|package| package.path.len());
            if let Some(package) = inner {
                package.sources.push(source);
            }
        }
        packages
    }

    /// The roots of its library and programs; tests, benches and examples are not among them.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &'a str> {
        let is_root = |path: &&str| {
            let inner = path.strip_prefix(self.path).unwrap_or_default();
            match inner.strip_prefix("/src/bin/") {
                Some(program) => !program.contains('/') || program.ends_with("/main.rs"),
                None => matches!(inner, "/src/lib.rs" | "/src/main.rs"),
            }
        };
        self.sources.iter().map(|source| source.path.as_str()).filter(is_root)
    }
}

fn is_below(file: &str, directory: &str) -> bool {
    file.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_and_the_library_are_roots() {
        let paths = ["lib.rs", "a/main.rs", "main.rs", "bin/b.rs", "bin/c/main.rs", "bin/c/d.rs"];
        let sources = paths.map(|path| Source::new(&format!("x/src/{path}"), String::new()));
        let package = Package { path: "x", sources: sources.iter().collect() };
        let roots: Vec<&str> = package.roots().collect();
        let expected = ["lib.rs", "main.rs", "bin/b.rs", "bin/c/main.rs"];
        assert_eq!(roots, expected.map(|path| format!("x/src/{path}")));
    }

    #[test]
    fn a_directory_is_whole() {
        assert!(is_below("a/b/c.rs", "a/b"));
        assert!(!is_below("a/bc.rs", "a/b"));
    }
}
