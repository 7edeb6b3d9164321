//! Access checks of a domain's directory: its owner, mode, access lists and parent.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Users that may use a domain's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Only the user that created them.
    #[default]
    Owner,
    /// The user and the members of the directory's group.
    Group,
}

impl Access {
    /// The directory's mode. In a shared directory new files inherit its group (set-group-id), and
    /// members cannot remove each other's files (sticky).
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

    /// The mode of a file that readers also write.
    pub const fn write_mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o660,
        }
    }
}

/// Error of a directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The directory cannot be created or read.
    #[error("cannot use {path}: {error} (choose another with LANECAST_SHM__DIRECTORY)")]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The path is not a directory.
    #[error("{0} is not a directory: remove it, or choose another directory")]
    NotDirectory(PathBuf),
    /// Other users could replace its files.
    #[error(
        "{path} may be written by others (mode {mode:o}, user {user}): make it yours with \
         `chmod {wanted:o}`, or choose another directory"
    )]
    Exposed {
        /// The directory.
        path: PathBuf,
        /// The directory's mode.
        mode: u32,
        /// The directory's owner.
        user: u32,
        /// The required mode.
        wanted: u32,
    },
    /// Another user could have prepared it.
    #[error(
        "{path} belongs to user {user}, who could have prepared it in {parent}, where others may \
         write too: have root make it (`install -d -m {wanted:o} -g GROUP {path}`), or put it into \
         a directory where only root or you may write"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The directory's owner.
        user: u32,
        /// The parent directory.
        parent: PathBuf,
        /// The required mode.
        wanted: u32,
    },
    /// An access list grants more than the mode.
    #[error(
        "{0} has an access list that lets in users beyond its mode: remove it with \
         `setfacl -b {0}`, or choose another directory"
    )]
    AccessList(PathBuf),
}

/// Paths of all entries of a domain's directory; none if it is absent.
///
/// # Errors
/// If it cannot be read; the text names it and says what to do.
pub fn list_directory(path: &Path) -> io::Result<Vec<PathBuf>> {
    let with_path = |error: io::Error| {
        let kind = error.kind();
        io::Error::new(
            kind,
            match kind {
                io::ErrorKind::NotADirectory => DirectoryError::NotDirectory(path.to_owned()),
                _ => DirectoryError::Unusable { path: path.to_owned(), error },
            },
        )
    };
    match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => {
            Ok(entries.map_err(with_path)?.filter_map(|entry| Some(entry.ok()?.path())).collect())
        }
    }
}

/// Creates `path` if it is missing, and checks that other users cannot write in it.
///
/// A group's directory may belong to another member only if its parent is safe: the owner of a
/// directory can remove all files in it.
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
    if has_access_list(path) {
        return Err(DirectoryError::AccessList(path.to_owned()));
    }
    let own = crate::process::own_user();
    let wanted = access.directory_mode();
    if metadata.uid() == own && access == Access::Group && metadata.mode() & 0o7777 == 0o700 {
        fs::set_permissions(path, Permissions::from_mode(wanted)).map_err(unusable)?;
        return Ok(());
    }
    let is_trusted = is_of(&metadata, own);
    let is_exposed = match access {
        Access::Owner => metadata.mode() & 0o022 != 0 || !is_trusted,
        // Without the two upper bits members could remove each other's files, or would give
        // theirs to other groups.
        Access::Group => metadata.mode() & 0o002 != 0 || metadata.mode() & 0o3000 != 0o3000,
    };
    if is_exposed {
        return Err(DirectoryError::Exposed {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
            user: metadata.uid(),
            wanted,
        });
    }
    if is_trusted {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    };
    let above = fs::metadata(parent).map_err(unusable)?;
    if is_of(&above, own) && above.mode() & 0o022 == 0 && !has_access_list(parent) {
        return Ok(());
    }
    let (path, parent) = (path.to_owned(), parent.to_owned());
    Err(DirectoryError::Foreign { path, user: metadata.uid(), parent, wanted })
}

fn is_of(metadata: &Metadata, own: u32) -> bool {
    metadata.uid() == own || metadata.uid() == 0
}

/// Whether an access list, besides the mode, applies to `path` or to files created in it. False if
/// the file system has no access lists.
fn has_access_list(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let is_set = |name: &CStr| {
        // SAFETY: both strings are live and terminated; no value is asked for.
        unsafe { libc::lgetxattr(path.as_ptr(), name.as_ptr(), core::ptr::null_mut(), 0) > 0 }
    };
    is_set(c"system.posix_acl_access") || is_set(c"system.posix_acl_default")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;

    /// A user and group that are not this process's.
    const STRANGER: u32 = 54_321;

    /// A directory `domain` with `mode`, in one with `above`; gone when dropped.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str, above: u32, mode: u32) -> Self {
            let shm = Path::new("/dev/shm");
            let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
            let parent = parent.join(format!("lanecast-{name}-{}", std::process::id()));
            fs::create_dir(&parent).unwrap();
            fs::create_dir(parent.join("domain")).unwrap();
            let place = Self(parent);
            fs::set_permissions(place.path(), Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(&place.0, Permissions::from_mode(above)).unwrap();
            place
        }

        fn path(&self) -> PathBuf {
            self.0.join("domain")
        }

        fn refused(&self, access: Access) -> String {
            private_directory(&self.path(), access).unwrap_err().to_string()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn is_root() -> bool {
        let is_root = crate::process::own_user() == 0;
        if !is_root {
            println!("skipped: only the superuser gives directories away");
        }
        is_root
    }

    #[test]
    fn a_strangers_directory_is_refused_where_others_may_write() {
        if !is_root() {
            return;
        }
        let place = Place::new("foreign", 0o1777, 0o3770);
        private_directory(&place.path(), Access::Group).unwrap();
        chown(place.path(), Some(STRANGER), None).unwrap();
        let words = place.refused(Access::Group);
        assert!(words.contains("belongs to user 54321") && words.contains("install -d"), "{words}");
        // A trusted user gave the directory its name.
        fs::set_permissions(&place.0, Permissions::from_mode(0o755)).unwrap();
        private_directory(&place.path(), Access::Group).unwrap();
        chown(&place.0, Some(STRANGER), None).unwrap();
        assert!(place.refused(Access::Group).contains("belongs to user 54321"));
        assert!(place.refused(Access::Owner).contains("may be written by others"));
    }

    #[test]
    fn a_groups_directory_keeps_its_members_files_apart() {
        for mode in [0o770, 0o2770, 0o1770, 0o3772] {
            let place = Place::new(&format!("bits-{mode:o}"), 0o755, mode);
            let words = place.refused(Access::Group);
            assert!(words.contains("chmod 3770"), "{mode:o}: {words}");
        }
    }

    /// The bytes of a list that lets user 54321 in: version 2, then tag, rights and user of each
    /// entry, see linux/posix_acl_xattr.h.
    fn list() -> Vec<u8> {
        const NONE: u32 = u32::MAX;
        let entries = [
            (0x01, 7, NONE),
            (0x02, 7, STRANGER),
            (0x04, 0, NONE),
            (0x10, 7, NONE),
            (0x20, 0, NONE),
        ];
        let mut bytes = 2u32.to_le_bytes().to_vec();
        for (tag, rights, user) in entries {
            bytes.extend([u16::to_le_bytes(tag), u16::to_le_bytes(rights)].as_flattened());
            bytes.extend(user.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_path_that_is_no_directory_is_named() {
        let error = list_directory(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        let words = error.to_string();
        assert!(words.starts_with("/dev/null is not a directory: "), "{words}");
        assert!(list_directory(Path::new("/dev/shm/lanecast-absent")).unwrap().is_empty());
    }

    #[test]
    fn an_access_list_is_refused() {
        for name in [c"system.posix_acl_access", c"system.posix_acl_default"] {
            let place = Place::new(&format!("list-{}", name.to_bytes().len()), 0o755, 0o3770);
            private_directory(&place.path(), Access::Group).unwrap();
            let path = CString::new(place.path().as_os_str().as_bytes()).unwrap();
            let (list, flags) = (list(), 0);
            // SAFETY: the strings are live and terminated, and the value has its length.
            let set = unsafe {
                let value = list.as_ptr().cast();
                libc::setxattr(path.as_ptr(), name.as_ptr(), value, list.len(), flags)
            };
            if set != 0 {
                println!("skipped: {}", io::Error::last_os_error());
                continue;
            }
            for access in [Access::Owner, Access::Group] {
                assert!(place.refused(access).contains("setfacl -b"), "{name:?}");
            }
        }
    }
}
