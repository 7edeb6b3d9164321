//! Reads configuration files, and refuses those that other users could change: a user who can write
//! them controls the program. State of a file by which a change shows.

use crate::process::own_user;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Mode bits that let other users write.
const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
const OTHERS_WRITE: u32 = 0o002;
/// The longest file that is read: a wrong path may lead to a device without an end.
const BYTES_MAX: u64 = 64 << 20;
/// The sticky bit of a directory: only the owner of a file may replace it.
const STICKY: u32 = 0o1000;

/// Why a file is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file belongs to another user, who may change it at any time.
    #[error(
        "{path} belongs to user {owner}, who could change it: make it belong to root or to the \
         user that the program runs as ({user}): chown {user} it first"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The file's owner.
        owner: u32,
        /// The user that the program runs as.
        user: u32,
    },
    /// Other users can write the file.
    #[error("{0} can be written by others than its owner: chmod go-w it first")]
    Writable(PathBuf),
    /// Other users can replace the file.
    #[error(
        "{path} could be replaced, as any user can write the directory {directory}: chmod o-w the \
         directory first"
    )]
    Replaceable {
        /// The file.
        path: PathBuf,
        /// The writable directory: the file's own or an ancestor.
        directory: PathBuf,
    },
}

/// Reads a trusted file; returns its mode and bytes. Checks the open file, not its path, so that a
/// replacement between check and read makes no difference.
///
/// # Errors
/// See [`TrustError`].
pub fn read(path: &Path) -> Result<(u32, Vec<u8>), TrustError> {
    let unreadable = |error| TrustError::Unreadable { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    check(path, &metadata)?;
    // A pipe, such as the shell's <(...), has no directory to check.
    if metadata.is_file() {
        let whole = path.canonicalize().map_err(unreadable)?;
        for directory in whole.ancestors().skip(1) {
            let mode = directory.metadata().map_err(unreadable)?.mode();
            if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
                let (path, directory) = (path.to_owned(), directory.to_owned());
                return Err(TrustError::Replaceable { path, directory });
            }
        }
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(unreadable(io::Error::other(format!("it is longer than {BYTES_MAX} bytes"))));
    }
    Ok((metadata.mode(), bytes))
}

/// Refuses a file that others than root and the program's own user can write.
fn check(path: &Path, metadata: &Metadata) -> Result<(), TrustError> {
    let user = own_user();
    let owner = metadata.uid();
    if owner != user && owner != 0 {
        return Err(TrustError::Foreign { path: path.to_owned(), owner, user });
    }
    if metadata.is_file() && metadata.mode() & GROUP_AND_OTHERS_WRITE != 0 {
        return Err(TrustError::Writable(path.to_owned()));
    }
    Ok(())
}

/// State of a file by which a change shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    is_file: bool,
    length: u64,
    /// Time of the last write, and of the last change of the file's state: seconds, nanoseconds.
    times: [(i64, i64); 2],
}

impl FileStamp {
    /// The state of an open file.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            is_file: metadata.is_file(),
            length: metadata.len(),
            times: [
                (metadata.mtime(), metadata.mtime_nsec()),
                (metadata.ctime(), metadata.ctime_nsec()),
            ],
        }
    }

    /// Whether it is a file that can be read again. A pipe has no second copy of its bytes, and
    /// opening it waits for another writer.
    pub const fn is_file(&self) -> bool {
        self.is_file
    }

    /// The state of the file at `path`; `None` if it is not there.
    pub fn read(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|metadata| Self::of(&metadata))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_strangers_can_write_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "text").expect("written");
        fs::set_permissions(file.path(), Permissions::from_mode(0o600)).expect("set");
        let (mode, bytes) = read(file.path()).expect("trusted");
        assert_eq!((mode & 0o777, &bytes[..]), (0o600, &b"text"[..]));
        fs::set_permissions(file.path(), Permissions::from_mode(0o606)).expect("set");
        let told = read(file.path()).expect_err("other users can write it").to_string();
        assert!(told.contains("chmod go-w"), "{told}");
    }

    #[test]
    fn a_file_without_an_end_is_not_read_to_it() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        // Without the bytes themselves: the file is one hole.
        file.as_file().set_len(BYTES_MAX + 1).expect("room");
        let told = read(file.path()).expect_err("too long").to_string();
        assert!(told.contains("longer than 67108864 bytes"), "{told}");
    }

    #[test]
    fn a_replaced_file_has_another_stamp() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, new) = (directory.path().join("file"), directory.path().join("new"));
        assert_eq!(FileStamp::read(&path), None);
        fs::write(&path, "one").expect("written");
        let first = FileStamp::read(&path);
        assert!(first.is_some());
        assert_eq!(FileStamp::read(&path), first);
        fs::write(&new, "two").expect("written");
        fs::rename(&new, &path).expect("renamed");
        assert_ne!(FileStamp::read(&path), first);
    }
}
