//! Directories of runs: domains of demonstrations and of series of measurements, and data of their
//! stores.
//!
//! Each is locked by the process that made it, and removed by it at the end. One whose lock is free
//! is the rest of a killed run: the next run beside it removes it, and so does `lanecast clean`.

use crate::life_lock::{hold, names};
use anyhow::Context as _;
use lanecast_os::process;
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names are `lanecast-run-<word>-<number>`: no earlier version made such, which it would not hold
/// by a lock.
const PREFIX: &str = "lanecast-run-";

/// A directory of our own, in memory if possible, removed with its contents at the end. One whose
/// process was killed is removed when the next one is made beside it.
#[derive(Debug)]
pub(crate) struct TempDomain {
    path: PathBuf,
    /// The directory, with a lock on it: the system ends that with the process.
    _lock: File,
}

impl TempDomain {
    pub(crate) fn build(name: &str) -> anyhow::Result<Self> {
        Self::within(name, &parent())
    }

    /// The same on disk: below `parent`, or where temporary files are.
    pub(crate) fn on_disk(name: &str, parent: Option<&Path>) -> anyhow::Result<Self> {
        Self::within(name, parent.unwrap_or(&std::env::temp_dir()))
    }

    fn within(name: &str, parent: &Path) -> anyhow::Result<Self> {
        for stale in StaleRun::all(parent) {
            // The new one has a name of its own.
            let _ = stale.remove();
        }
        loop {
            let number = process::random()?;
            let path = parent.join(format!("{PREFIX}{name}-{number:016x}"));
            let made = std::fs::create_dir(&path);
            made.with_context(|| format!("cannot make {}", path.display()))?;
            // Another process may take it for stale until it is locked, and remove it.
            if let Some(lock) = hold(&path)? {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    /// A path inside.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for TempDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Directory that [`TempDomain::build`] makes them in.
fn parent() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() }
}

/// The directories that runs are made in, unless they are told others.
pub(crate) fn parents() -> Vec<PathBuf> {
    let mut parents = vec![parent(), std::env::temp_dir()];
    parents.dedup();
    parents
}

/// A directory of this user whose process has ended without removing it. The lock on it keeps other
/// processes from it.
#[derive(Debug)]
pub(crate) struct StaleRun {
    pub(crate) path: PathBuf,
    lock: File,
}

impl StaleRun {
    /// All stale directories in `parent`.
    pub(crate) fn all(parent: &Path) -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
        let named = entries.flatten().filter(|it| {
            let name = it.file_name();
            name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
        });
        named.filter_map(|it| Self::at(it.path())).collect()
    }

    /// The one at `path`. A link is none, wherever it leads, and neither is a directory of another
    /// user, who could hold its lock or move something else there.
    fn at(path: PathBuf) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = File::from(open(&path, flags, Mode::empty()).ok()?);
        let is_ours = lock.metadata().is_ok_and(|it| it.uid() == process::own_user());
        // Its process, or another one that removes it, has the lock.
        if !is_ours || lock.try_lock().is_err() {
            return None;
        }
        // It may have been removed, and another one made there, before the lock was free.
        names(&path, &lock).then_some(Self { path, lock })
    }

    /// The lengths of the files in it, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_in(&self.path)
    }

    /// Removes it with its contents; links in it, and not what they lead to.
    pub(crate) fn remove(self) -> io::Result<()> {
        let removed = std::fs::remove_dir_all(&self.path);
        drop(self.lock);
        removed
    }
}

fn bytes_in(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(it) if it.is_dir() => bytes_in(&entry.path()),
        Ok(it) if it.is_file() => it.len(),
        _ => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn directories_of_killed_processes_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let names = ["lanecast-run-lat-1", "lanecast-lat-1", "lanecast-run-file", "other"];
        let [killed, earlier, file, other] = names.map(path);
        std::fs::create_dir_all(killed.join("domain")).unwrap();
        for directory in [&earlier, &other] {
            std::fs::create_dir(directory).unwrap();
        }
        std::fs::write(&file, "").unwrap();
        symlink(&other, path("lanecast-run-link")).unwrap();
        let living = TempDomain::on_disk("lat", Some(parent.path())).unwrap();
        assert!(!killed.exists());
        let next = TempDomain::on_disk("lat", Some(parent.path())).unwrap();
        assert!(living.path("").exists() && next.path("").exists());
        assert!([earlier, other, file, path("lanecast-run-link")].iter().all(|it| it.exists()));
        drop((living, next));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_link_in_a_stale_directory_is_removed_and_its_target_kept() {
        let parent = tempfile::tempdir().unwrap();
        let [killed, kept] = ["lanecast-run-lat-1", "kept"].map(|name| parent.path().join(name));
        for directory in [&killed, &kept] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("file"), "contents").unwrap();
        }
        symlink(&kept, killed.join("link")).unwrap();
        let [stale] = <[_; 1]>::try_from(StaleRun::all(parent.path())).unwrap();
        assert_eq!(stale.bytes(), 8);
        // Another process takes it for living meanwhile.
        assert!(StaleRun::all(parent.path()).is_empty());
        stale.remove().unwrap();
        assert!(!killed.exists() && kept.join("file").exists());
    }
}
