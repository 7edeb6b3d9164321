//! Files whose writers are the server's masters: no stranger may be among them.

use rustix::process::geteuid;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bits of a mode by which others than the owner may write.
const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
const OTHERS_WRITE: u32 = 0o002;
/// Of a directory: only an entry's owner may put another file in its place.
const STICKY: u32 = 0o1000;

/// Why a file is not believed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// Its owner is another user, who may change it at any time.
    #[error(
        "{path} belongs to user {owner}, who could change it: make it belong to root or to the \
         user whom the server runs as ({user}): chown {user} it first"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
        /// The number of the user whom the server runs as.
        user: u32,
    },
    /// Others can write it.
    #[error("{0} can be written by others than its owner: chmod go-w it first")]
    Writable(PathBuf),
    /// Others can put another file in its place.
    #[error(
        "{path} could be replaced, as anybody can write the directory {directory}: chmod o-w the \
         directory first"
    )]
    Replaceable {
        /// The file.
        path: PathBuf,
        /// The directory that it is in, or one above.
        directory: PathBuf,
    },
}

/// A file's bytes, and its mode: those of the file that is open, so that they belong together.
pub(crate) fn read(path: &Path) -> Result<(u32, Vec<u8>), TrustError> {
    let unreadable = |error| TrustError::Unreadable { path: path.to_owned(), error };
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    check(path, &metadata)?;
    // What is no file, a pipe of the shell's for example, is in no directory.
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

/// Whether only root and the server's own user can write it.
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
    use crate::config::server_config::ServerConfig;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_strangers_can_write_says_nothing() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(ServerConfig::from_file(file.path()).is_ok());
        let mode = Permissions::from_mode(0o606);
        std::fs::set_permissions(file.path(), mode).expect("a file");
        let told =
            ServerConfig::from_file(file.path()).expect_err("anybody can write it").to_string();
        assert!(told.contains("chmod go-w"), "{told}");
    }
}
