//! Files on disk that are replaced whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Suffix of the file that takes the place of another when it is on the disk.
const SUFFIX: &str = ".new";

/// Path under which the next content of the file at `path` is written: `path` with `.new` behind
/// it. A crash may leave a file of this name.
pub fn replacement_path(path: &Path) -> PathBuf {
    let mut new = path.as_os_str().to_owned();
    new.push(SUFFIX);
    new.into()
}

/// Replaces the file at `path`, or makes it, with this content and these permissions. When it
/// returns, the file is on the disk; a crash before leaves the old one, or none. Blocks for the
/// disk.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// let path = directory.path().join("name");
/// lanecast_os::replace_file(&path, b"first", 0o600)?;
/// lanecast_os::replace_file(&path, b"second", 0o600)?;
/// assert_eq!(std::fs::read(&path)?, b"second");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the system refuses; the old file is as it was then, or the new one is there and a crash may
/// undo that.
pub fn replace_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let new = replacement_path(path);
    // One that a crash has left could have other permissions.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&new, path)) {
        // On a full disk it would take the room that is left.
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    // A path of one component has the empty parent.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_a_crash_has_left_gives_way_with_its_permissions() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        fs::write(replacement_path(&path), "torn").expect("written");
        replace_file(&path, b"whole", 0o600).expect("replaced");
        assert_eq!(fs::read(&path).expect("readable"), b"whole");
        let mode = fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode, replacement_path(&path).exists()), (0o600, false));
    }

    #[test]
    fn a_replacement_that_fails_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        // The last step fails: a directory is no file to replace.
        fs::create_dir(&path).expect("in the way");
        assert!(replace_file(&path, b"new", 0o600).is_err());
        assert!(!replacement_path(&path).exists());
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        replace_file(&path, b"old", 0o600).expect("replaced");
        fs::create_dir(replacement_path(&path)).expect("in the way");
        assert!(replace_file(&path, b"new", 0o600).is_err());
        assert_eq!(fs::read(&path).expect("readable"), b"old");
    }
}
