//! The files that belong to the repository.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A checkout: its root and the names of its files, relative to the root.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    files: Vec<String>,
}

impl Tree {
    /// The files that git tracks, and those that it would track if they were added now, so that
    /// a new file is checked before it is committed.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git cannot be started: install it, the checks ask it for the file list")?;
        if !listing.status.success() {
            let reason = String::from_utf8_lossy(&listing.stderr);
            bail!("git ls-files failed in {}: {}", root.display(), reason.trim());
        }
        let names = String::from_utf8(listing.stdout).context("a file name is not UTF-8")?;
        let mut files: Vec<String> = names
            .split('\0')
            // A file deleted but not yet committed is still listed.
            .filter(|name| !name.is_empty() && root.join(name).is_file())
            .map(str::to_owned)
            .collect();
        files.sort_unstable();
        files.dedup();
        Ok(Self { root: root.to_owned(), files })
    }

    /// The directory that the names start from.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Every file's name.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// Every Rust file's name.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &str> {
        self.files().filter(|name| name.ends_with(".rs"))
    }

    /// The file's text; `None` if it is missing or is no text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let bytes = std::fs::read(self.root.join(name)).ok()?;
        if bytes.contains(&0) { None } else { String::from_utf8(bytes).ok() }
    }
}
