//! The directory of a domain: who may see it and who may write in it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Who may use a domain's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The user who made them, nobody else.
    #[default]
    Owner,
    /// The user and the members of the directory's group.
    Group,
}

impl Access {
    /// The directory's mode. In a shared one the group sticks to new files (set-group-id),
    /// and members cannot remove each other's (sticky).
    pub const fn directory_mode(self) -> u32 {
        match self {
            Self::Owner => 0o700,
            Self::Group => 0o3770,
        }
    }

    /// The mode of a file that only its owner writes.
    pub const fn read_mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o640,
        }
    }

    /// The mode of a file that readers write too.
    pub const fn write_mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o660,
        }
    }
}

/// Why a directory cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// It cannot be made or looked at.
    #[error("cannot use {path}: {error} (choose another with LANECAST_SHM__DIRECTORY)")]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// It is no directory.
    #[error("{0} is not a directory: remove it, or choose another directory")]
    NotDirectory(PathBuf),
    /// Strangers could replace its files.
    #[error(
        "{path} may be written by others (mode {mode:o}, user {user}): make it yours with \
         `chmod {wanted:o}`, or choose another directory"
    )]
    Exposed {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its owner.
        user: u32,
        /// The mode it should have.
        wanted: u32,
    },
}

/// Makes `path` if it is missing, and checks that strangers cannot write in it.
///
/// # Errors
/// See [`DirectoryError`].
pub fn private_directory(path: &Path, access: Access) -> Result<(), DirectoryError> {
    let unusable = |error| DirectoryError::Unusable { path: path.to_owned(), error };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(unusable(error));
    }
    let metadata = fs::symlink_metadata(path).map_err(unusable)?;
    if !metadata.is_dir() {
        return Err(DirectoryError::NotDirectory(path.to_owned()));
    }
    let own = crate::process::own_user();
    let wanted = access.directory_mode();
    if metadata.uid() == own && access == Access::Group && metadata.mode() & 0o7777 == 0o700 {
        fs::set_permissions(path, Permissions::from_mode(wanted)).map_err(unusable)?;
        return Ok(());
    }
    let strangers = match access {
        Access::Owner => 0o022,
        Access::Group => 0o002,
    };
    let foreign = access == Access::Owner && metadata.uid() != own && metadata.uid() != 0;
    if metadata.mode() & strangers != 0 || foreign {
        return Err(DirectoryError::Exposed {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
            user: metadata.uid(),
            wanted,
        });
    }
    Ok(())
}
