//! Reads configuration files, and refuses those that other users could change: a user who can write
//! them controls the server.

use rustix::process::geteuid;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Mode bits that let other users write.
const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
const OTHERS_WRITE: u32 = 0o002;
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
         user that the server runs as ({user}): chown {user} it first"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The file's owner.
        owner: u32,
        /// The user that the server runs as.
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
pub(crate) fn read(path: &Path) -> Result<(u32, Vec<u8>), TrustError> {
    let unreadable = |error| TrustError::Unreadable { path: path.to_owned(), error };
    let mut file = File::open(path).map_err(unreadable)?;
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
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok((metadata.mode(), bytes))
}

/// Refuses a file that others than root and the server's own user can write.
fn check(path: &Path, metadata: &Metadata) -> Result<(), TrustError> {
    let user = geteuid().as_raw();
    let owner = metadata.uid();
    if owner != user && owner != 0 {
        return Err(TrustError::Foreign { path: path.to_owned(), owner, user });
    }
    if metadata.is_file() && metadata.mode() & GROUP_AND_OTHERS_WRITE != 0 {
        return Err(TrustError::Writable(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::file::read_config;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_strangers_can_write_says_nothing() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(read_config(file.path()).is_ok());
        let mode = Permissions::from_mode(0o606);
        std::fs::set_permissions(file.path(), mode).expect("a file");
        let told = read_config(file.path()).expect_err("other users can write it").to_string();
        assert!(told.contains("chmod go-w"), "{told}");
    }
}
