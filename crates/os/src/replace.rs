//! Files on disk that are replaced whole or not at all: those of lanecast's own directories, and
//! those that a user has named.

use crate::process;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Suffix of the file that takes the place of another when it is on the disk.
const SUFFIX: &str = ".new";
/// Most symbolic links on the way to a file, as in the kernel.
const LINKS_MAX: usize = 40;

/// Path under which the next content of the file at `path` is written: `path` with `.new` behind
/// it. A crash may leave a file of this name.
pub fn replacement_path(path: &Path) -> PathBuf {
    let mut new = path.as_os_str().to_owned();
    new.push(SUFFIX);
    new.into()
}

/// Replaces the file at `path`, or makes it, with this content and exactly these permissions. When
/// it returns, the file is on the disk; a crash before leaves the old one, or none. Blocks for the
/// disk. For directories of a program's own: what has the name of the
/// [replacement](replacement_path) there is removed. [`rewrite_file`] is for those of users.
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
    // The process's mask takes permissions away here, and gives none; the rest follows.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    let permitted = file.set_permissions(Permissions::from_mode(mode));
    let written = permitted.and_then(|()| file.write_all(content)).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&new, path)) {
        // On a full disk it would take the room that is left.
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    File::open(parent(path))?.sync_all()
}

/// Replaces the content of a user's file at `path`, or makes it with the permissions that the
/// process gives new files. A regular file keeps its permissions and is replaced as a whole, on the
/// disk when this returns: on a full disk, and after a crash, it has its former content. Where that
/// is not possible, since its directory or its owner does not permit it, it is written in place, as
/// devices and pipes are. A symbolic link stays, and what it leads to is written, also if that does
/// not exist yet. No other file is touched. Blocks for the disk.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// let path = directory.path().join("report.html");
/// lanecast_os::rewrite_file(&path, b"first")?;
/// lanecast_os::rewrite_file(&path, b"second")?;
/// assert_eq!(std::fs::read(&path)?, b"second");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the system refuses. The old content is there then, unless the file was written in place.
pub fn rewrite_file(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(old) if old.is_file() => {
            // Only a file that could be written in place is replaced.
            let mut file = OpenOptions::new().write(true).open(path)?;
            match path.canonicalize().and_then(|path| supersede(&path, content, Some(&old))) {
                Err(error) if prevents_replacement(&error) => overwrite(&mut file, content),
                result => result,
            }
        }
        Ok(_) => fs::write(path, content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            supersede(&destination(path)?, content, None)
        }
        Err(error) => Err(error),
    }
}

/// Whether a file can perhaps be written, but not replaced: its directory cannot be written, it
/// belongs to another user, or it is mounted or has lost its name.
fn prevents_replacement(error: &io::Error) -> bool {
    use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), PermissionDenied | NotFound | ReadOnlyFilesystem | ResourceBusy)
}

/// Puts a new file in the place of the `old` one at `path`, with its owner and permissions.
fn supersede(path: &Path, content: &[u8], old: Option<&fs::Metadata>) -> io::Result<()> {
    let (new, mut file) = create_beside(path, if old.is_some() { 0o600 } else { 0o666 })?;
    let inherited = old.map_or(Ok(()), |old| inherit(&file, old));
    let written = inherited.and_then(|()| file.write_all(content)).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&new, path)) {
        // On a full disk it would take the room that is left.
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    // A directory that can be written and not read cannot be opened: the rename is done.
    File::open(parent(path)).map_or(Ok(()), |directory| directory.sync_all())
}

/// Gives a new file the owner and the permissions of the old one.
fn inherit(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o7777))
}

/// Makes a file in the directory of `path`, under a name that no other file has.
fn create_beside(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    loop {
        let new = parent(path).join(format!(".lanecast-{:016x}", process::random()?));
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((new, opened?)),
        }
    }
}

fn overwrite(file: &mut File, content: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The path that symbolic links lead to from `path`, of a file that may not exist.
fn destination(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(to) => path = parent(&path).join(to),
            // No link, or nothing.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// The directory of `path`. A path of one component has the empty parent.
fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o7777
    }

    #[test]
    fn permissions_that_the_mask_takes_away_are_given_all_the_same() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("shared");
        replace_file(&path, b"content", 0o666).expect("replaced");
        assert_eq!(mode(&path), 0o666);
        for shared in [0o664, 0o646, 0o600] {
            fs::set_permissions(&path, Permissions::from_mode(shared)).expect("set");
            rewrite_file(&path, b"new content").expect("rewritten");
            assert_eq!(
                (mode(&path), fs::read(&path).expect("readable")),
                (shared, b"new content".into())
            );
        }
        let plain = directory.path().join("plain");
        fs::write(&plain, "").expect("written");
        rewrite_file(&directory.path().join("new"), b"x").expect("made");
        assert_eq!(
            mode(&directory.path().join("new")),
            mode(&plain),
            "the mask counts for new ones"
        );
    }

    #[test]
    fn other_files_of_the_user_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("report.html");
        fs::write(replacement_path(&path), "the user's").expect("written");
        for content in [&b"first"[..], b"second"] {
            rewrite_file(&path, content).expect("rewritten");
            assert_eq!(fs::read(&path).expect("readable"), content);
        }
        assert_eq!(fs::read(replacement_path(&path)).expect("still there"), b"the user's");
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 2);
    }

    #[test]
    fn links_stay_and_lead_to_what_is_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("results")).expect("made");
        std::os::unix::fs::symlink("latest", at("link")).expect("made");
        std::os::unix::fs::symlink("results/today.html", at("latest")).expect("made");
        for content in [&b"made"[..], b"replaced"] {
            rewrite_file(&at("link"), content).expect("rewritten");
            assert_eq!(fs::read(at("results/today.html")).expect("there"), content);
        }
        assert_eq!(fs::read_link(at("link")).expect("a link"), Path::new("latest"));
        assert_eq!(fs::read_link(at("latest")).expect("a link"), Path::new("results/today.html"));
        std::os::unix::fs::symlink("circle", at("circle")).expect("made");
        assert!(rewrite_file(&at("circle"), b"x").is_err());
    }

    #[test]
    fn a_failed_rewrite_leaves_the_old_content_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("old");
        fs::write(&path, "old").expect("written");
        assert!(rewrite_file(&path.join("below"), b"x").is_err());
        assert!(rewrite_file(directory.path(), b"x").is_err());
        assert!(rewrite_file(Path::new("/dev/full"), b"x").is_err());
        assert_eq!(fs::read(&path).expect("readable"), b"old");
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
    }

    #[test]
    fn a_file_in_a_directory_that_cannot_be_written_is_written_in_place() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"longer than the new content").expect("written");
        // It has lost its name, so that nothing can take its place.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        rewrite_file(Path::new(&path), b"new").expect("written");
        assert_eq!(fs::read(&path).expect("readable"), b"new");

        let denied = io::Error::from_raw_os_error;
        for error in [libc::EACCES, libc::EPERM, libc::EROFS, libc::EBUSY] {
            assert!(prevents_replacement(&denied(error)), "{error}");
        }
        for error in [libc::ENOSPC, libc::EIO, libc::EDQUOT] {
            assert!(
                !prevents_replacement(&denied(error)),
                "the old content would be lost: {error}"
            );
        }
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
