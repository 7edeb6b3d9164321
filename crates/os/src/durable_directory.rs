//! Directories whose names survive a crash of the machine.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes the directory at `path` with this mode, and those above it that are missing, and
/// synchronises the directory above each: what is then synchronised inside survives a crash of the
/// machine. One that is there stays as it is; its name is synchronised if the directory above can
/// be read. Blocks for the disk.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// let path = directory.path().join("store/journal");
/// lanecast_os::durable_directory(&path, 0o700)?;
/// lanecast_os::durable_directory(&path, 0o700)?;
/// assert!(path.is_dir());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the system refuses; some of the directories may be there then.
pub fn durable_directory(path: &Path, mode: u32) -> io::Result<()> {
    let is_missing = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    // The process before may have died between making it and this.
    if missing.is_empty() {
        let _ = synchronise_above(path);
    }
    // Topmost first: a name counts when all those above it do.
    missing.iter().rev().try_for_each(|made| synchronise_above(made))
}

fn synchronise_above(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|it| !it.as_os_str().is_empty());
    File::open(above.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn missing_directories_are_made_and_others_stay() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("a/b/c");
        durable_directory(&path, 0o700).expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&root.path().join("a"))), (0o700, 0o700));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).expect("set");
        durable_directory(&path, 0o700).expect("there");
        assert_eq!(mode(&path), 0o750);
        fs::write(path.join("file"), "").expect("written");
        assert!(durable_directory(&path.join("file/d"), 0o700).is_err());
    }
}
