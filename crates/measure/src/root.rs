//! Files of the kernel in `/proc` and `/sys`, below any root.
//!
//! Missing or invalid contents are absent values, never errors: kernels and containers differ in
//! their files.

use lanecast_os::affinity;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Longest part of a file that is read.
const LONGEST_BYTES: u64 = 4 << 20;

/// The directory above `proc` and `sys`.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The contents of a file, without blanks at either end; none if there are no others.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let file = File::open(self.0.join(path)).ok()?;
        file.take(LONGEST_BYTES).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The first word of a file, as a number or the like.
    pub(crate) fn value<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.split_whitespace().next()?.parse().ok()
    }

    /// The value after `label` in a file of lines such as `MemTotal:  123 kB`.
    pub(crate) fn labelled(&self, path: &str, label: &str) -> Option<String> {
        let text = self.text(path)?;
        let value = |line: &str| {
            let (name, value) = line.split_once(':')?;
            (name.trim_end() == label).then(|| value.trim().to_owned())
        };
        text.lines().find_map(value)
    }

    /// The numbers in a file such as `0-3,8`, ascending; none if it is missing or empty.
    pub(crate) fn list(&self, path: &str) -> Option<Vec<usize>> {
        let mut numbers = affinity::parse_list(&self.text(path)?);
        numbers.sort_unstable();
        numbers.dedup();
        (!numbers.is_empty()).then_some(numbers)
    }

    /// The names in a directory, in order; empty if it is missing.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Bytes in a line such as `MemTotal:  123 kB` of `/proc/meminfo`.
    pub(crate) fn memory_bytes(&self, label: &str) -> Option<u64> {
        let value = self.labelled("proc/meminfo", label)?;
        value.strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A root of a test's own, with these files.
    pub(crate) fn tree(files: &[(&str, &str)]) -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (path, contents) in files {
            put(&tree, path, contents);
        }
        tree
    }

    /// Makes or replaces a file of such a root.
    pub(crate) fn put(tree: &TempDir, path: &str, contents: impl AsRef<[u8]>) {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    #[test]
    fn values_are_found_and_nonsense_is_absent() {
        let tree = tree(&[
            ("proc/meminfo", "MemTotal:   2048 kB\nMemFree: 1 kB\nHugePages_Free:  7\n"),
            ("sys/online", "4,0-2\n"),
            ("sys/empty", " \n"),
        ]);
        let root = Root::new(tree.path());
        assert_eq!(root.memory_bytes("MemTotal"), Some(2 << 20));
        assert_eq!(root.memory_bytes("HugePages_Free"), None, "no kB");
        assert_eq!(root.labelled("proc/meminfo", "HugePages_Free").as_deref(), Some("7"));
        assert_eq!(root.list("sys/online"), Some(vec![0, 1, 2, 4]));
        assert_eq!(root.value::<u64>("sys/online"), None);
        assert_eq!((root.text("sys/empty"), root.text("sys/missing")), (None, None));
        assert_eq!(root.names("sys"), ["empty", "online"]);
        assert!(root.names("missing").is_empty());
    }
}
